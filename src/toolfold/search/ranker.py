"""The protocol that every ranker keeps, and the rankers by name.

A ranker turns tools into a `Searcher` once per content; a searcher answers queries with
places in that list and scores. Neither keeps anything of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from toolfold.errors import ConfigError
from toolfold.tool import Tool

__all__ = ["RANKERS", "Match", "Ranker", "Searcher", "ranker_named"]


class Match(NamedTuple):
    """One tool that answers a query."""

    position: int
    """Its place in the list that was indexed."""

    score: float
    """How well it answers, in the ranker's own measure. Higher is better."""


class Searcher(Protocol):
    """Answers queries over one list of tools."""

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return at most `limit` matches, best first, ties in the list's order."""
        ...

    def explain(self, query: str, position: int) -> str:
        """Say in one line why the tool at `position` answers the query."""
        ...


@runtime_checkable
class Ranker(Protocol):
    """Makes searchers. Pass your own to `fold`, or name one in the settings."""

    @property
    def name(self) -> str:
        """The name under which the ranker is known."""
        ...

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        """Return a searcher over the tools."""
        ...


def _bm25() -> Ranker:
    from toolfold.search.lexical import BM25

    return BM25()


def _keyword() -> Ranker:
    from toolfold.search.keyword import Keyword

    return Keyword()


RANKERS: dict[str, Callable[[], Ranker]] = {"bm25": _bm25, "keyword": _keyword}
"""The rankers that come with toolfold, by name."""


def ranker_named(name: str) -> Ranker:
    """Return the ranker of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in RANKERS:
        raise ConfigError(f"no ranker is named {name!r}", hint=f"use one of {', '.join(RANKERS)}")
    return RANKERS[name]()
