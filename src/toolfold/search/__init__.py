"""Search over a catalog: words, rankers, and the index that keeps both warm.

Nothing here knows where tools come from or what a model will read.
"""

from toolfold.search.index import Index, index_of
from toolfold.search.ranker import RANKERS, Match, Ranker, ranker_named

__all__ = ["RANKERS", "Index", "Match", "Ranker", "index_of", "ranker_named"]
