"""Search over a catalog: words, vectors, rankers, and the index that keeps them warm.

Nothing here knows where tools come from or what a model will read.
"""

from toolfold.search.choice import RANKERS, chosen_ranker
from toolfold.search.index import Index, index_of
from toolfold.search.ranker import Match, Ranker, Searcher

__all__ = ["RANKERS", "Index", "Match", "Ranker", "Searcher", "chosen_ranker", "index_of"]
