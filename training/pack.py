"""Write a table and a scorer as the package reads them.

    python training/pack.py TABLE.npz [TABLE.npz...] SCORER.json

Of several tables of one training run the mean is taken. The table is turned so that its leading dimensions carry most of what tells tools apart (a
large catalog looks at those first), and numbered by a digest of its content, so that
vectors kept by an earlier table are never taken for this one's. The package's own weights are
replaced.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import background
import dataset
import numpy as np
from catalog import Tool, package_tool, rows

from toolfold.search._dense import WEIGHTS, Table, texts_of

SAMPLE = 6_000

LEAST = 1e-7
"""No weight counts as less, where a mean is taken."""


def write(table: dict[str, np.ndarray], folder: Path) -> Table:
    """Write a table and its vocabulary into a folder, and read it back as the package does."""
    vocabulary = json.loads((dataset.DATA / "vocabulary.json").read_text(encoding="utf-8"))
    version = hashlib.sha256(table["vectors"].tobytes()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "table.npz", version=version, **table)
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    return Table(folder)


def mean_of(tables: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the mean of tables that began alike: of vectors plain, of weights geometric."""
    if len(tables) == 1:
        return tables[0]
    vectors = np.mean([vectors_of(table) for table in tables], axis=0)
    weights = {
        key: np.exp(
            np.mean([np.log(np.maximum(t[key].astype(float), LEAST)) for t in tables], axis=0)
        )
        for key in ("doc_weight", "query_weight", "gain")
    }
    power = np.mean([table["power"] for table in tables], axis=0)
    like = {key: tables[0][key].dtype for key in (*weights, "power")}
    plain = {key: value.astype(like[key]) for key, value in {**weights, "power": power}.items()}
    return {**plain, **in_bytes(vectors)}


def vectors_of(table: dict[str, np.ndarray]) -> np.ndarray:
    """Return the vectors of the pieces."""
    return table["vectors"].astype(np.float32) * table["scale"].astype(np.float32)[:, None]


def in_bytes(vectors: np.ndarray) -> dict[str, np.ndarray]:
    """Return vectors as whole numbers with a scale a row."""
    scale = np.maximum(np.abs(vectors).max(1), 1e-8) / 127
    whole = np.round(vectors / scale[:, None]).astype(np.int8)
    return {"vectors": whole, "scale": scale.astype(np.float16)}


def turned(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the table in the basis of its tools' principal components."""
    with tempfile.TemporaryDirectory() as folder:
        own = write(table, Path(folder))
    tools = list(rows(dataset.DATA / "tools.jsonl.gz"))
    some = [
        package_tool(Tool(r[1], r[2], tuple((p[0], p[1]) for p in r[3]), r[4]))
        for r in tools[:: max(1, len(tools) // SAMPLE)]
        if r[1].strip()
    ]
    vectors = np.stack([own.tool(own.cut(texts_of(tool))) for tool in some])
    _, basis = np.linalg.eigh(vectors.T @ vectors)
    return {**table, **in_bytes(vectors_of(table) @ basis[:, ::-1].astype(np.float32))}


def main() -> None:
    """Write the weights."""
    *paths, scorer_path = map(Path, sys.argv[1:])
    table = write(turned(mean_of([dict(np.load(path)) for path in paths])), WEIGHTS)
    background.write(table, WEIGHTS)
    scorer: dict[str, Any] = json.loads(scorer_path.read_text(encoding="utf-8"))
    text = json.dumps(scorer, separators=(",", ":"))
    (WEIGHTS / "scorer.json").write_text(f"{text}\n", encoding="utf-8")
    print(f"table {table.version}, {(WEIGHTS / 'table.npz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
