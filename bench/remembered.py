"""A search with a memory of many requests: what it takes, in time and in memory.

`python -m bench.remembered 100000` runs one process and prints a row.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from dataclasses import replace
from statistics import median
from typing import Any

from bench import data
from toolfold import Catalog, Settings
from toolfold.bridge import Bridge
from toolfold.evaluation.measure import percentile
from toolfold.memory import Memory
from toolfold.memory._evidence import Weight
from toolfold.memory._store import KeptRequest
from toolfold.memory._weighing import embedded, packed


def main() -> None:
    """Fill a memory, search with it and without, and print what each took."""
    count = int(sys.argv[1])
    catalog = Catalog.read(list(data.catalog("deploy-226").tools))
    plain = Bridge.over(catalog, Settings(enabled="on", cache_dir="off"))
    memory = _filled(count, catalog)
    bridge = replace(plain, memory=memory)
    queries = [query for kind in ("short", "long") for query in data.queries(kind)]
    began = time.perf_counter()
    bridge.search(queries[0], 5)
    first = (time.perf_counter() - began) * 1e3
    # Made-up requests teach nothing, so that the record would have no say.
    memory._weighing().set_weight(None, catalog, Weight(2.0, 1.0))  # pyright: ignore[reportPrivateUsage]
    row: dict[str, Any] = {"requests": memory.size, "first ms": round(first, 1)}
    for name, asked in (("without", plain), ("with", bridge)):
        times: list[float] = []
        for query in queries:
            began = time.thread_time()  # of the processor: others work on it, too
            asked.search(query, 5)
            times.append((time.thread_time() - began) * 1e3)
        row[f"{name} p50 ms"] = round(median(times), 3)
        row[f"{name} p95 ms"] = round(percentile(times, 95), 3)
    row["arrays MB"] = round(memory.nbytes / 2**20, 1)
    row["peak MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    json.dump(row, sys.stdout)


def _filled(count: int, catalog: Catalog) -> Memory:
    """Return a memory of made-up requests, each of words of its tool and of others."""
    draw = random.Random(1)
    memory = Memory(bound=2 * count)
    memory.flush()
    index = memory._index  # pyright: ignore[reportPrivateUsage]
    assert index is not None
    tools = catalog.tools
    words = sorted({word for tool in tools for word in tool.description.split()[:12]})
    for number in range(count):
        tool = draw.choice(tools)
        text = " ".join((*tool.description.split()[:4], *draw.choices(words, k=5)))
        key = (tool.name, tool.digest)
        ranked = tuple(((t.name, t.digest), -3.0) for t in draw.sample(tools, 3))
        vector = packed(embedded(text))
        uses = ((key, 1, 0),)
        index.put(KeptRequest(number, number, str(number % 50), text, 0.0, vector, ranked, uses))
    return memory


if __name__ == "__main__":
    main()
