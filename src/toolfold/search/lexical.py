"""BM25F: the words a query and a tool share, rare words first, fields weighed apart.

Every (term, tool) pair's share of the score is computed when the index is built, so a
search only adds up a few short arrays. Scores depend on the set of tools, not on their
order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log1p
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.search._columns import Columns, columns_of
from toolfold.search._document import DETAILS, FIELDS, NAME, document
from toolfold.search._lexicon import readings
from toolfold.search._synonyms import SYNONYM_WEIGHT, SYNONYMS
from toolfold.search._text import is_telling, query_words, raw_words, stem
from toolfold.search._vectors import best_places
from toolfold.search.ranker import Match
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "BM25",
    "BM25Searcher",
    "Coverage",
    "Frequencies",
    "WordStatistics",
    "Words",
    "frequencies",
    "mean_lengths",
    "query_terms",
    "top_matches",
]

K1 = 1.2
"""How soon more of the same word stops counting: the usual value, as in Lucene."""

FIELD_WEIGHTS = {
    "name": 3.0,
    "source": 0.7,
    "description": 1.0,
    "parameters": 0.7,
    "details": 0.25,
    "aliases": 3.0,
}
"""What a word counts by its place: names and aliases say what a tool is, while the texts of
parameters (`details`) hold many words by chance."""

FIELD_LENGTH_NORMS = {
    "name": 0.3,
    "source": 0.3,
    "description": 0.6,
    "parameters": 0.6,
    "details": 0.6,
    "aliases": 0.3,
}
"""How much less a word counts in a long field, from 0, not at all, to 1, in proportion: of names
the long ones are no vaguer, of texts they are."""

FOREIGN_SHARE = 0.4
"""Of the terms of a tool so many are of another script where it is described in one; a name, a unit
or an alias in it makes no such tool. What was read of it in English counts as well."""

IN_HEAD, IN_NAME = 2, 4
"""Marks of a term in a tool: it stands elsewhere than in the texts of parameters; in the name."""

_QUERY_WORDS_AT_MOST = 128
"""Distinct words of a request that are looked up: what bounds the price of a long one."""

_POSTINGS_KEPT = 256
"""Terms whose tools are at hand: a search looks each up more than once."""

_SPREAD_AT_MOST = 8_192
"""In a list of up to so many tools a term's marks are spread over all of them, and taken from
there; in a larger one each tool is looked for among those that hold the term."""

_SUBSTRING_AT_LEAST = 4
"""Letters that a word needs to be looked for inside names: shorter ones are in too many."""


class Posting(NamedTuple):
    """The tools that hold a term."""

    tools: NDArray[np.int32]
    """Their places, in order."""
    shares: NDArray[np.float32]
    """What the term adds to the score of each."""
    marks: NDArray[np.uint8]
    """Where it stands: 1, and `IN_HEAD` and `IN_NAME` where they hold."""
    idf: float
    """How rare the term is."""


class Coverage(NamedTuple):
    """How much of some texts a few tools cover, weighing rare words more."""

    covered: NDArray[np.float32]
    """Which share of each text (rows) each tool (columns) holds."""
    headed: NDArray[np.float32]
    """The same, but for the texts of parameters, which hold many words by chance."""
    named: NDArray[np.float32]
    """How much of the first text each tool's name holds, not as a share."""
    mass: float
    """How much there is of the first text."""
    length: int
    """How many distinct words of it tell something."""
    terms: Sequence[str]
    """The terms of the texts, each once."""
    held: NDArray[np.float32]
    """Whether each term (rows) is in each tool (columns): 1 or 0."""


class WordStatistics(NamedTuple):
    """How words are spread over all tools, of which a list holds only some."""

    size: int
    """How many tools there are."""
    holders: Mapping[str, int]
    """How many of them hold each term that a search has to do with; none where it is missing."""
    mean_lengths: NDArray[np.float64]
    """The mean length of each field, over the tools that have it."""


