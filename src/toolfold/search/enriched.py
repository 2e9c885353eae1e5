"""Search that also knows words an author wrote for tools: requests and synonyms.

A request that is near one of them speaks for its tool. Bad words do no more than little
harm, whoever wrote them: the words of a tool count only where it is among the nearest to most
of them by its own texts, and that must hold for most words of all; how much they weigh in the
order of hits is what would have served the phrases themselves best, each left out in turn, and
is bounded. A request that is nearly a phrase finds its tool where no tool's own texts answer
it well.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from toolfold.search._clauses import clauses
from toolfold.search._dense import table, tool_vectors
from toolfold.search._lexicon import translated
from toolfold.search._tool_words import ToolWords
from toolfold.search._vectors import Vectors
from toolfold.search.ranker import Match, Ranker, Searcher, may_wait
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["WEIGHTS_TRIED", "Enriched", "EnrichedSearcher"]

SHORTLIST = 40
"""How many of the inner search's matches are reordered."""

WEIGHTS_TRIED = (0.0, 1.0, 2.0, 4.0)
"""What phrases may weigh: the logarithm of a score rises by so much times how far the nearest
stands out. The largest bounds what the worst words can do."""

NEAREST = 10
"""How many phrases speak for a request; how near the next one is, is taken off."""

NEAR_SHARE, NEAR_AT_LEAST = 0.05, 5
"""Among which share of all tools a phrase's own must be by its own texts, or among so many."""

SAMPLED_TOOLS = 2_000
"""With so many tools a phrase is compared; of more, with a sample."""

SAMPLED_PHRASES = 256
"""So many phrases are left out in turn and searched for, to find their weight."""

TOO_FEW = 24
"""What fewer say of their weight is chance."""

PHRASES_AT_MOST = 40_000
"""Phrases of one list of tools. Of more, each tool has its first ones."""

NEAR_FROM = 0.35
"""From which nearness on a phrase speaks for its tool at all."""

LIFTED_FROM = 0.85
"""From which nearness on a request is as good as one of the phrases."""

LIFTED = 0.5
"""How probable it is then that the tool is meant, where no other is as likely."""

_LEAST = 1e-9
_RANKS_COUNTED = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Enriched:
    """A ranker that also knows words which an author wrote."""

    inner: Ranker
    words: ToolWords

    @property
    def name(self) -> str:
        """The inner ranker's name."""
        return self.inner.name

    @property
    def calibrated(self) -> bool:
        """Whether scores are probabilities: as those of the inner ranker are."""
        return self.inner.calibrated

    @property
    def waits(self) -> bool:
        """Whether a search may wait: where the inner ranker's may."""
        return may_wait(self.inner)

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        """Return a searcher over the tools; the inner one's where no words are for them."""
        stale = self.words.stale(tools)
        if stale:
            about = f"{stale[0]!r}" + (f" and {len(stale) - 1} more" if len(stale) > 1 else "")
            _log.warning(
                "the words of %s are stale: the tool says something else now; "
                "`toolfold enrich` writes them anew",
                about,
            )
        inner = self.inner.searcher(tools)
        phrases = phrases_of(tools, self.words)
        return EnrichedSearcher(inner, phrases, calibrated=self.calibrated) if phrases else inner


class Phrases(NamedTuple):
    """The phrases of a list of tools."""

    texts: tuple[str, ...]
    owners: NDArray[np.intp]
    """The place of each phrase's tool."""
    vectors: Floats


class Nearest(NamedTuple):
    """The phrases that are nearest to a request, best first."""

    places: list[int]
    """Their numbers."""
    excess: list[float]
    """How far each stands out from those that are not among them."""
    best: float
    """How near the first is."""


