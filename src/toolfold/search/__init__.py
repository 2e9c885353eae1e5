"""Search over a catalog: words, vectors, rankers, and the index that keeps them warm.

Nothing here knows where tools come from or what a model will read. `Ranker`, `Searcher`
and `Match` are what a ranker of your own is made of, `SearchMemory` and `Weighed` what a
memory is: pass it to `fold`.
"""

from typing import TYPE_CHECKING, Any

from toolfold.search.choice import RANKERS, chosen_ranker
from toolfold.search.index import index_of, is_indexed
from toolfold.search.memory import Lift, SearchMemory, Use, Weighed
from toolfold.search.ranker import Match, Ranker, Searcher, may_wait

if TYPE_CHECKING:
    from toolfold.search._clauses import clauses
    from toolfold.search._text import telling_words

__all__ = [
    "RANKERS",
    "Lift",
    "Match",
    "Ranker",
    "SearchMemory",
    "Searcher",
    "Use",
    "Weighed",
    "chosen_ranker",
    "clauses",
    "index_of",
    "is_indexed",
    "may_wait",
    "telling_words",
]


def __getattr__(name: str) -> Any:
    """Return what reads a request, which only a search needs."""
    from importlib import import_module

    rooms = {"clauses": "_clauses", "telling_words": "_text"}
    if name not in rooms:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{rooms[name]}"), name)
