"""The embedded index over the corpus and its copies, made in several processes.

It is the index that `Hybrid` makes of the same tools, in memory: the shared catalog is compared
with it. One process would take ten minutes for a million tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from bench.copies import Copies
from toolfold.search._build import index_arrays
from toolfold.search._columns import Columns
from toolfold.search._dense import table
from toolfold.search._reading import ToolReading
from toolfold.search._scorer import scorer
from toolfold.search._sources import SourceMeans
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import HybridSearcher
from toolfold.search.lexical import Words
from toolfold.tool import Tool
from toolfold.wire.read import read

__all__ = ["Embedded", "embedded", "read_tools"]

_PIECE = 8_000
"""How many tools a process indexes at a time."""


class Embedded(NamedTuple):
    """An index in memory, and what it was made of."""

    searcher: HybridSearcher
    names: Sequence[str]
    """The names of the tools, by place."""
    words: Words


class _Piece(NamedTuple):
    names: list[str]
    sources: list[str]
    digests: list[str]
    columns: Columns
    vectors: Any
    """One row of half precision for each tool."""
    excerpts: Any
    """One row for each tool."""


def read_tools(rows: Sequence[dict[str, Any]]) -> list[Tool]:
    """Return rows of a corpus as tools."""
    return [tool for entry in read(rows) for tool in entry.tools]


def embedded(size: int, workers: int) -> Embedded:
    """Return the index over the corpus and as many of its copies as make up so many tools."""
    whole = len(_copies().rows)
    jobs = [
        (copy, start, min(start + _PIECE, whole, size - copy * whole))
        for copy in range(-(-size // whole))
        for start in range(0, min(whole, size - copy * whole), _PIECE)
    ]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        pieces = list(pool.map(_piece, *zip(*jobs, strict=True)))
    names = [name for piece in pieces for name in piece.names]
    digests = [digest for piece in pieces for digest in piece.digests]
    sources = [source for piece in pieces for source in piece.sources]
    vectors = np.concatenate([piece.vectors for piece in pieces]).astype(np.float32)
    order = sorted(range(len(names)), key=digests.__getitem__)
    words = Words(_joined([piece.columns for piece in pieces]))
    means = SourceMeans(vectors, sources)
    reading = ToolReading(np.concatenate([piece.excerpts for piece in pieces]))
    searcher = HybridSearcher(
        words, Vectors(vectors), names, order, table(), scorer(), means, reading
    )
    return Embedded(searcher, names, words)


@lru_cache(maxsize=1)
def _copies() -> Copies:
    return Copies()


def _piece(copy: int, start: int, end: int) -> _Piece:
    tools = read_tools(list(islice(_copies().copy(copy), start, end)))
    columns, vectors, excerpts = index_arrays(tools, "off")
    return _Piece(
        [tool.name for tool in tools],
        [tool.source or "" for tool in tools],
        [tool.digest for tool in tools],
        columns,
        vectors.astype(np.float16),
        excerpts,
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
