"""Which tools of many are compared with a request word by word.

The best by their words hold one of the rare words, or one of the others where it says much (in
their name, say), or two of the others. Each way is taken as far as it leaves few enough: how many
hold a word is known, how many hold two is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

__all__ = ["STRONG_FROM", "ChosenWords", "chosen_words"]

STRONG_FROM = 1.4
"""From how much worth on a word says much of a tool, of 2.2 at most: about once in four times."""

RARE_ROWS = 8_000
"""So many tools are compared because of a rare word."""

STRONG_ROWS = 8_000
"""So many because one of the other words says much of them, about."""

PAIR_ROWS = 16_000
"""So many because they hold two of the other words, about."""

_FULL_SIZE = 500_000
"""From how many tools on. Of fewer, the rare words alone reach a larger part, and less is taken."""

_STRONG_SHARE = 0.25
"""In how many of the tools that hold a word it says much."""

_TOGETHER = 2
"""How much more often than by chance two words of a request stand together."""

_PAIRED_AT_MOST = 8
"""How many words are looked for in pairs: those that are worth most."""


@dataclass(frozen=True, slots=True)
class ChosenWords:
    """The words that tools are looked for by: a tool is found by any of these."""

    rare: list[str]
    """Each wherever it stands."""
    strong: list[str]
    """Each where it says much."""
    pairs: list[tuple[str, str]]
    """Both of two, wherever they stand."""


def chosen_words(worth: Mapping[str, float], holders: Mapping[str, int], size: int) -> ChosenWords:
    """Return by which words of a request tools are looked for.

    Args:
        worth: What each word of the request is worth where it stands.
        holders: How many tools hold each of them.
        size: How many tools there are.
    """
    rare: list[str] = []
    left = RARE_ROWS
    for term in sorted(worth, key=lambda term: (holders[term], term)):
        left -= holders[term]
        if left < 0:
            break
        rare.append(term)
    others = sorted(worth.keys() - set(rare), key=lambda term: (-worth[term], term))
    share = min(size / _FULL_SIZE, 1)
    strong: list[str] = []
    left = most = STRONG_ROWS * share
    for term in others:
        left -= holders[term] * _STRONG_SHARE
        # The first may be more than that: twice, or anything where there is no other way.
        if left < 0 and (strong or (left < -most and len(worth) > 1)):
            break
        strong.append(term)
    pairs: list[tuple[str, str]] = []
    left = PAIR_ROWS * share
    both = combinations(others[:_PAIRED_AT_MOST], 2)
    for one, other in sorted(both, key=lambda pair: -worth[pair[0]] - worth[pair[1]]):
        fewer, more = sorted((holders[one], holders[other]))
        left -= fewer * min(_TOGETHER * more / size, 1)
        if left < 0 and pairs:
            break
        pairs.append((one, other))
    return ChosenWords(rare, strong, pairs)
