"""How much a memory counts: the weight that would have served its own record best.

Each of some earlier requests is asked again as if it had not been kept, and the others speak for
it. A weight must gain more than chance would give it; where none does, the memory has no say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from toolfold.memory._evidence import NOTHING, ToolEvidence, Weight, added

__all__ = ["WEIGHTS", "Trial", "best_weight", "settled"]

WEIGHTS: tuple[Weight, ...] = tuple(
    Weight(own, above) for own in (1.0, 2.0, 4.0, 8.0) for above in (0.0, 1.0)
)
"""The weights that are tried, beside none at all."""

TRIALS = 256
"""How many earlier requests are asked again, the newest."""

TRIALS_PER_TOOL = 8
"""How many of those may be of one principal and one tool."""

LEAST = 8
"""With fewer requests nothing can be told."""

DOUBTS = 8
"""As many requests to which no weight makes a difference are reckoned in."""

ERRORS = 1.0
"""By how many standard errors a gain must exceed nothing."""

_FIRST_HITS = 5

Trial = tuple[Mapping[int, float], frozenset[int], Mapping[int, ToolEvidence]]
"""An earlier request: what search believed, by place, which tools it led to, and what the others
say."""


def settled(count: int) -> int:
    """Return how many of some requests, the first, the weight is chosen by.

    It is chosen anew when there are half as many again, so seldom.
    """
    if count < LEAST:
        return 0
    step = LEAST
    while step * 3 // 2 <= count:
        step = step * 3 // 2
    return step


def best_weight(trials: Sequence[Trial]) -> Weight:
    """Return the weight that serves trials best, or none."""
    if len(trials) < LEAST:
        return NOTHING
    before = [_served(trial, NOTHING) for trial in trials]
    best, most = NOTHING, 0.0
    for weight in WEIGHTS:
        gains = [_served(trial, weight) - old for trial, old in zip(trials, before, strict=True)]
        gain = _surely(gains)
        if gain > most + 1e-9:
            best, most = weight, gain
    return best


def _surely(gains: Sequence[float]) -> float:
    """Return a mean gain, less what chance may have given."""
    count = len(gains)
    mean = sum(gains) / count
    variance = sum((gain - mean) ** 2 for gain in gains) / count
    return sum(gains) / (count + DOUBTS) - ERRORS * sqrt(variance / count)


def _served(trial: Trial, weight: Weight) -> float:
    """Return how well the tools of a request stand: its reciprocal ranks and the first hits."""
    belief, used, evidence = trial
    scores = added(belief, evidence, weight)
    # Equals stand as search had them; what it had not found stands behind.
    ordered = sorted(scores, key=scores.__getitem__, reverse=True)
    ranks = [rank for rank, place in enumerate(ordered, 1) if place in used]
    total = 0.0
    for behind, found in enumerate(ranks):
        rank = found - behind  # of several tools, those before one do not count against it
        total += (1 / rank + (rank <= _FIRST_HITS)) / 2
    return total / len(used) if used else 0.0
