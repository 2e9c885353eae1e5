"""How sure a figure is: 95 % intervals, by resampling what was measured, and of shares.

The draws are seeded: the same figures have the same interval. One measurement has none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import sqrt

from toolfold.evaluation.measure import Interval

__all__ = ["resampled", "share_interval"]

_RESAMPLES = 1_000
_SEED = 20_261_116
_Z = 1.96


def resampled(
    pairs: Sequence[tuple[float, float]], figure: Callable[[float, float], float]
) -> Interval | None:
    """Return the interval of a figure of two sums, by drawing the pairs anew.

    Args:
        pairs: What was measured in two ways on the same thing: scenarios, conversations.
        figure: What is made of the two sums; it is not asked where the first is 0.
    """
    if len(pairs) < 2:
        return None
    draw = random.Random(_SEED)
    found: list[float] = []
    for _ in range(_RESAMPLES):
        drawn = draw.choices(pairs, k=len(pairs))
        first = sum(one for one, _ in drawn)
        if first:
            found.append(figure(first, sum(other for _, other in drawn)))
    found.sort()
    if not found:
        return None
    return found[int(0.025 * len(found))], found[min(int(0.975 * len(found)), len(found) - 1)]


def share_interval(count: int, of: int) -> Interval | None:
    """Return the interval of a share, after Wilson: it holds for few and for all, too."""
    if not of:
        return None
    share, squared = count / of, _Z**2
    middle = share + squared / (2 * of)
    spread = _Z * sqrt(share * (1 - share) / of + squared / (4 * of**2))
    whole = 1 + squared / of
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)
