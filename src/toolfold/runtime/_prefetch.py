"""Prefetch: the likely tools for what the user just said, before the model asks.

The note stands behind the user's message, so the prefix that a provider caches does not
change. Where it names the right tool, the search and its round trip are saved.
"""

from __future__ import annotations

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.answer import Hit
from toolfold.fold import Folded

__all__ = ["prefetched"]

_HITS = 3
_TEXT_LIMIT = 2_000


def prefetched(folded: Folded, text: str) -> tuple[str, tuple[Hit, ...]]:
    """Return the note for a user's message and the hits it names; empty where nothing fits."""
    strategy = folded.bridge.strategy
    # The note says to run them with `tool_call`: it is for lists that have one.
    if strategy is None or not strategy.lists_call or not text.strip():
        return "", ()
    hits = folded.bridge.search(one_line(text, _TEXT_LIMIT), _HITS)
    if not hits:
        return "", ()
    return prompts.may_help((hit.signature for hit in hits), folded.bridge.names), hits
