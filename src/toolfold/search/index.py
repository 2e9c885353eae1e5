"""The index of a list of tools: names and numbers, keyed by content.

An index never holds a tool. It answers with names, and whoever asks takes the tools of
those names from its own catalog, so a search can only ever return what is live.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolfold.memo import Memo
from toolfold.search.ranker import Ranker, Searcher
from toolfold.tool import Tool

__all__ = ["Found", "Index", "index_of"]


class Found(NamedTuple):
    """One name that answers a query."""

    name: str
    score: float


class Index:
    """A ranker's view of one list of tools. Safe to share between threads.

    Args:
        names: The tools' names, in the list's order.
        searcher: What answers the queries.
    """

    __slots__ = ("_names", "_positions", "_searcher")

    def __init__(self, names: Sequence[str], searcher: Searcher) -> None:
        self._names = tuple(names)
        self._positions = {name: i for i, name in enumerate(self._names)}
        self._searcher = searcher

    def search(self, query: str, limit: int) -> tuple[Found, ...]:
        """Return the names that answer the query, best first."""
        matches = self._searcher.search(query, limit)
        return tuple(Found(self._names[match.position], match.score) for match in matches)

    def explain(self, query: str, name: str) -> str:
        """Say in one line why the tool of that name answers the query."""
        return self._searcher.explain(query, self._positions[name])


_INDEXES: Memo[tuple[str, object], Index] = Memo(32)


def index_of(tools: Sequence[Tool], fingerprint: str, ranker: Ranker) -> Index:
    """Return the index of a list of tools, built once per content and ranker.

    Args:
        tools: The tools.
        fingerprint: The digest of their content and order.
        ranker: How to rank. Rankers that are equal share an index.
    """
    return _INDEXES.get_or(
        (fingerprint, ranker), lambda: Index([tool.name for tool in tools], ranker.searcher(tools))
    )
