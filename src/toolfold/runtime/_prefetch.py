"""Prefetch: the likely tools for what the user just said, before the model asks.

The note stands behind the user's message, so the prefix that a provider caches does not
change. Where it names the right tool, the search and its round trip are saved. A small model
begins with the tool that is named first: of a request with several steps, the tools that
surely serve one stand in the order of the steps, and an open tool that serves a step better
than any folded one is named before them.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolfold import prompts
from toolfold._bounds import one_line, visible
from toolfold.answer import Hit
from toolfold.fold import Folded
from toolfold.search import clauses, index_of

__all__ = ["prefetched"]

_HITS = 3
_TEXT_LIMIT = 2_000
_STEPS_AT_MOST = 3
_SURE = 0.6
"""How probable the best tool of a step must be to be named in its place."""
_OPEN = 0.1
"""The same for one that is open: to name it takes a word, and the model has its schema."""


def prefetched(folded: Folded, text: str) -> tuple[str, tuple[Hit, ...]]:
    """Return the note for a user's message and the hits it shows; empty where nothing fits.

    All have signatures, since a message may hold several needs: to describe one that is only
    named takes a round trip, as a search does. What an answer would leave out is left out.
    """
    bridge = folded.bridge
    # The note says to run them with `tool_call`: it is for lists that have one.
    if bridge.strategy is None or not bridge.strategy.lists_call or not text.strip():
        return "", ()
    text = one_line(text, _TEXT_LIMIT)
    hits = bridge.shown(text, _HITS)
    if not hits:
        return "", ()
    is_weak = bridge.is_weak(hits)
    opened: tuple[str, ...] = ()
    if bridge.ranker.calibrated:
        steps = clauses(text)
        steps = steps if len(steps) <= _STEPS_AT_MOST else [text]
        opened = _opened(folded, steps)
        hits = _in_order(folded, steps, hits)
    signatures = (hit.signature for hit in hits)
    note = prompts.may_help(signatures, bridge.names, is_weak=is_weak, listed=opened)
    return visible(note), hits


def _in_order(folded: Folded, steps: Sequence[str], found: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits, those that surely serve a step before the others and in the steps' order."""
    search = folded.bridge.search
    best = [hit for step in steps for hit in search(step, 1) if hit.score >= _SURE]
    best = best if len(steps) > 1 else []
    return tuple({hit.name: hit for hit in (*best, *found)}.values())[:_HITS]


def _opened(folded: Folded, steps: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the open tools that serve a step better than any folded one."""
    bridge, catalog = folded.bridge, folded.catalog
    if len(bridge.folded) == len(catalog):
        return ()
    index = index_of(catalog.tools, catalog.fingerprint, bridge.ranker)
    names: list[str] = []
    for step in steps:
        for match in index.search(step, 1):
            tool = catalog.tools[match.position]
            if tool.name not in bridge.folded and match.score >= _OPEN:
                names.append(tool.shown_name)
    return tuple(dict.fromkeys(names))
