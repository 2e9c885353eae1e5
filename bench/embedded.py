"""The embedded index over the corpus and its copies, made in several processes.

It is the index that `Hybrid` makes of the same tools, in memory: the shared catalog is compared
with it. One process would take ten minutes for a million tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from bench.copies import Copies
from toolfold.search._build import index_arrays
from toolfold.search._columns import Columns
from toolfold.search._dense import table
from toolfold.search._scorer import scorer
from toolfold.search._sources import SourceMeans
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import HybridSearcher
from toolfold.search.lexical import Words
from toolfold.tool import Tool
from toolfold.wire.read import read

__all__ = ["EmbeddedParts", "embedded_parts", "embedded_searcher", "read_tools"]


class EmbeddedParts(NamedTuple):
    """What an index is made of."""

    names: list[str]
    sources: list[str]
    digests: list[str]
    columns: Columns
    vectors: Any
    """One row of half precision for each tool."""


def read_tools(rows: Sequence[dict[str, Any]]) -> list[Tool]:
    """Return rows of a corpus as tools."""
    return [tool for entry in read(rows) for tool in entry.tools]


def embedded_parts(sizes: Sequence[int], workers: int) -> list[EmbeddedParts]:
    """Return the parts of the copies with these sizes, from the corpus itself on."""
    jobs = list(enumerate(sizes))
    if workers < 2:
        return [_part(*job) for job in jobs]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_part, *zip(*jobs, strict=True)))


def embedded_searcher(parts: Sequence[EmbeddedParts]) -> tuple[HybridSearcher, list[str]]:
    """Return the searcher over all parts, and the names of its tools by place."""
    names = [name for part in parts for name in part.names]
    digests = [digest for part in parts for digest in part.digests]
    sources = [source for part in parts for source in part.sources]
    vectors = np.concatenate([part.vectors for part in parts]).astype(np.float32)
    order = sorted(range(len(names)), key=digests.__getitem__)
    searcher = HybridSearcher(
        Words(_joined([part.columns for part in parts])),
        Vectors(vectors),
        names,
        order,
        table(),
        scorer(),
        SourceMeans(vectors, sources),
    )
    return searcher, names


@lru_cache(maxsize=1)
def _copies() -> Copies:
    return Copies()


def _part(number: int, size: int) -> EmbeddedParts:
    rows = [row for row, _ in zip(_copies().copy(number), range(size), strict=False)]
    tools = read_tools(rows)
    columns, vectors = index_arrays(tools, "off")
    return EmbeddedParts(
        [tool.name for tool in tools],
        [tool.source or "" for tool in tools],
        [tool.digest for tool in tools],
        columns,
        vectors.astype(np.float16),
    )


def _joined(parts: Sequence[Columns]) -> Columns:
    numbers: dict[str, int] = {}
    terms: list[Any] = []
    starts: list[Any] = [np.zeros(1, np.int64)]
    for part in parts:
        own = [numbers.setdefault(term, len(numbers)) for term in part.vocabulary]
        terms.append(np.array(own, dtype=np.int32)[part.terms])
        starts.append(part.starts[1:] + starts[-1][-1])
    return Columns(
        tuple(numbers),
        np.concatenate(starts),
        np.concatenate(terms),
        np.concatenate([part.fields for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )
