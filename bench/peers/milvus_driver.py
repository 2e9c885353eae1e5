"""Milvus Lite, in a process and an environment of its own: `python milvus_driver.py FOLDER`.

The folder has the tools (`tools.jsonl`, `vectors.npy`) and the requests (`asked.json`,
`asked.npy`); `found.json` is written there.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from pymilvus import (  # pyright: ignore[reportMissingImports]
    AnnSearchRequest,
    DataType,
    Function,
    FunctionType,
    MilvusClient,
    RRFRanker,
)

BATCH = 2_000
CANDIDATES = 40
TEXT_AT_MOST = 4_000


def main() -> None:
    """Insert the tools, search for the requests."""
    folder = Path(sys.argv[1])
    client: Any = MilvusClient(str(folder / "tools.db"))
    tools = [json.loads(line) for line in (folder / "tools.jsonl").open(encoding="utf-8")]
    vectors = np.load(folder / "vectors.npy")
    schema: Any = MilvusClient.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("text", DataType.VARCHAR, max_length=16_000, enable_analyzer=True)
    schema.add_field("meaning", DataType.FLOAT_VECTOR, dim=vectors.shape[1])
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["words"]))
    indexes: Any = client.prepare_index_params()
    graph = {"M": 16, "efConstruction": 64}
    indexes.add_index("meaning", index_type="HNSW", metric_type="IP", params=graph)
    indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    began = time.perf_counter()
    client.create_collection("tools", schema=schema, index_params=indexes)
    for start in range(0, len(tools), BATCH):
        some = range(start, min(start + BATCH, len(tools)))
        client.insert(
            "tools",
            [
                {"id": i, "text": tools[i][1][:TEXT_AT_MOST], "meaning": vectors[i].tolist()}
                for i in some
            ],
        )
    client.flush("tools")
    client.load_collection("tools")
    inserted = time.perf_counter() - began
    queries = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    asked = np.load(folder / "asked.npy")

    def search(place: int) -> list[str]:
        found = client.hybrid_search(
            "tools",
            [
                AnnSearchRequest(
                    [asked[place].tolist()], "meaning", {"metric_type": "IP"}, CANDIDATES
                ),
                AnnSearchRequest([queries[place]], "words", {"metric_type": "BM25"}, CANDIDATES),
            ],
            RRFRanker(),
            limit=5,
        )
        return [tools[hit["id"]][0] for hit in found[0]]

    for place in range(min(10, len(queries))):
        search(place)
    hits: list[list[str]] = []
    times: list[float] = []
    for place in range(len(queries)):
        began = time.perf_counter()
        hits.append(search(place))
        times.append((time.perf_counter() - began) * 1e3)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    found = {"hits": hits, "times": times, "peak MB": peak}
    found["pushed a second"] = round(len(tools) / inserted)
    (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
