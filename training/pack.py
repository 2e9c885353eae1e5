"""Write a table and a scorer as the package reads them.

    python training/pack.py TABLE.npz SCORER.json [FOLDER]

The table is turned so that its leading dimensions carry most of what tells tools apart (a
large catalog looks at those first), and numbered by a digest of its content, so that
vectors kept by an earlier table are never taken for this one's. Without a folder, the
package's own weights are replaced.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import dataset
import numpy as np
from catalog import Tool, package_tool, rows

from toolfold.search._dense import WEIGHTS, Table, texts_of

SAMPLE = 6_000


def write(table: dict[str, np.ndarray], folder: Path) -> Table:
    """Write a table and its vocabulary into a folder, and read it back as the package does."""
    vocabulary = json.loads((dataset.DATA / "vocabulary.json").read_text(encoding="utf-8"))
    version = hashlib.sha256(table["vectors"].tobytes()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "table.npz", version=version, **table)
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    return Table(folder)


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
    vectors = np.stack([own.tool(texts_of(tool)) for tool in some])
    _, basis = np.linalg.eigh(vectors.T @ vectors)
    turned_ = table["vectors"].astype(np.float32) * table["scale"].astype(np.float32)[:, None]
    turned_ = turned_ @ basis[:, ::-1].astype(np.float32)
    scale = np.maximum(np.abs(turned_).max(1), 1e-8) / 127
    return {
        **table,
        "vectors": np.round(turned_ / scale[:, None]).astype(np.int8),
        "scale": scale.astype(np.float16),
    }


def main() -> None:
    """Write the weights."""
    folder = Path(sys.argv[3]) if len(sys.argv) > 3 else WEIGHTS
    with np.load(sys.argv[1]) as arrays:
        table = write(turned(dict(arrays)), folder)
    scorer: dict[str, Any] = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    text = json.dumps(scorer, separators=(",", ":"))
    (folder / "scorer.json").write_text(f"{text}\n", encoding="utf-8")
    print(f"table {table.version}, {(folder / 'table.npz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
