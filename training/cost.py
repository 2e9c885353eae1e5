"""What a floor costs on the dev sets: recall@5 that it takes from requests that a tool serves.

Where the floor stands for sentences, and where for keywords, is all that is chosen by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import report
from network import Array

from toolfold.search._scorer import (
    FEATURES,
    Scorer,
    floor_features,
    floor_logits,
    judged_as_keywords,
)
from toolfold.search.hybrid import Hybrid, HybridSearcher

KEYWORDS = FEATURES.index("keywords")

HITS = 5
"""Recall is counted among so many hits of each need."""

WIDEST = 30.0
"""No logit of a floor is beyond this."""


class Need(NamedTuple):
    """One need of a request, and what speaks for each candidate."""

    corpus: str
    request: int
    features: Array
    names: Sequence[str]
    gold: frozenset[str]
    is_literal: bool
    """Whether it is the name of a tool, which no floor refuses."""


class Judged(NamedTuple):
    """A need as a scorer sees it."""

    logit: float
    keywords: float
    """How far it is keywords."""
    found: frozenset[str]
    """The right tools among its first hits."""


def needs() -> list[Need]:
    """Return the needs of all served dev requests, as people say them and as models ask."""
    found: list[Need] = []
    for corpus in report.served():
        tools = list(corpus.catalog)
        searcher: HybridSearcher = Hybrid().searcher(tools)
        for i, request in enumerate(corpus.requests):
            for need in request.needs:
                text = searcher.readings(need)[0]
                evidence = searcher.evidence(text)
                names = [tools[place].name for place in evidence.places.tolist()]
                is_literal = searcher._is_literal(text, evidence)  # pyright: ignore[reportPrivateUsage]
                found.append(
                    Need(corpus.name, i, evidence.features, names, request.gold, is_literal)
                )
    return found


def judged(own: Sequence[Need], scorer: Scorer, floor: Array) -> list[Judged]:
    """Return the logit of each need under a floor, and what it would find."""
    out: list[Judged] = []
    for need in own:
        scores = scorer.scores(need.features)
        names = [need.names[i] for i in np.argsort(-scores, kind="stable")[:HITS]]
        logit = float(floor_logits(floor, floor_features(need.features, scores)))
        found = need.gold.intersection(names)
        keywords = float(need.features[0, KEYWORDS])
        out.append(Judged(2 * WIDEST if need.is_literal else logit, keywords, found))
    return out


class Bars(NamedTuple):
    """The logits that are asked for: of sentences, and of keywords; between them, in between."""

    sentence: float
    keywords: float

    def of(self, keywords: Array) -> Array:
        """Return the bars of requests, given how far each is keywords."""
        return self.sentence + (self.keywords - self.sentence) * judged_as_keywords(keywords)


def recalls(own: Sequence[Need], seen: Sequence[Judged], bars: Bars) -> tuple[float, float]:
    """Return the mean recall of the sets in people's words, and of those as models ask."""
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    wanted: dict[tuple[str, int], int] = {}
    asked = bars.of(np.array([one.keywords for one in seen])).tolist()
    for need, one, bar in zip(own, seen, asked, strict=True):
        key = need.corpus, need.request
        wanted[key] = len(need.gold)
        found[key].update(one.found if one.logit >= bar else ())
    by_corpus: dict[str, list[float]] = defaultdict(list)
    for key, count in wanted.items():
        by_corpus[key[0]].append(len(found[key]) / max(count, 1))
    means = {name: fmean(values) for name, values in by_corpus.items()}
    people = fmean(mean for name, mean in means.items() if "asked" not in name)
    return people, fmean(mean for name, mean in means.items() if "asked" in name)


def lost(own: Sequence[Need], seen: Sequence[Judged], bars: Bars) -> Bars:
    """Return the recall that bars take from the sets in people's words, and from those as models ask.

    Args:
        own: The needs of both.
        seen: The same needs as a scorer sees them.
        bars: What is asked of them.
    """
    without = recalls(own, seen, Bars(-WIDEST, -WIDEST))
    return Bars(*(a - b for a, b in zip(without, recalls(own, seen, bars), strict=True)))
