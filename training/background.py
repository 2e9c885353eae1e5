"""Choose the tools of the background, and write their vectors beside a table.

    python training/background.py [FOLDER]

Of the tools that a table is trained on those are kept that are not near to one kept before: many
kinds, and of each a few. The real servers that the floor is fitted on are left out, since a server
that nobody knows has no tools in the background either. Names and texts are not written.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import dataset
import numpy as np
import written
from catalog import Tool, package_tool, rows

from toolfold.search._dense import WEIGHTS, Table, texts_of

NAME = "background.npz"

NEAR = 0.35
"""A tool that is nearer than this to one that is kept is left out."""

FIRST = ("docker-mcp-registry", "toolsdk-registry", "toucan-mcp", "written")
"""Whose tools are kept before those of others: tools as agents have them."""

LAST = ("toolbench", "google", "aws")
"""Whose tools are kept after those of others: there are tens of thousands."""

_BLOCK = 2_000


def made(table: Table, is_fold: bool) -> np.ndarray:
    """Return the vectors of the background, as whole numbers."""
    tools = list(ordered(is_fold))
    vectors = np.stack([table.tool(table.cut(texts_of(package_tool(tool)))) for tool in tools])
    chosen = vectors[kept(vectors)]
    largest = np.maximum(np.abs(chosen).max(1, keepdims=True), 1e-6)
    return np.round(chosen / largest * 127).astype(np.int8)


def ordered(is_fold: bool) -> Iterator[Tool]:
    """Yield the tools that a table is trained on in the order in which they are looked at.

    Args:
        is_fold: Whether the table has not seen the held-out sources.
    """
    by_catalog: dict[str, list[Tool]] = {}
    fitted_on = written.real()
    for catalog, name, description, parameters, server in rows(dataset.DATA / "tools.jsonl.gz"):
        held = catalog in dataset.HELD or (catalog == "metatool" and dataset.held_tool(name))
        if name.strip() and (catalog, server) not in fitted_on and not (is_fold and held):
            tool = Tool(name, description, tuple((p[0], p[1]) for p in parameters), server)
            by_catalog.setdefault(catalog, []).append(tool)
    by_catalog["written"] = [member.tool for member in written.taught(is_fold)]
    others = [name for name in sorted(by_catalog) if name not in (*FIRST, *LAST)]
    for name in (*FIRST, *others, *LAST):
        own = by_catalog[name]
        random.Random(name).shuffle(own)
        yield from own


def kept(vectors: np.ndarray) -> list[int]:
    """Return the places of the vectors that are not near to one before them that is kept."""
    places: list[int] = []
    for start in range(0, len(vectors), _BLOCK):
        own = vectors[start : start + _BLOCK]
        before = (own @ vectors[places].T).max(1) if places else np.full(len(own), -1.0)
        among = own @ own.T
        is_kept = before < NEAR
        for i in range(len(own)):
            if is_kept[i]:
                is_kept[i + 1 :] &= among[i, i + 1 :] < NEAR
        places += (start + np.flatnonzero(is_kept)).tolist()
    return places


def write(table: Table, folder: Path, is_fold: bool = False) -> None:
    """Write the vectors."""
    np.savez(folder / NAME, version=table.version, vectors=made(table, is_fold))


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else WEIGHTS
    write(Table(FOLDER), FOLDER)
    print(f"{(FOLDER / NAME).stat().st_size:,} bytes")
