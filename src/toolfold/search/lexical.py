"""BM25 over the weighted words of tools.

Every (term, tool) pair's share of the score is computed when the index is built, so a
search only adds up a few short arrays. Scores depend on the set of tools, not on their
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, log
from typing import TYPE_CHECKING

from toolfold.search.document import Document, document
from toolfold.search.ranker import Match
from toolfold.search.text import STOPWORDS, raw_words, stem
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BM25", "BM25Searcher", "query_terms"]

K1 = 1.2
B = 0.6
_QUERY_TERMS_AT_MOST = 64
_SUBSTRING_AT_LEAST = 3


class BM25:
    """Ranks by the words a query and a tool share, rare words first."""

    name = "bm25"

    def searcher(self, tools: Sequence[Tool]) -> BM25Searcher:
        """Return a searcher over the tools."""
        return BM25Searcher([document(tool) for tool in tools], [tool.name for tool in tools])


class BM25Searcher:
    """Answers queries over one list of tools.

    Args:
        documents: The tools' words.
        names: The tools' names, for the literal fallback.
    """

    def __init__(self, documents: Sequence[Document], names: Sequence[str]) -> None:
        import numpy as np

        self._names = [" ".join(raw_words(name)) for name in names]
        self._size = len(documents)
        vocabulary: dict[str, int] = {}
        ids: list[int] = []
        for item in documents:
            for term in item.terms:
                ids.append(vocabulary.setdefault(term, len(vocabulary)))
        term_ids = np.fromiter(ids, dtype=np.int32, count=len(ids))
        counts = np.fromiter((len(d.terms) for d in documents), np.int64, self._size)
        weights = np.fromiter((w for d in documents for w in d.weights), np.float32, len(ids))
        lengths = np.fromiter((d.length for d in documents), np.float32, self._size)
        tools = np.repeat(np.arange(self._size, dtype=np.int32), counts)

        # fsum is exact, so the mean does not depend on the order of the tools.
        mean = fsum(d.length for d in documents) / max(self._size, 1) or 1.0
        norms = (K1 * (1 - B + B * lengths / mean)).astype(np.float32)
        order = np.argsort(term_ids, kind="stable")
        frequency = np.bincount(term_ids, minlength=len(vocabulary))
        self.idf = np.array(
            [log(1 + (self._size - df + 0.5) / (df + 0.5)) for df in frequency.tolist()],
            dtype=np.float32,
        )
        shares = self.idf[term_ids] * weights * (K1 + 1) / (weights + norms[tools])
        self.vocabulary = vocabulary
        self._starts = np.concatenate(([0], np.cumsum(frequency))).tolist()
        self._tools = tools[order]
        self._shares = shares[order].astype(np.float32)

    def scores(self, terms: Sequence[tuple[str, float]]) -> NDArray[np.float32]:
        """Return the score of every tool for weighted terms."""
        import numpy as np

        total = np.zeros(self._size, dtype=np.float32)
        for term, weight in terms:
            i = self.vocabulary.get(term)
            if i is not None:
                rows = slice(self._starts[i], self._starts[i + 1])
                total[self._tools[rows]] += self._shares[rows] * np.float32(weight)
        return total

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return the best matches by BM25; by the letters of the name where no word fits."""
        scores = self.scores([(term, 1.0) for term in query_terms(query)])
        found = top(scores, limit)
        return found or self._by_substring(query, limit)

    def explain(self, query: str, position: int) -> str:
        """Name the words that match, each with its share of the score."""
        shares: list[tuple[float, str]] = []
        for term in query_terms(query):
            share = float(self.scores([(term, 1.0)])[position])
            if share > 0:
                shares.append((-share, term))
        if not shares:
            return "the name holds the letters of the query"
        return "words " + ", ".join(f"{term} {-share:.2f}" for share, term in sorted(shares))

    def _by_substring(self, query: str, limit: int) -> list[Match]:
        words = [word for word in raw_words(query) if len(word) >= _SUBSTRING_AT_LEAST]
        if not words:
            return []
        joined = "".join(words)
        found: list[Match] = []
        for position, name in enumerate(self._names):
            letters = name.replace(" ", "")
            held = sum(1 for word in words if word in letters)
            if joined in letters or held:
                found.append(Match(position, held / len(words)))
        found.sort(key=lambda match: -match.score)
        return found[:limit]


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, without stopwords where others are left."""
    words = list(dict.fromkeys(raw_words(query)))[:_QUERY_TERMS_AT_MOST]
    telling = [word for word in words if word not in STOPWORDS] or words
    return list(dict.fromkeys(stem(word) for word in telling))


def top(scores: NDArray[np.float32], limit: int) -> list[Match]:
    """Return the best positive scores, best first, ties in order of position."""
    import numpy as np

    positive = np.flatnonzero(scores > 0)
    if len(positive) > 4 * limit:
        values = scores[positive]
        edge = np.partition(values, len(values) - limit)[len(values) - limit]
        positive = positive[values >= edge]
    order = positive[np.argsort(-scores[positive], kind="stable")][:limit]
    return [Match(i, s) for i, s in zip(order.tolist(), scores[order].tolist(), strict=True)]
