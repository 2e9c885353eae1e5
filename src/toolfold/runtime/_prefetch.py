"""Prefetch: the likely tools for what the user just said, before the model asks.

The note stands behind the user's message, so the prefix that a provider caches does not
change. Where it names the right tool, the search and its round trip are saved.
"""

from __future__ import annotations

from toolfold import prompts
from toolfold._bounds import one_line, visible
from toolfold.answer import Hit
from toolfold.fold import Folded

__all__ = ["prefetched"]

_HITS = 3
_TEXT_LIMIT = 2_000


def prefetched(folded: Folded, text: str) -> tuple[str, tuple[Hit, ...]]:
    """Return the note for a user's message and the hits it shows; empty where nothing fits.

    All have signatures, since a message may hold several needs: to describe one that is only
    named takes a round trip, as a search does. What an answer would leave out is left out.
    """
    bridge = folded.bridge
    # The note says to run them with `tool_call`: it is for lists that have one.
    if bridge.strategy is None or not bridge.strategy.lists_call or not text.strip():
        return "", ()
    hits = bridge.shown(one_line(text, _TEXT_LIMIT), _HITS)
    if not hits:
        return "", ()
    signatures = (hit.signature for hit in hits)
    note = prompts.may_help(signatures, bridge.names, is_weak=bridge.is_weak(hits))
    return visible(note), hits
