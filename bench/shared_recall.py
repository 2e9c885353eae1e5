"""The shared catalog beside the embedded index on every corpus: what each finds of what is right.

python -m bench shared-recall    # wants an environment that has PostgreSQL: `make cluster`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import data
from toolfold.evaluation import LabelledRequest, load_corpus
from toolfold.evaluation.measure import recall_of_needs
from toolfold.search.hybrid import Hybrid

__all__ = ["shared_recall"]

_SPLITS = {
    "azure-mcp": "dev",
    "acebench": "dev",
    "nestful": "dev",
    "seal-tools": "dev",
    "metatool": "dev",
    "toollinkos": "test",
    "callnavi": "test",
    "stabletoolbench": "test",
    "bfcl": "test",
    "toolalpaca": "test",
}
_REQUESTS = 100
"""How many requests of a corpus are drawn, by chance and the same each time."""

Row = dict[str, Any]


def shared_recall() -> list[Row]:
    """Recall@5 of the shared catalog and the embedded index, and how often their five are the same.

    Neither has a floor here.
    """
    folder = data.corpora()
    if folder is None:
        return []
    from cluster.postgres import APP, OWNER, Postgres, why_not

    if reason := why_not():
        print(f"note: skipped, {reason}: run `make cluster` once", file=sys.stderr)
        return []
    import psycopg

    from toolfold.store.postgres.migrations import migrate

    with Postgres() as server:
        with psycopg.connect(server.address(OWNER), autocommit=True) as owner:
            owner.execute("create role app login")
            migrate(owner, APP)
        rows = [_row(folder / name, split, server.address(APP)) for name, split in _SPLITS.items()]
    means = {key: _mean(row[key] for row in rows) for key in ("embedded", "shared", "same five")}
    return [*rows, {"corpus": "mean", "tools": "", "requests": "", **means}]


def _row(folder: Path, split: str, address: str) -> Row:
    from toolfold.shared import SharedCatalog

    corpus = load_corpus(folder, split=split).drawn(_REQUESTS, None, 1)
    tools = list(corpus.catalog)
    searcher = Hybrid().searcher(tools)
    found: dict[str, list[list[list[str]]]] = {"embedded": [], "shared": []}
    with SharedCatalog(address, tenant=corpus.name) as catalog:
        catalog.push(tools)
        for request in corpus.requests:
            own = [[tools[m.position].name for m in searcher.search(n, 5)] for n in request.needs]
            found["embedded"].append(own)
            theirs = [[hit.tool.name for hit in catalog.search(n, 5)] for n in request.needs]
            found["shared"].append(theirs)
    pairs = zip(*found.values(), strict=True)
    same = [set(a) == set(b) for one, other in pairs for a, b in zip(one, other, strict=True)]
    right = {name: _mean(map(_five, corpus.requests, hits)) for name, hits in found.items()}
    about = {"corpus": corpus.name, "tools": len(tools), "requests": len(corpus.requests)}
    return {**about, **right, "same five": _mean(same)}


def _five(request: LabelledRequest, hits: list[list[str]]) -> float:
    return recall_of_needs(request, hits, 5)


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return round(sum(given) / len(given), 3)
