"""The default ranker: words and vectors, weighed by the evidence of each request.

Words and vectors each propose candidates, for the whole request and for each need in it.
What speaks for a candidate is a row of numbers; a small network, trained on many
catalogs, turns it into a score, and two logistics, one for sentences and one for keywords,
turn the best rows into the probability that any tool serves the request at all. Where that
leaves it open, the first few are read together with the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p, log10
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolfold.search._background import Background
from toolfold.search._build import index_arrays
from toolfold.search._clauses import clauses
from toolfold.search._dense import table
from toolfold.search._each_word import EachWord, WordEmbedder
from toolfold.search._lexicon import readings
from toolfold.search._reading import ToolReading, count_read, in_order, is_unclear
from toolfold.search._scorer import (
    FEATURES,
    NAME_SHARE,
    SIZE_DECADES,
    Scorer,
    lift,
    probability,
    scorer,
)
from toolfold.search._sources import SourceEvidence, SourceMeans
from toolfold.search._spelling import Spelling
from toolfold.search._text import is_telling, query_words, stem, telling_words
from toolfold.search._unmet import NOTHING, Unmet
from toolfold.search._vectors import Vectors
from toolfold.search._verbs import KINDS, kind_of_name, kinds_asked
from toolfold.search.lexical import BM25Searcher, Words, query_terms
from toolfold.search.ranker import Match
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Hybrid", "HybridSearcher"]

CANDIDATES = 40
"""How many tools words and vectors each propose for the whole request: twice what a search may
show by default, so that what one finds and the other does not is weighed."""

CLAUSE_CANDIDATES = 12
"""How many each proposes for one need of several: with six needs, about as many again."""

LITERAL_WORDS = 3
"""Up to how many words a query may be nothing but words of a name."""
LITERAL_CHANCE = 0.9
"""How probable it is then, at least, that the tool is meant."""
WHOLE = 0.999
"""From what share on a name says all of a query: all of it, but for rounding."""

# Numbers of the evidence. As in the scorer, what a number is divided by brings it near 1, and
# the fitted weights belong to just these numbers.

LOGARITHMS = 3
"""Divides natural logarithms of scores and of word counts: that of 20 is 3."""

DEVIATIONS = 5
"""Divides a cosine's distance from the mean of all tools, in standard deviations."""

CLAUSES = 4
"""Divides the number of needs; a request rarely names more."""

RANK_HALF = 5
"""At this rank the evidence of a rank is one half: about where a search's answer ends."""

CLAUSE_RANK_HALF = 3
"""The same for one need of several, of which fewer hits are looked at."""

NAME_AT_MOST = 2
"""Caps the share of a name that was said: it has no bound where no word of the name tells."""

LEXICAL_SHARE, GAP_SHARE, COVERAGE_SHARE = 0.5, 1.5, 0.3
"""How words, meaning and coverage add up to the order within a need: a rough one, which the
network weighs among others. Cosines differ by little, so their gap is weighed up."""

LEAST = 1e-6
"""Stands for a best score of 0, so that nothing is divided by it."""

RANK_DIGITS = 5
"""Digits at which values are equal for a rank: sums of floats differ behind them."""


@dataclass(frozen=True)
class Hybrid:
    """Ranks by words and by meaning, and knows when nothing fits."""

    cache: str = "off"
    """Where the index of a large list is kept: `auto`, `off` or a folder."""

    name = "hybrid"
    calibrated = True
    waits = False

    def searcher(self, tools: Sequence[Tool]) -> HybridSearcher:
        """Return a searcher over the tools."""
        columns, vectors, excerpts = index_arrays(tools, self.cache)
        order = sorted(range(len(tools)), key=lambda i: tools[i].digest)
        return HybridSearcher(
            Words(columns),
            Vectors(vectors),
            [tool.name for tool in tools],
            order,
            table(),
            scorer(),
            SourceMeans(vectors, [tool.source or "" for tool in tools]),
            ToolReading(excerpts),
        )


class Embedder(WordEmbedder, Protocol):
    """What embeds requests."""

    @property
    def background(self) -> Background:
        """Tools of many kinds, to compare the nearest of a list with."""
        ...

    def query(self, text: str) -> Floats:
        """Return the unit vector of a request; zero where no word of it is known."""
        ...

    def has_word(self, word: str) -> bool:
        """Whether a lower-case word is known as a whole."""
        ...

    def weight(self, word: str) -> float:
        """Return what a lower-case word weighs in requests."""
        ...


