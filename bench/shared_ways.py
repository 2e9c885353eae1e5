"""Ways in which PostgreSQL can propose tools: what each finds of the best, and how fast.

By words the best are the 40 of exact BM25F over all tools, by meaning the 40 with the highest
cosine among the 200 that a first look leaves: what the embedded index weighs. A way that another
index serves is measured with that index, which is dropped afterwards.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from bench.embedded import Embedded
from bench.timed import timed
from toolfold.evaluation.measure import percentile
from toolfold.search.partial import AskedText
from toolfold.shared import _engine
from toolfold.shared._engine import Engine, Holders
from toolfold.shared._rows import sparse
from toolfold.shared._scopes import ScopeFilter

__all__ = ["ways"]

_TENANT = "default"
_BEST = 40
_GRAPH_UP_TO = 200_000
"""Up to so many tools other indexes are built for comparison: each takes minutes for a million."""

_RANKING = ("pg_search", "pg_textsearch", "vchord_bm25", "pg_bestmatch", "rum")
"""Extensions that rank by words, BM25 or like it."""

Row = dict[str, Any]
Propose = Callable[[str], list[str]]


def ways(owner: Any, address: str, index: Embedded, queries: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each way.

    Args:
        owner: A connection as the owner of the schema.
        address: Of the database, for everybody else.
        index: The embedded index over the same tools.
        queries: What is asked for.
    """
    size = len(index.names)
    places = {name: place for place, name in enumerate(index.names)}
    bests = {query: _best_by_words(index, query) for query in queries}
    nears = {query: _best_by_meaning(index, query) for query in queries}

    def row(way: str, propose: Propose, best: dict[str, Any], built: Row) -> Row:
        found, times = timed(propose, queries)
        shares = [best[q]([places[n] for n in own]) for q, own in zip(queries, found, strict=True)]
        return {
            "tools": size,
            "system": way,
            "p50 ms": round(median(times), 2),
            "p95 ms": round(percentile(times, 95), 2),
            "of best 40": round(sum(shares) / len(shares), 3),
        } | built

    with _asking(address, size) as asking:
        in_place = _sizes(owner)
        yield row("words: ours", asking.said, bests, in_place["tools_by_term"])
        with asking.only_rare():
            yield row("words: rare ones alone", asking.said, bests, {})
        if size <= _GRAPH_UP_TO:
            with _built(owner, asking, "hnsw (words sparsevec_ip_ops)") as built:
                for ef in (200, 1_000):
                    way = f"words: hnsw over sparsevec, ef {ef}"
                    yield row(way, asking.by_sparse_graph(ef), bests, built)
        for ef in (400, 800):
            way = f"meaning: hnsw over 64 of 256, ef {ef}"
            yield row(way, asking.near(ef), nears, in_place["tools_by_leading"])
        if size <= _GRAPH_UP_TO:
            with _built(owner, asking, "hnsw (vector halfvec_ip_ops)") as built:
                for ef in (100, 400):
                    way = f"meaning: hnsw over 256, ef {ef}"
                    yield row(way, asking.by_graph(ef), nears, built)
    there = owner.execute(
        "select name from pg_available_extensions where name = any(%s)", (list(_RANKING),)
    ).fetchall()
    known = ", ".join(name for (name,) in there)
    print(f"note: extensions that rank by words: {known or 'none'}", file=sys.stderr)


def _best_by_words(index: Embedded, query: str) -> Callable[[Sequence[int]], float]:
    """Return what says which share of the best by words is among some tools."""
    from toolfold.search.lexical import query_terms

    scores = index.words.scores(query_terms(query, index.words.holds))
    kth = np.partition(scores, len(scores) - _BEST)[len(scores) - _BEST]
    # Those with the last score of all are as good as each other.
    least = max(float(kth), 1e-6)
    wanted = min(_BEST, int((scores >= least).sum()))
    held = {int(place): True for place in np.flatnonzero(scores >= least)}
    return lambda own: min(sum(p in held for p in own) / wanted, 1.0) if wanted else 1.0


