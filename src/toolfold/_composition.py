"""How a need's hits are shown: the likely ones with signatures, the others by name.

A need has the room that as many signatures as it may have would take. Hits that are unlikely
leave their part of it to names, of which there are many for one signature, and to a few words
about each of them while there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolfold import prompts
from toolfold._summary import few_words_of
from toolfold.answer import Hit
from toolfold.tokens import TokenCounter

__all__ = ["ComposedNeed", "composed", "is_weak", "kept"]

HITS_AT_LEAST = 15
"""How many hits of a need are named, where there are so many and room for them: a right tool that
is not among them is seldom among the next ten."""

NEAR_ZERO = 0.002
"""Below this probability a hit is left out: no right tool of the measured sets was lost by it."""

LIKELY = 0.01
"""How probable a hit must be beside the best one to be shown with its signature."""

CLOSE = 0.5
"""Below this probability the best hit is called a weak match: more likely wrong than right."""

_SPARE_TOKENS = 72
"""What names may take beyond the room that unlikely hits leave: some fifteen of them."""


class ComposedNeed(NamedTuple):
    """One need of a search, and what is shown for it."""

    text: str
    signatures: tuple[Hit, ...] = ()
    names: tuple[tuple[Hit, str], ...] = ()
    """The hits that are shown by name, each with a few words about it, or none."""
    is_weak: bool = False
    """Whether even the best hit is probably none."""

    @property
    def hits(self) -> tuple[Hit, ...]:
        """All of its hits, best first."""
        return (*self.signatures, *(hit for hit, _ in self.names))


def is_weak(hits: Sequence[Hit], *, calibrated: bool) -> bool:
    """Whether the best hit of a need is probably none."""
    return calibrated and bool(hits) and hits[0].score < CLOSE


def composed(
    need: str, hits: Sequence[Hit], limit: int, count: TokenCounter, *, calibrated: bool
) -> ComposedNeed:
    """Return which hits of a need are shown, and how.

    Args:
        need: What was asked for.
        hits: The hits, best first, of which the first are shown.
        limit: How many may have their signatures.
        count: Counts tokens.
        calibrated: Whether their scores are probabilities.
    """
    if not hits:
        return ComposedNeed(need)
    best = hits[0].score if calibrated else 0.0
    shown = kept(hits[: max(limit, HITS_AT_LEAST)], calibrated=calibrated)
    cut = max(sum(hit.score >= LIKELY * best for hit in shown[:limit]), 1)
    room = _SPARE_TOKENS + sum(_in_full(hit, count) for hit in hits[cut:limit])
    named, room = _fitting(shown[cut:], room, count)
    names: list[tuple[Hit, str]] = []
    for hit in named:
        words = few_words_of(hit.tool)
        cost = count(words) + 1 if words else 0
        words, cost = (words, cost) if cost <= room - _SPARE_TOKENS else ("", 0)
        room -= cost
        names.append((Hit(hit.tool, hit.score, hit.need, "name"), words))
    return ComposedNeed(
        need, tuple(shown[:cut]), tuple(names), is_weak=is_weak(hits, calibrated=calibrated)
    )


def kept(hits: Sequence[Hit], *, calibrated: bool) -> list[Hit]:
    """Return the hits of a need without those that are next to impossible; never without the best.

    Args:
        hits: The hits, best first.
        calibrated: Whether their scores are probabilities.
    """
    least = NEAR_ZERO if calibrated else 0.0
    return [*hits[:1], *(hit for hit in hits[1:] if hit.score >= least)]


def _fitting(hits: Sequence[Hit], room: int, count: TokenCounter) -> tuple[list[Hit], int]:
    """Return the first hits whose names have room, and the room that they leave."""
    kept: list[Hit] = []
    for hit in hits:
        left = room - _by_name(hit, count)
        if left < 0:
            break
        kept.append(hit)
        room = left
    return kept, room


def _by_name(hit: Hit, count: TokenCounter) -> int:
    return count(prompts.named_hit(hit.tool.shown_name, "")) + 1


def _in_full(hit: Hit, count: TokenCounter) -> int:
    return count(prompts.hit(hit.signature, hit.source, hit.summary)) + 1
