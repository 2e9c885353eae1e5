"""What earlier requests say about a new one: where search had erred, and by how much.

A request that search served well by itself says nothing new. One that led to another tool than
search believed in speaks for that tool, as far as it was missed, and against those that search
had put before it; the nearer the request, the more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from toolfold.memory._index import Neighbour, RequestIndex
from toolfold.search import Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NOTHING", "ToolEvidence", "Weight", "added", "believed", "gathered", "reordered"]

NEAR_FROM = 0.35
"""From this cosine on a request is like another at all."""

NEAR = 0.6
"""From this cosine on it is much like it."""

SAME = 0.97
"""From this cosine on it says the same."""

STRONG_FROM = 2
"""How many requests much like one must have led to a tool, for it to be shown where search by
itself would have shown nothing; or one that says the same and led there as often."""

NOT_FOUND = 1.0
"""How far below the last of what search found a tool begins that it did not: a logarithm."""

SERVED = 5.0
"""What a request that is the same, and was served, adds to the logit that one is served at all."""

BEST_LOGIT = 3.0
"""What the probability of a tool may be raised to by a memory, as a logit: 0.95."""

_LEAST = 1e-12


class Weight(NamedTuple):
    """How much a memory counts."""

    own: float
    """For the tools that requests led to."""
    above: float
    """Against those that search had put before them, as a share of the former."""


NOTHING = Weight(0.0, 0.0)
"""The weight of a memory that would not have served its own record."""


class ToolEvidence(NamedTuple):
    """What speaks for one tool."""

    own: float = 0.0
    above: float = 0.0
    times: int = 0
    near: float = 0.0
    """How near the requests are, together, that are much like the new one and led here."""
    is_strong: bool = False

    def worth(self, weight: Weight) -> float:
        """Return what it adds to the logarithm of a tool's score."""
        return weight.own * (self.own - weight.above * self.above)


def gathered(
    index: RequestIndex, near: Sequence[Neighbour], places: NDArray[np.int32]
) -> dict[int, ToolEvidence]:
    """Return what the nearest requests say, by a tool's place.

    Args:
        index: The requests.
        near: The nearest of them.
        places: The place of each tool, as `RequestIndex.places` returns them.
    """
    found: dict[int, ToolEvidence] = {}
    alike: dict[int, int] = {}
    for row, similarity in near:
        nearness = (similarity - NEAR_FROM) / (1 - NEAR_FROM)
        if nearness <= 0:
            break
        used = zip(
            index.used[row].tolist(), index.missed[row].tolist(), index.times[row].tolist(),
            strict=True,
        )  # fmt: skip
        for tool, missed, times in used:
            place = int(places[tool])
            if tool < 0 or place < 0:
                continue
            before = found.get(place, ToolEvidence())
            is_near = similarity >= NEAR
            if is_near:
                alike[place] = alike.get(place, 0) + (times if similarity >= SAME else 1)
            found[place] = before._replace(
                own=before.own + nearness * missed,
                times=before.times + times,
                near=before.near + nearness * is_near,
                is_strong=alike.get(place, 0) >= STRONG_FROM,
            )
        for tool, belief in zip(index.above[row].tolist(), index.belief[row].tolist(), strict=True):
            place = int(places[tool])
            if tool < 0 or place < 0:
                continue
            before = found.get(place, ToolEvidence())
            found[place] = before._replace(above=before.above + nearness * belief)
    return found


def believed(found: Sequence[Match]) -> list[tuple[int, float]]:
    """Return the logarithm of each match's share of the belief, by place, best first."""
    total = sum(match.score for match in found)
    if total <= 0:
        return []
    return [(m.position, log(max(m.score, _LEAST * total) / total)) for m in found]


def added(
    belief: Mapping[int, float], evidence: Mapping[int, ToolEvidence], weight: Weight
) -> dict[int, float]:
    """Return the logarithms of scores with evidence added, in ranking and in choosing a weight.

    A tool that search had not found stands below those that it had, before its own evidence.

    Args:
        belief: The logarithms of the scores of what search found, by place.
        evidence: What speaks for tools, by place.
        weight: How much it counts.
    """
    lowest = min(belief.values(), default=0.0) - NOT_FOUND
    scores = dict(belief)
    for place, told in evidence.items():
        worth = told.worth(weight)
        if place in scores:
            scores[place] += worth
        elif worth > 0 and told.own > 0:
            scores[place] = lowest + worth
    return scores


def reordered(
    found: Sequence[Match], evidence: Mapping[int, ToolEvidence], weight: Weight
) -> list[Match]:
    """Return matches with what a memory says added to the logarithms of their scores.

    The first one's score stays the probability that anything serves: it rises only with a
    record that is strong.

    Args:
        found: What search found, best first.
        evidence: What speaks for tools, by place.
        weight: How much it counts.
    """
    if not found or found[0].score <= 0:
        return list(found)
    belief = {match.position: log(max(match.score, _LEAST)) for match in found}
    scores = added(belief, evidence, weight)
    order = {match.position: i for i, match in enumerate(found)}
    last = len(found)
    ranked = sorted(scores.items(), key=lambda item: (-item[1], order.get(item[0], last), item[0]))
    (first, best), chance = ranked[0], found[0].score
    told = evidence.get(first)
    if told is not None and told.is_strong:
        chance = max(chance, _raised(chance, SERVED * told.near))
    return [Match(place, chance * exp(score - best)) for place, score in ranked]


def _raised(chance: float, worth: float) -> float:
    """Return a probability with something added to its logit, up to a bound."""
    kept = min(max(chance, _LEAST), 1 - _LEAST)
    logit = min(log(kept / (1 - kept)) + max(worth, 0.0), BEST_LOGIT)
    return 1 / (1 + exp(-logit))
