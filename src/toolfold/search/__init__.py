"""Search over a catalog: words, vectors, rankers, and the index that keeps them warm.

Nothing here knows where tools come from or what a model will read. `Ranker`, `Searcher`
and `Match` are what a ranker of your own is made of, `SearchMemory` and `Weighed` what a
memory is: pass it to `fold`.
"""

from toolfold.search._clauses import clauses
from toolfold.search.choice import RANKERS, chosen_ranker
from toolfold.search.index import index_of, is_indexed
from toolfold.search.memory import Lift, SearchMemory, Use, Weighed
from toolfold.search.ranker import Match, Ranker, Searcher, may_wait

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
]
