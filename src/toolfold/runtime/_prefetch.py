"""Prefetch: the likely tools for what the user just said, before the model asks.

The note stands behind the user's message, so the prefix that a provider caches does not
change. Where it names the right tool, the search and its round trip are saved. A small model
begins with the tool that is named first: of a request with several steps, the tools that
surely serve one stand in the order of the steps.
"""

from __future__ import annotations

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.answer import Hit
from toolfold.fold import Folded
from toolfold.search import clauses

__all__ = ["prefetched"]

_HITS = 3
_TEXT_LIMIT = 2_000
_STEPS_AT_MOST = 3
_SURE = 0.6
"""How probable the best tool of a step must be to be named in its place."""


def prefetched(folded: Folded, text: str) -> tuple[str, tuple[Hit, ...]]:
    """Return the note for a user's message and the hits it names; empty where nothing fits."""
    strategy = folded.bridge.strategy
    # The note says to run them with `tool_call`: it is for lists that have one.
    if strategy is None or strategy.reveals or not text.strip():
        return "", ()
    hits = _hits(folded, one_line(text, _TEXT_LIMIT))
    if not hits:
        return "", ()
    return prompts.may_help((hit.signature for hit in hits), folded.bridge.names), hits


def _hits(folded: Folded, text: str) -> tuple[Hit, ...]:
    """Return the tools that a text needs, the likeliest first or else in the order of its steps."""
    bridge = folded.bridge
    found = bridge.search(text, _HITS)
    steps = clauses(text)
    if not found or not 1 < len(steps) <= _STEPS_AT_MOST or not bridge.ranker.calibrated:
        return found
    best = [hit for step in steps for hit in bridge.search(step, 1) if hit.score >= _SURE]
    return tuple({hit.name: hit for hit in (*best, *found)}.values())[:_HITS]