def _best_by_meaning(index: Embedded, query: str) -> Callable[[Sequence[int]], float]:
    from toolfold.search._dense import table

    vectors = index.searcher._vectors  # pyright: ignore[reportPrivateUsage]
    found = vectors.search(table().query(query)[None], _BEST, _BEST).candidates
    best = {int(place) for place in found}
    return lambda own: len(best & set(own)) / len(best)


def _sizes(owner: Any) -> dict[str, Row]:
    rows = owner.execute(
        "select relname, pg_relation_size(oid) / 1048576.0 from pg_class"
        " where relname in ('tools_by_term', 'tools_by_leading')"
    )
    return {name: {"index MB": round(float(size))} for name, size in rows}


@contextmanager
def _built(owner: Any, asking: _Asking, how: str) -> Generator[Row]:
    """Build an index for as long as it is needed."""
    name = "another"
    began = time.perf_counter()
    owner.execute(f"create index {name} on toolfold.tools using {how}")
    taken = time.perf_counter() - began
    [(size,)] = owner.execute(f"select pg_relation_size('toolfold.{name}') / 1048576.0").fetchall()
    yield {"indexed in s": round(taken, 1), "index MB": round(float(size))}
    asking.rest()
    owner.execute(f"drop index toolfold.{name}")


@contextmanager
def _asking(address: str, size: int) -> Generator[_Asking]:
    import psycopg
    from pgvector.psycopg import register_vector

    with psycopg.connect(address) as connection:
        register_vector(connection)
        connection.execute("select set_config('toolfold.tenant', %s, false)", (_TENANT,))
        yield _Asking(connection, size)


class _Asking:
    """Asks for the tools that come into question, in this way and that."""

    def __init__(self, connection: Any, size: int) -> None:
        self._connection = connection
        self._engine = Engine(connection, _TENANT, ScopeFilter(None, None), size)
        self._engine.prepare()
        self._holders = Holders(connection, _TENANT, None, 0)

    def rest(self) -> None:
        """End the transaction, in which everything is asked."""
        self._connection.commit()

    def _text(self, query: str) -> AskedText:
        return self._holders.read(query)[0]

    def _names(self, ids: list[int]) -> list[str]:
        rows = self._connection.execute(
            "select name from toolfold.tools where id = any(%s)", (ids,)
        ).fetchall()
        return [row[0] for row in rows]

    def said(self, query: str) -> list[str]:
        """Ask as the catalog does, by words."""
        return self._names(self._engine.said(self._text(query), self._holders))

    @contextmanager
    def only_rare(self) -> Generator[None]:
        """Leave out all that is looked for beside rare words."""
        before = _engine.chosen_words

        def rare(worth: Any, holders: Any, size: int) -> Any:
            return replace(before(worth, holders, size), strong=[], pairs=[])

        _engine.chosen_words = rare
        yield
        _engine.chosen_words = before

    def near(self, ef: int) -> Propose:
        """Ask as the catalog does, by meaning."""
        self._engine.prepare(ef)
        return lambda query: self._names(self._engine.near(self._text(query)))

    def by_graph(self, ef: int) -> Propose:
        """Ask an index over all dimensions."""
        from pgvector import HalfVector

        return self._ordered(ef, lambda text: ("vector <#> %s", HalfVector(text.vector)))

    def by_sparse_graph(self, ef: int) -> Propose:
        """Ask an index over words as sparse vectors."""

        def how(text: AskedText) -> tuple[str, Any]:
            worth = self._engine.worth(text, self._holders)
            return "words <#> %s", sparse(_TENANT, worth)

        return self._ordered(ef, how)

    def _ordered(self, ef: int, how: Callable[[AskedText], tuple[str, Any]]) -> Propose:
        self._engine.prepare(ef)

        def propose(query: str) -> list[str]:
            order, value = how(self._text(query))
            rows = self._connection.execute(
                f"select name from toolfold.tools where tenant = '{_TENANT}' and trusted"
                f" order by {order} limit {_BEST}",
                (value,),
            ).fetchall()
            return [row[0] for row in rows]

        return propose
