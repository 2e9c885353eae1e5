"""Which keywords of a request nothing says: not a tool, not its source, not any tool of the list.

A model asks in keywords, each of which counts; in people's sentences many words are by the way,
and of those nothing is said here. How rare a word is among some tools says little of how much it
matters: `table` is rare where few tools have to do with tables, and a restaurant's table is still
not theirs. So words weigh here what they weigh in requests at large, and a word that the tool
lacks may be met by its source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from toolfold.search._sources import SourceEvidence
from toolfold.search._text import STOPWORDS, is_telling, query_words, stem
from toolfold.search.lexical import Coverage, Words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["NOTHING", "Unmet", "UnmetShares", "keywords_in"]

SENTENCE_TO, KEYWORDS_FROM = 0.6, 0.8
"""Up to the first share of words that are no stopwords a request is a sentence, from the second on
it is keywords; between them it is something of both. The fitted floor belongs to these numbers."""

_TERMS_KEPT = 256
"""Terms of which it is known which sources hold them."""


class UnmetShares(NamedTuple):
    """How far a request is keywords, and which share of those is said nowhere, for some tools."""

    keywords: float
    """From 0, a sentence, to 1, keywords alone. All else is multiplied by it."""
    tool: Floats | float
    """Not by the tool."""
    source: Floats | float
    """Nor by any other tool of its source."""
    everywhere: float
    """Nor by any tool of the list."""


NOTHING = UnmetShares(0.0, 0.0, 0.0, 0.0)
"""What is said of a sentence, and of a request with several needs: each tool meets but one."""


def keywords_in(query: str) -> float:
    """Return how far a request is keywords, and no sentence: from 0 to 1."""
    words = query_words(query)
    share = sum(word not in STOPWORDS for word in words) / max(len(words), 1)
    return min(max((share - SENTENCE_TO) / (KEYWORDS_FROM - SENTENCE_TO), 0.0), 1.0)


class Unmet:
    """Looks for the words of requests over one list of tools.

    Args:
        words: The inverted index.
        weight: Says what a lower-case word weighs in requests.
        sources: Where the tools come from.
    """

    def __init__(
        self, words: Words, weight: Callable[[str], float], sources: SourceEvidence
    ) -> None:
        self._words = words
        self._weight = weight
        self._numbers = sources.numbers
        self._sources = sources
        self._sources_with = lru_cache(maxsize=_TERMS_KEPT)(self._holders)

    def shares(self, query: str, said: Coverage, places: NDArray[np.intp]) -> UnmetShares:
        """Return which share of a request is said nowhere, for some tools.

        Args:
            query: The request.
            said: Which of its terms each of the tools holds.
            places: The tools' places in the list.
        """
        import numpy as np

        keywords = keywords_in(query)
        if not keywords:
            return NOTHING
        telling: defaultdict[str, float] = defaultdict(float)
        for word in dict.fromkeys(query_words(query)):
            if is_telling(word):
                telling[stem(word)] += self._weight(word)
        weights = np.array([telling.get(term, 0.0) for term in said.terms], dtype=np.float32)
        mass = float(weights.sum())
        if mass <= 0:
            return NOTHING
        weights *= np.float32(keywords / mass)
        known = [i for i, term in enumerate(said.terms) if term in telling and term in self._words]
        everywhere = keywords - float(weights[known].sum())
        tool = keywords - weights @ said.held
        if self._numbers is None or not known:
            return UnmetShares(keywords, tool, everywhere, everywhere)
        by_source = np.stack([self._sources_with(said.terms[i]) for i in known])
        source = keywords - weights[known] @ by_source
        return UnmetShares(keywords, tool, source[self._numbers[places]], everywhere)

    def _holders(self, term: str) -> Floats:
        return self._sources.holding(term, self._words.posting(term))