class Evidence(NamedTuple):
    """The candidates of a request, and what speaks for each."""

    places: NDArray[np.intp]
    """The candidates' places in the list, in order."""
    features: Floats
    """A row of numbers for each, as `FEATURES` names them."""
    needs: int
    """How many needs the request has."""


class HybridSearcher:
    """Answers queries over one list of tools.

    Args:
        words: The inverted index.
        vectors: The tools' vectors.
        names: The tools' names.
        order: The tools' places in an order that depends on their content alone.
        model: Embeds requests.
        scorer: What the evidence is worth.
        sources: Where the tools come from.
        reading: Reads the first few tools where it is not clear without; without it none is read.
    """

    def __init__(
        self,
        words: Words,
        vectors: Vectors,
        names: Sequence[str],
        order: Sequence[int],
        model: Embedder,
        scorer: Scorer,
        sources: SourceEvidence,
        reading: ToolReading | None = None,
    ) -> None:
        import numpy as np

        self._embed = model.query
        self._has_word = model.has_word
        self._background = model.background
        self._spelling = Spelling(words.holds, model.has_word)
        self._scorer = scorer
        self._sources = sources
        self._reading = reading
        self._each_word = EachWord(model, names)
        self._unmet = Unmet(words, model.weight, sources)
        self._names = names
        # The kind of each tool's verb, looked at when first needed: -1 until then.
        self._kinds: NDArray[np.int8] = np.full(len(names), -1, dtype=np.int8)
        self._words = words
        self._vectors = vectors
        self._lexical = BM25Searcher(words, names)
        self._tie = np.empty(len(names), dtype=np.int64)
        self._tie[np.asarray(order, dtype=np.int64)] = np.arange(len(names))

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return the best matches; the first one's score is the probability that it serves."""
        if not self._words.size:
            return ()
        read = readings(query, self._words.holds)
        texts = self._spelt(read)
        # What was read word by word from another language has no words by the way left.
        is_said = read == (query,) or texts == self._spelt((query,))
        found = [self._found(text, limit, is_said) for text in texts]
        return found[0] if len(found) == 1 else _best_of(found)[:limit]

    def readings(self, query: str) -> list[str]:
        """Return the texts to search for, in the words of the tools."""
        return self._spelt(readings(query, self._words.holds))

    def _spelt(self, texts: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(map(self._spelling.spelt, texts)))

    def _found(self, query: str, limit: int, is_said: bool) -> list[Match]:
        """Return the best matches for one reading of a request."""
        import numpy as np

        evidence = self.evidence(query, is_said)
        places, features = evidence.places, evidence.features
        scores = self._scorer.scores(features)
        order = np.lexsort((places, -scores))
        ladder = scores[order]
        logit = self._scorer.floor_logit(features, scores)
        is_literal = self._is_literal(query, evidence)
        # Of several needs more than one tool is right, and those are close by that.
        is_open = evidence.needs <= 1 and not is_literal
        is_open = is_open and is_unclear(ladder, logit, lift(features))
        if self._reading is not None and is_open and self._is_known(query):
            first = order[: count_read(ladder)]
            read = self._reading.logits(query, places[first])
            anew = in_order(ladder[: len(first)], read)
            order[: len(first)] = first[anew]
            logit = self._scorer.read_logit(logit, features, read[anew])
        chance = max(probability(logit), LITERAL_CHANCE if is_literal else 0.0)
        # What is read changes who stands where, not how far the places are apart.
        best, *others = ladder[:limit].tolist()
        chances = [chance, *(chance * exp(score - best) for score in others)]
        found = list(map(Match, places[order[:limit]].tolist(), chances))
        return self._with_letters(query, found)[:limit]

    def explain(self, query: str, position: int) -> str:
        """Say how near the tool is in meaning, and which words match."""
        import numpy as np

        texts = self.readings(query)
        vectors = np.stack([self._embed(text) for text in texts])
        near = float(self._vectors.exact(vectors, [position]).max())
        words = self._lexical.explain(self._spelling.spelt(query), position)
        shared = words if words.startswith("words ") else "no word in common"
        return f"meaning {near:.2f}; {shared}"

    def _is_literal(self, query: str, evidence: Evidence) -> bool:
        """Whether a query of a few words is said, word for word, by the name of a candidate."""
        words = query_words(query)
        if len([word for word in words if is_telling(word)] or words) > LITERAL_WORDS:
            return False
        return bool((evidence.features[:, NAME_SHARE] > WHOLE).any())

    def _is_known(self, query: str) -> bool:
        """Whether most telling words of a request are known: of others reading knows nothing."""
        words = telling_words(query)
        return 2 * sum(map(self._has_word, words)) >= len(words)

    def _with_letters(self, query: str, found: list[Match]) -> list[Match]:
        """Put tools whose names hold the letters of the query first, where no word fits."""
        held = self._words.holds
        if any(held(stem(word)) for word in query_words(query) if is_telling(word)):
            return found
        if any(held(term) for term in query_terms(query)):
            return found
        letters = self._lexical.by_letters(query, len(found) or 1)
        whole = [match for match in letters if match.score == 1]
        first = {match.position for match in whole}
        return [*whole, *(match for match in found if match.position not in first)]

    def evidence(self, query: str, is_said: bool = True) -> Evidence:
        """Gather candidates and what speaks for each.

        Args:
            query: The request, in the words of the tools.
            is_said: Whether it was said so; else it was read from another language.
        """
        import numpy as np

        needs = clauses(query)
        texts = [query, *needs] if len(needs) > 1 else [query]
        vectors = _stacked([self._embed(text) for text in texts])
        near = self._vectors.search(vectors, CANDIDATES, CLAUSE_CANDIDATES)
        terms = [query_terms(text, self._words.holds) for text in texts]
        lexical = [self._words.scores(own) for own in terms]
        is_chosen = np.zeros(self._words.size, dtype=bool)
        is_chosen[near.candidates] = True
        for i, scores in enumerate(lexical):
            is_chosen[self._best(scores, CLAUSE_CANDIDATES if i else CANDIDATES)] = True
        places = np.flatnonzero(is_chosen)
        said = self._words.coverage(terms, places)
        own_vectors = self._vectors.at(places)
        cosine = vectors @ own_vectors.T
        rows = slice(1, None) if len(texts) > 1 else slice(0, 1)

        tops = [max(float(scores.max()), LEAST) for scores in lexical]
        lex = lexical[0][places]
        whole = cosine[0]
        coverage = said.covered[0]
        best_coverage = float(coverage.max())
        z = (whole - near.mean) / near.deviation
        clause_gap = cosine[rows] - near.best[rows, None]
        own = zip(lexical[rows], tops[rows], strict=True)
        clause_lexical = _stacked([scores[places] / top for scores, top in own])
        clause_coverage = said.covered[rows]
        simple = (
            clause_lexical * LEXICAL_SHARE
            + GAP_SHARE * clause_gap
            + COVERAGE_SHARE * clause_coverage
        )
        lex_rank, dense_rank, *ranks = _ranks(np.concatenate((lex[None], whole[None], simple)))
        each, unmet = None, NOTHING
        if len(texts) == 1:
            # Of several needs every tool meets but one: their words together say little.
            each = self._each_word.evidence(query, vectors[0], own_vectors, places)
            unmet = self._unmet.shares(query, said, places) if is_said else NOTHING
        kinds = self._kinds_at(places)
        features: dict[str, Any] = {
            "against": each.against if each else 0.0,
            "met": each.met if each else 0.0,
            "name_cosine": each.name_cosine if each else 0.0,
            "keywords": unmet.keywords,
            "unmet": unmet.tool,
            "unmet_source": unmet.source,
            "unmet_list": unmet.everywhere,
            "lex_top": lex / tops[0],
            "lex_log": np.log1p(lex) / LOGARITHMS,
            "coverage": coverage,
            "coverage_gap": coverage - best_coverage,
            "cosine": whole,
            "cosine_gap": whole - near.best[0],
            "cosine_z": z / DEVIATIONS,
            "head_coverage": _largest(said.headed[rows]),
            "head_gap": said.headed[0] - said.headed[0].max(),
            "verb": _verbs(needs, kinds),
            "verbless": kinds == 0,
            "background_gap": self._gaps(vectors[rows], cosine[rows], own_vectors, places),
            "source_gap": self._sources.gaps(vectors[rows], places),
            "name_said": np.minimum(said.named / self._words.name_mass[places], NAME_AT_MOST),
            "name_share": said.named / said.mass,
            "lex_rank": RANK_HALF / (RANK_HALF + lex_rank),
            "dense_rank": RANK_HALF / (RANK_HALF + dense_rank),
            "clause_cosine": _largest(cosine[rows]),
            "clause_gap": _largest(clause_gap),
            "clause_lex": _largest(clause_lexical),
            "clause_coverage": _largest(clause_coverage),
            "clause_rank": _largest([CLAUSE_RANK_HALF / (CLAUSE_RANK_HALF + r) for r in ranks]),
            "best_coverage": best_coverage,
            "best_cosine": float(near.best[0]),
            "best_z": float(z.max()) / DEVIATIONS,
            "length": log1p(said.length) / LOGARITHMS,
            "clauses": len(needs) / CLAUSES,
            "size": log10(self._words.among + 1) / SIZE_DECADES,
        }
        table = np.empty((len(FEATURES), len(places)), dtype=np.float32)
        for i, name in enumerate(FEATURES):
            table[i] = features[name]
        return Evidence(places, np.ascontiguousarray(table.T), len(needs))

    def _gaps(
        self, queries: Floats, cosines: Floats, tools: Floats, places: NDArray[np.intp]
    ) -> Floats:
        """Return how much nearer each tool is than what is nearest in the background.

        What was read word by word from another script is never as near as the background's own
        words: that speaks against no tool.
        """
        import numpy as np

        gaps = self._background.gaps(queries, cosines, tools)
        return np.where(self._words.foreign[places], np.maximum(gaps, 0), gaps)

    def _kinds_at(self, places: NDArray[np.intp]) -> NDArray[np.int8]:
        """Return the kind of each tool's verb, 0 where its name tells none."""
        kinds = self._kinds[places]
        if (kinds < 0).any():
            unknown: list[int] = places[kinds < 0].tolist()
            for i in unknown:
                self._kinds[i] = kind_of_name(self._names[i])
            kinds = self._kinds[places]
        return kinds

    def _best(self, scores: Floats, k: int) -> NDArray[np.intp]:
        """Return the places of the k best positive scores; which of equals, content decides.

        Args:
            scores: The score of every tool, 0 or more.
            k: How many.
        """
        import numpy as np

        places = scores.nonzero()[0]
        if len(places) <= k:
            return places
        own = scores[places]
        places = places[own >= np.partition(own, len(own) - k)[len(own) - k]]
        if len(places) == k:
            return places
        return places[np.lexsort((self._tie[places], -scores[places]))[:k]]


