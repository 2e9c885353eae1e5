"""The protocol that every ranker keeps.

A ranker turns tools into a `Searcher` once per content; a searcher answers queries with
places in that list and scores. Neither keeps anything of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from toolfold.tool import Tool

__all__ = ["Match", "Ranker", "Searcher", "may_wait"]


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
    """Makes searchers. Pass your own to `fold`, or name one in the settings.

    Equal rankers share an index. One whose searches only compute may say so with
    `waits = False`: a host then runs them where it is, and not in a thread.
    """

    @property
    def name(self) -> str:
        """The name under which the ranker is known."""
        ...

    @property
    def calibrated(self) -> bool:
        """Whether scores are probabilities, so that the relevance floor can judge them."""
        ...

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        """Return a searcher over the tools."""
        ...


def may_wait(ranker: Ranker) -> bool:
    """Whether a search may wait for something outside. A ranker that does not say may."""
    return bool(getattr(ranker, "waits", True))
