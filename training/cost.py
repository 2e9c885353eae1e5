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

from toolfold.search._dense import tool_arrays
from toolfold.search._reading import ToolReading, count_read, in_order, is_unclear
from toolfold.search._scorer import (
    FEATURES,
    Scorer,
    floor_features,
    floor_logits,
    judged_as_keywords,
    lift,
    read_logit,
)
from toolfold.search.hybrid import CLAUSES, Evidence, Hybrid, HybridSearcher

KEYWORDS, NEEDS = FEATURES.index("keywords"), FEATURES.index("clauses")

HITS = 5
"""Recall is counted among so many hits of each need."""

READ_AHEAD = 8
"""So many candidates are read for fitting."""

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
    read: Array
    """What the reader says of each candidate, nothing (`nan`) of those far behind."""


class Judged(NamedTuple):
    """A need as a scorer sees it."""

    logit: float
    keywords: float
    """How far it is keywords."""
    found: frozenset[str]
    """The right tools among its first hits."""


def needs(kept: Scorer) -> list[Need]:
    """Return the needs of all served dev requests, as people say them and as models ask.

    Args:
        kept: Says which candidates are far behind, and not read.
    """
    found: list[Need] = []
    for corpus in report.served():
        tools = list(corpus.catalog)
        searcher: HybridSearcher = Hybrid().searcher(tools)
        reading = ToolReading(tool_arrays(tools).excerpts)
        for i, request in enumerate(corpus.requests):
            for need in request.needs:
                text = searcher.readings(need)[0]
                evidence = searcher.evidence(text)
                names = [tools[place].name for place in evidence.places.tolist()]
                is_literal = searcher._is_literal(text, evidence)  # pyright: ignore[reportPrivateUsage]
                read = read_first(reading, text, evidence, kept)
                found.append(
                    Need(corpus.name, i, evidence.features, names, request.gold, is_literal, read)
                )
    return found


def read_first(reading: ToolReading, text: str, evidence: Evidence, kept: Scorer) -> Array:
    """Return what the reader says of the first candidates, and nothing (`nan`) of the others.

    Args:
        reading: Reads them.
        text: The request.
        evidence: The candidates.
        kept: Says which are the first: more of them than a search reads, so that a scorer that is
            fitted by this reads no other.
    """
    order = np.argsort(-kept.scores(evidence.features), kind="stable")[:READ_AHEAD]
    read = np.full(len(evidence.places), np.nan, np.float32)
    read[order] = reading.logits(text, evidence.places[order])
    return read


class Read(NamedTuple):
    """A request after its first candidates were read."""

    order: Array
    """The candidates, the best first."""
    logits: Array
    """What the reader says of those that were read, in that order; empty where none was."""
    floor: float
    """The floor's logit before."""


def read(features: Array, scores: Array, logits: Array, floor: Array, *, always: bool) -> Read:
    """Return a request as a search reads it.

    Args:
        features: What speaks for the candidates.
        scores: Their scores.
        logits: What the reader says of them.
        floor: The floor's logistics.
        always: Whether it is read where it is clear without, too.
    """
    order = np.argsort(-scores, kind="stable")
    ladder = scores[order]
    logit = float(floor_logits(floor, floor_features(features, scores)))
    first = order[: count_read(ladder)]
    own = logits[first]
    several = float(features[0, NEEDS]) * CLAUSES > 1
    is_open = always or (not several and is_unclear(ladder, logit, lift(features)))
    if np.isnan(own).any() or not is_open:
        return Read(order, np.zeros(0), logit)
    anew = in_order(ladder[: len(first)], own)
    return Read(np.concatenate((first[anew], order[len(first) :])), own[anew], logit)


class Floor(NamedTuple):
    """The logistics of a floor, and those for what was read."""

    found: Array
    read: Array

    def logit(self, features: Array, one: Read) -> float:
        """Return the logit of a request."""
        if not len(one.logits):
            return one.floor
        return read_logit(self.read, one.floor, features, one.logits)


def judged(own: Sequence[Need], scorer: Scorer, floor: Floor) -> list[Judged]:
    """Return the logit of each need under a floor, and what it would find."""
    out: list[Judged] = []
    for need in own:
        scores = scorer.scores(need.features)
        one = read(need.features, scores, need.read, floor.found, always=False)
        found = need.gold.intersection(need.names[i] for i in one.order[:HITS])
        logit = 2 * WIDEST if need.is_literal else floor.logit(need.features, one)
        out.append(Judged(logit, float(need.features[0, KEYWORDS]), found))
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