class Words:
    """The inverted index of a list of tools.

    Args:
        columns: The tools' words.
        statistics: How words are spread over all tools, where the list holds only some.
    """

    def __init__(self, columns: Columns, statistics: WordStatistics | None = None) -> None:
        import numpy as np

        self.size = columns.size
        self.among = self.size if statistics is None else statistics.size
        """How many tools there are in all: as many as are in the list, or more."""
        self._all = statistics
        self.posting = lru_cache(maxsize=_POSTINGS_KEPT)(self._posting)
        self._numbers = {term: i for i, term in enumerate(columns.vocabulary)}
        known = self._numbers if statistics is None else statistics.holders
        self.holds = known.__contains__
        """The same as `in`, for who asks often: whether any tool holds a term."""
        found = frequencies(
            columns, mean_lengths(columns) if statistics is None else statistics.mean_lengths
        )
        terms = found.terms
        tf: NDArray[Any] = found.counts
        listed = np.bincount(terms, minlength=len(columns.vocabulary))
        holders = listed
        if statistics is not None:
            counted = statistics.holders
            holders = np.array([counted.get(t, 1) for t in columns.vocabulary], dtype=np.int64)
        self._tools = found.tools
        self._marks = (1 + IN_HEAD * found.headed + IN_NAME * found.named).astype(np.uint8)
        marked = np.arange(2 * IN_NAME, dtype=np.uint8)
        self._meanings = np.stack([marked > 0, marked & IN_HEAD > 0, marked & IN_NAME > 0]).astype(
            np.float32
        )
        self._starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(listed)))
        self.idf = np.log1p((self.among - holders + 0.5) / (holders + 0.5))
        self._shares = (
            self.idf.astype(np.float32)[terms] * tf * np.float32(K1 + 1) / (tf + np.float32(K1))
        )
        telling = np.array([is_telling(term) for term in columns.vocabulary], dtype=bool)
        own = np.bincount(self._tools, minlength=self.size)
        foreign = np.array([not term.isascii() for term in columns.vocabulary], dtype=bool)
        of_them = np.bincount(self._tools, weights=foreign[terms], minlength=self.size)
        self.foreign: NDArray[np.bool_] = of_them > FOREIGN_SHARE * own
        """Of each tool, whether it is described in a script of its own."""
        in_names = np.where(found.named & telling[terms], self.idf[terms], 0.0)
        self.name_mass = np.maximum(
            np.bincount(self._tools, weights=in_names, minlength=self.size), 1e-6
        ).astype(np.float32)

    def __contains__(self, term: str) -> bool:
        """Whether any tool holds a term."""
        return self.holds(term)

    def _posting(self, term: str) -> Posting | None:
        """Return the tools that hold a term, or None where none does."""
        i = self._numbers.get(term)
        if i is None:
            return None
        rows = slice(int(self._starts[i]), int(self._starts[i + 1]))
        return Posting(
            self._tools[rows],
            self._shares[rows],
            self._marks[rows],
            float(self.idf[i]),
        )

    def scores(self, terms: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the score of every tool for weighted terms."""
        import numpy as np

        total = np.zeros(self.size, dtype=np.float32)
        for term, weight in terms.items():
            posting = self.posting(term)
            if posting is not None:
                shares = posting.shares
                shares = shares if weight == 1 else shares * np.float32(weight)
                np.add.at(total, posting.tools, shares)
        return total

    def coverage(self, texts: Sequence[Mapping[str, float]], places: NDArray[np.intp]) -> Coverage:
        """Return how much of some texts the tools at some places cover."""
        import numpy as np

        first, *others = texts
        distinct = list(first if not others else dict.fromkeys(t for own in texts for t in own))
        postings = [self.posting(term) for term in distinct]
        both = zip(distinct, postings, strict=True)
        idf = np.array([self._rarity(t) if p is None else p.idf for t, p in both], np.float32)
        weights = np.array([[own.get(term, 0.0) for term in distinct] for own in texts], np.float32)
        said = weights >= 1
        mass: NDArray[np.float32] = np.maximum(said.astype(np.float32) @ idf, np.float32(1e-6))
        weights *= idf
        # One look-up for all of them: whether a term is held, in the head, in the name.
        held = self._meanings.take(self._marks_at(postings, places), axis=1)
        covered, headed = weights @ held[:2] / mass[:, None]
        return Coverage(
            covered=covered,
            headed=headed,
            named=weights[0] @ held[2],
            mass=float(mass[0]),
            length=int(np.count_nonzero(said[0])),
            terms=distinct,
            held=held[0],
        )

    def _rarity(self, term: str) -> float:
        """Return how rare a term is that no tool of the list holds."""
        holders = 0 if self._all is None else self._all.holders.get(term, 0)
        return float(log1p((self.among - holders + 0.5) / (holders + 0.5)))

    def _marks_at(
        self, postings: Sequence[Posting | None], places: NDArray[np.intp]
    ) -> NDArray[np.uint8]:
        """Return the marks of terms (rows) in the tools at some places (columns)."""
        import numpy as np

        if self.size <= _SPREAD_AT_MOST:
            spread = np.zeros((len(postings), self.size), dtype=np.uint8)
            for row, posting in zip(spread, postings, strict=True):
                if posting is not None:
                    row.put(posting.tools, posting.marks)
            return spread.take(places, axis=1)
        marks = np.zeros((len(postings), len(places)), dtype=np.uint8)
        wanted = places.astype(np.int32)
        for row, posting in zip(marks, postings, strict=True):
            if posting is not None:
                at = posting.tools.searchsorted(wanted)
                held = posting.tools.take(at, mode="clip") == wanted
                np.multiply(held, posting.marks.take(at, mode="clip"), out=row)
        return marks


class Frequencies(NamedTuple):
    """How often each term stands in each tool that holds it, by term and then by tool."""

    terms: NDArray[np.int32]
    """The term, one for each pair."""
    tools: NDArray[np.int32]
    """The tool."""
    counts: NDArray[np.float32]
    """How often, each field weighed by what it says and by its length."""
    named: NDArray[np.bool_]
    """Whether it stands in the name."""
    headed: NDArray[np.bool_]
    """Whether it stands elsewhere than in the texts of parameters."""


def frequencies(columns: Columns, means: NDArray[np.float64]) -> Frequencies:
    """Return how often each term stands in each tool.

    Args:
        columns: The tools' words.
        means: The mean length of each field.
    """
    import numpy as np

    size = max(columns.size, 1)
    tools = np.repeat(np.arange(columns.size, dtype=np.int32), np.diff(columns.starts))
    weight = np.array([FIELD_WEIGHTS[name] for name in FIELDS])
    b = np.array([FIELD_LENGTH_NORMS[name] for name in FIELDS])
    norms = (weight / (1 - b + b * columns.lengths / means)).astype(np.float32)
    frequency = columns.counts * norms[tools, columns.fields]

    # Entries of one term and tool, one for each field, come to stand side by side.
    key = columns.terms * np.int64(size) + tools
    del tools
    order = np.argsort(key, kind="stable").astype(np.int32)
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1)) if len(key) else key
    counts = np.add.reduceat(frequency[order], first) if len(key) else frequency
    named = columns.fields[order] == NAME
    headed = columns.fields[order] != DETAILS
    del order, frequency
    key = key[first]
    return Frequencies(
        (key // size).astype(np.int32),
        (key % size).astype(np.int32),
        counts,
        np.logical_or.reduceat(named, first) if len(key) else named,
        np.logical_or.reduceat(headed, first) if len(key) else headed,
    )


def mean_lengths(columns: Columns) -> NDArray[np.float64]:
    """Return the mean length of each field, over the tools that have it."""
    import numpy as np

    # Sums of whole numbers are exact, so the means do not depend on the order of the tools.
    filled = np.maximum((columns.lengths > 0).sum(axis=0), 1)
    return np.maximum(columns.lengths.sum(axis=0, dtype=np.int64) / filled, 1e-9)


@dataclass(frozen=True)
class BM25:
    """Ranks by the words a query and a tool share, rare words first."""

    name = "bm25"
    calibrated = False
    waits = False

    def searcher(self, tools: Sequence[Tool]) -> BM25Searcher:
        """Return a searcher over the tools."""
        columns = columns_of([document(tool) for tool in tools])
        return BM25Searcher(Words(columns), [tool.name for tool in tools])


class BM25Searcher:
    """Answers queries over one list of tools.

    Args:
        words: The inverted index.
        names: The tools' names, for the literal fallback.
    """

    def __init__(self, words: Words, names: Sequence[str]) -> None:
        self._words = words
        self._names = names

    @cached_property
    def _letters(self) -> list[str]:
        return [" ".join(raw_words(name)) for name in self._names]

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return the best matches by BM25F; by the letters of the name where no word fits."""
        found = top_matches(self._words.scores(self._terms(query)), limit)
        return found or self.by_letters(query, limit)

    def explain(self, query: str, position: int) -> str:
        """Name the words that match, each with its share of the score."""
        shares: list[tuple[float, str]] = []
        for term, weight in self._terms(query).items():
            share = float(self._words.scores({term: weight})[position])
            if share > 0:
                shares.append((-share, term))
        if not shares:
            return "the name holds the letters of the query"
        return "words " + ", ".join(f"{term} {-share:.2f}" for share, term in sorted(shares))

    def _terms(self, query: str) -> dict[str, float]:
        """Return the terms of a request; its own words count more than their translation."""
        english, *own = readings(query, self._words.holds)
        if not own:
            return query_terms(english, self._words.holds)
        guessed = {
            term: weight * SYNONYM_WEIGHT
            for term, weight in query_terms(english, self._words.holds).items()
        }
        return guessed | query_terms(query, self._words.holds)

    def by_letters(self, query: str, limit: int) -> list[Match]:
        """Return the tools whose names hold the words of the query somewhere inside."""
        words = [word for word in raw_words(query) if len(word) >= _SUBSTRING_AT_LEAST]
        found: list[Match] = []
        for position, letters in enumerate(self._letters if words else ()):
            held = sum(1 for word in words if word in letters)
            if held:
                found.append(Match(position, held / len(words)))
        found.sort(key=lambda match: -match.score)
        return found[:limit]


def query_terms(query: str, is_held: Callable[[str], bool] = lambda _: False) -> dict[str, float]:
    """Return the terms of a query with their weights.

    What is said weighs 1, what it may mean besides (`repo`: repository) less. Stopwords
    count only where there is nothing else, and so do numbers that no tool is called by.

    Args:
        query: The query.
        is_held: Whether any tool holds a term.
    """
    words = list(dict.fromkeys(query_words(query)))[:_QUERY_WORDS_AT_MOST]
    telling = [word for word in words if is_telling(word)]
    if telling:
        telling += [word for word in words if word.isdigit() and len(word) > 1 and is_held(word)]
    weights = dict.fromkeys((stem(word) for word in telling or words), 1.0)
    expansions = _expansions()
    for term in tuple(weights):
        for other in expansions.get(term, ()):
            weights.setdefault(other, SYNONYM_WEIGHT)
    return weights


@lru_cache(maxsize=1)
def _expansions() -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms by stem."""
    return {
        stem(word): tuple(dict.fromkeys(stem(other) for other in others.split()))
        for word, others in SYNONYMS.items()
    }


def top_matches(scores: NDArray[Any], limit: int) -> list[Match]:
    """Return the best positive scores, best first, ties in order of position."""
    import numpy as np

    edge = scores[best_places(scores, limit)].min(initial=np.inf)
    positive = np.flatnonzero(scores >= edge if edge > 0 else scores > 0)
    order = positive[np.argsort(-scores[positive], kind="stable")][:limit]
    return [Match(i, s) for i, s in zip(order.tolist(), scores[order].tolist(), strict=True)]
