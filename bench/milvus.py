"""Milvus Lite over the tools of a shared catalog: the same vectors, and its own BM25."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolfold.search._dense import table

__all__ = ["by_milvus"]

_DRIVER = Path(__file__).resolve().parent / "peers" / "milvus_driver.py"


def by_milvus(
    python: str, owner: Any, queries: Sequence[str]
) -> tuple[list[list[str]], list[float], dict[str, Any]]:
    """Return what Milvus Lite finds, in how many milliseconds, and what it takes.

    Args:
        python: An interpreter that has `milvus-lite` and `pymilvus`.
        owner: A connection to the database that has the tools.
        queries: The requests.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        vectors: list[Any] = []
        with (
            owner.transaction(),
            owner.cursor("every_tool") as cursor,
            (folder / "tools.jsonl").open("w", encoding="utf-8") as lines,
        ):
            cursor.execute("select name, definition, vector::text from toolfold.tools")
            for name, definition, vector in cursor:
                text = f"{name.replace('_', ' ')} {json.loads(definition)['description']}"
                lines.write(json.dumps([name, text]) + "\n")
                vectors.append(np.array(json.loads(vector), dtype=np.float32))
        np.save(folder / "vectors.npy", np.stack(vectors))
        np.save(folder / "asked.npy", np.stack([table().query(query) for query in queries]))
        (folder / "asked.json").write_text(json.dumps(list(queries)), encoding="utf-8")
        done = subprocess.run([python, str(_DRIVER), made], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return found.pop("hits"), found.pop("times"), found