def phrases_of(tools: Sequence[Tool], words: ToolWords) -> Phrases | None:
    """Return the phrases that can be trusted, of tools that say now what they said then."""
    import numpy as np

    given = _given(tools, words)
    if not given:
        return None
    own = table()
    texts = [text for _, phrases in given for text in phrases]
    owners = np.array([place for place, phrases in given for _ in phrases], dtype=np.intp)
    vectors = np.stack([own.query(translated(text)) for text in texts])
    is_near = _are_near(tools, owners, vectors)
    given_to, held = (np.bincount(own, minlength=len(tools)) for own in (owners, owners[is_near]))
    # Most phrases of a tool must be near it, and most of all: else the author wrote of
    # something else. Those of a tool that passes may be as far as words of the street are.
    kept = (2 * held >= given_to)[owners]
    if 2 * int(kept.sum()) < len(texts):
        return None
    chosen = tuple(text for text, keeps in zip(texts, kept.tolist(), strict=True) if keeps)
    return Phrases(chosen, owners[kept], vectors[kept])


def _given(tools: Sequence[Tool], words: ToolWords) -> list[tuple[int, list[str]]]:
    """Return the phrases of each tool that has any, by content and not by place."""
    names = {form for t in tools for form in (t.name.casefold(), t.bare_name.casefold())}
    given: list[tuple[int, list[str]]] = []
    for place in sorted(range(len(tools)), key=lambda i: tools[i].digest):
        entry = words.entry(tools[place])
        if entry is None:
            continue
        # A name means its tool, whatever somebody writes for another.
        requests, synonyms = (
            tuple(text for text in texts if text.casefold() not in names)
            for texts in (entry.requests, entry.words)
        )
        if requests or synonyms:
            phrases = entry._replace(requests=requests, words=synonyms).phrases
            given.append((place, list(phrases)))
    count = max(1, PHRASES_AT_MOST // max(len(given), 1))
    return [(place, said[:count]) for place, said in given[:PHRASES_AT_MOST]]


def _are_near(tools: Sequence[Tool], owners: NDArray[np.intp], vectors: Floats) -> NDArray[np.bool]:
    """Return which phrases have their own tool among the nearest, by its own texts."""
    import numpy as np

    by_content = sorted(range(len(tools)), key=lambda i: tools[i].digest)
    step = -(-len(tools) // SAMPLED_TOOLS)
    sample = tool_vectors([tools[i] for i in by_content[::step]]).astype(np.float32)
    distinct, rows = np.unique(owners, return_inverse=True)
    places: list[int] = distinct.tolist()
    own_vectors = tool_vectors([tools[i] for i in places]).astype(np.float32)
    own = np.einsum("ij,ij->i", vectors, own_vectors[rows])
    most = max(NEAR_SHARE * len(tools), NEAR_AT_LEAST)
    is_near = np.empty(len(owners), dtype=bool)
    for start in range(0, len(owners), SAMPLED_TOOLS):
        part = slice(start, start + SAMPLED_TOOLS)
        above = (vectors[part] @ sample.T > own[part, None]).sum(axis=1) * step
        is_near[part] = above < most
    return is_near


class EnrichedSearcher:
    """Answers queries over one list of tools.

    Args:
        inner: The search that knows the tools' own texts.
        phrases: What was written for them.
        calibrated: Whether the inner search's scores are probabilities.
    """

    def __init__(self, inner: Searcher, phrases: Phrases, *, calibrated: bool) -> None:
        self._inner = inner
        self._phrases = phrases
        self._vectors = Vectors(phrases.vectors)
        self._calibrated = calibrated
        self.weight = self._fitted()
        """What the phrases weigh here; 0 where they do not help."""

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return the best matches, those that phrases speak for higher up."""
        found = self._inner.search(query, max(limit, SHORTLIST))
        near = self._nearest(query)
        if self.weight:
            found = _matches(_ordered(found, self._bonus(near), self.weight), found)
        return self._lifted(found, near)[:limit]

    def _lifted(self, found: Sequence[Match], near: Nearest) -> Sequence[Match]:
        """Put the tool whose phrase the request nearly is first, where nothing else is likely."""
        if near.best < LIFTED_FROM or not self._calibrated:
            return found
        if found and found[0].score >= LIFTED:
            return found
        meant = int(self._phrases.owners[near.places[0]])
        return [Match(meant, LIFTED), *(match for match in found if match.position != meant)]

    def explain(self, query: str, position: int) -> str:
        """Say why the inner search found the tool, and which phrase speaks for it."""
        why = self._inner.explain(query, position)
        for place in self._nearest(query).places:
            if self._phrases.owners[place] == position:
                return f"{why}; written for it: {self._phrases.texts[place]!r}"
        return why

    def _nearest(self, query: str, without: int | None = None) -> Nearest:
        """Return the nearest phrases of a request or of any need in it."""
        import numpy as np

        text = translated(query)
        needs = clauses(text)
        embed = table().query
        queries = np.stack([embed(t) for t in ([text, *needs] if len(needs) > 1 else [text])])
        # One more for what is beyond them, and one for what is left out.
        wanted = NEAREST + 2
        places = np.unique(self._vectors.search(queries, wanted, wanted).candidates)
        places = places[places != without] if without is not None else places
        near = self._vectors.exact(queries, places).max(axis=0)
        order = np.lexsort((places, -near))
        values: list[float] = near[order].tolist()
        edge = max(values[NEAREST], NEAR_FROM) if len(values) > NEAREST else NEAR_FROM
        best = values[:NEAREST]
        excess = [max(value - edge, 0.0) for value in best]
        return Nearest(places[order[:NEAREST]].tolist(), excess, max(best, default=0.0))

    def _bonus(self, near: Nearest) -> dict[int, float]:
        """Return how much the phrases speak for each tool that they speak for."""
        owners = self._phrases.owners
        bonus: dict[int, float] = {}
        for place, excess in zip(near.places, near.excess, strict=True):
            owner = int(owners[place])
            bonus[owner] = max(excess, bonus.get(owner, 0.0))
        return bonus

    def _fitted(self) -> float:
        """Return the weight at which phrases that are left out are found best; the least of equals.

        One that is the only one of its tool counts too: it shows what others take from it.
        """
        texts, owners = self._phrases.texts, self._phrases.owners
        step = -(-len(texts) // SAMPLED_PHRASES)
        sampled = range(0, len(texts), step)
        if len(sampled) < TOO_FEW:
            return 0.0
        gains = dict.fromkeys(WEIGHTS_TRIED, 0.0)
        for place in sampled:
            text, owner = texts[place], int(owners[place])
            found = self._inner.search(text, SHORTLIST)
            bonus = self._bonus(self._nearest(text, without=place))
            for weight in WEIGHTS_TRIED:
                gains[weight] += _reciprocal_rank(_ordered(found, bonus, weight), owner)
        return max(WEIGHTS_TRIED, key=lambda weight: (round(gains[weight], 6), -weight))


def _ordered(
    found: Sequence[Match], bonus: dict[int, float], weight: float
) -> list[tuple[int, float]]:
    """Return places with their values, best first: what was found, and what phrases speak for."""
    values = {match.position: log(max(match.score, _LEAST)) for match in found}
    last = min(values.values(), default=log(_LEAST))
    for place in bonus if weight else ():
        values.setdefault(place, last)
    raised = [(place, value + weight * bonus.get(place, 0.0)) for place, value in values.items()]
    # What the inner search found first stays first among equals.
    return sorted(raised, key=lambda item: -item[1])


def _matches(ordered: Sequence[tuple[int, float]], found: Sequence[Match]) -> list[Match]:
    """Return places with their values as matches; the first has the score that the first had."""
    if not ordered:
        return []
    first, best = found[0].score if found else LIFTED, ordered[0][1]
    return [Match(place, first * exp(value - best)) for place, value in ordered]


def _reciprocal_rank(ordered: Sequence[tuple[int, float]], place: int) -> float:
    for rank, (own, _) in enumerate(ordered[:_RANKS_COUNTED], 1):
        if own == place:
            return 1 / rank
    return 0.0