def _verbs(needs: Sequence[str], kinds: NDArray[np.int8]) -> Floats | float:
    """Return whether each tool does what is asked for: 1, another thing: -1, or neither: 0."""
    import numpy as np

    asked = kinds_asked(needs)
    if not asked:
        return 0.0
    worth = np.full(KINDS + 1, -1.0, dtype=np.float32)
    worth[0] = 0.0
    worth[list(asked)] = 1.0
    return worth[kinds]


def _best_of(readings: Sequence[Sequence[Match]]) -> list[Match]:
    """Return the matches of several readings, each as its best reading scores it."""
    scores: dict[int, float] = {}
    for match in (match for found in readings for match in found):
        scores[match.position] = max(match.score, scores.get(match.position, 0.0))
    return [Match(i, s) for i, s in sorted(scores.items(), key=lambda item: (-item[1], item[0]))]


def _stacked(rows: Sequence[Floats]) -> Floats:
    """Return rows as a matrix. Most requests have one need, and one row."""
    import numpy as np

    return rows[0][None] if len(rows) == 1 else np.stack(rows)


def _largest(rows: NDArray[Any] | Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the largest of each column. Most requests have one need, and one row."""
    import numpy as np

    return rows[0] if len(rows) == 1 else np.max(rows, axis=0)


def _ranks(rows: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Return how many values of its row are greater than each: equals share a rank."""
    import numpy as np

    rounded = rows.round(RANK_DIGITS)
    ordered, size = np.sort(rounded, axis=1), rows.shape[1]
    both = zip(ordered, rounded, strict=True)
    return [size - own.searchsorted(values, side="right") for own, values in both]
