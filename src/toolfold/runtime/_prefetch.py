"""Prefetch: the likely tools for what the user just said, before the model asks.

The note stands behind the user's message, so the prefix that a provider caches does not
change. Where it names the right tool, the search and its round trip are saved. A small model
begins with the tool that is named first: of a request with several steps, the tools that
surely serve one stand in the order of the steps, and an open tool that serves a step better
than any folded one is named before them.

Whether it speaks is the setting `prefetch`. A provider that defers tools itself is told
nothing: it takes references and definitions as the answer to a search of the model's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolfold import prompts
from toolfold._bounds import one_line, visible
from toolfold._composition import CLOSE, LIKELY
from toolfold.answer import Hit
from toolfold.fold import Folded
from toolfold.runtime._request_words import asks_nothing, request_words
from toolfold.search import clauses, index_of

__all__ = ["may_prefetch", "prefetched"]

_HITS = 3
_TEXT_LIMIT = 2_000
_STEPS_AT_MOST = 3
_SURE = 0.6
"""How probable the best tool of a step must be to be named in its place."""
_OPEN = 0.1
"""The same for one that is open: to name it takes a word, and the model has its schema."""


def may_prefetch(folded: Folded) -> bool:
    """Whether anything is ever named behind a message, with these settings and this strategy."""
    bridge = folded.bridge
    # The note says to run them with `tool_call`: it is for lists that have one.
    has_call = bridge.strategy is not None and bridge.strategy.lists_call
    return has_call and bridge.settings.prefetch != "off"


def prefetched(
    folded: Folded,
    text: str,
    *,
    is_seen: Callable[[Hit], bool] = lambda hit: False,
    is_later: bool = False,
) -> tuple[str, tuple[Hit, ...]]:
    """Return the note for a user's message and the hits it shows; empty where nothing is said.

    All have signatures, since a message may hold several needs: to describe one that is only
    named takes a round trip, as a search does. What an answer would leave out is left out, and
    what the conversation has seen already is not said again.

    Args:
        folded: What the model sees.
        text: The message.
        is_seen: Whether the model has read how a tool is called, or has called it.
        is_later: Whether the model has said something before.
    """
    if not may_prefetch(folded):
        return "", ()
    text = one_line(request_words(text), _TEXT_LIMIT)
    if asks_nothing(text, is_later=is_later):
        return "", ()
    bridge = folded.bridge
    hits = bridge.shown(text, _HITS)
    is_sure, calibrated = bridge.settings.prefetch == "sure", bridge.ranker.calibrated
    is_weak = bridge.is_weak(hits)
    # By what search calls a close match: over five dev sets a right tool is then among those
    # that are named for 95 % of the requests that get a note, which are 95 % of all.
    if not hits or (is_sure and (is_weak or not calibrated)):
        return "", ()
    best = hits[0]
    opened: tuple[str, ...] = ()
    if calibrated:
        needs = clauses(text)
        steps = needs if len(needs) <= _STEPS_AT_MOST else [text]
        opened = _opened(folded, steps)
        if is_sure and len(needs) == 1:
            hits = tuple(hit for hit in hits if hit.score >= LIKELY * best.score)
        hits = _in_order(folded, steps, hits)
        if is_sure and opened and len(needs) == 1:
            return "", ()
    hits = _unseen(hits, best, is_seen)
    if not hits:
        return "", ()
    signatures = (hit.signature for hit in hits)
    note = prompts.may_help(signatures, bridge.names, is_weak=is_weak, listed=opened)
    return visible(note), hits


def _unseen(hits: Sequence[Hit], best: Hit, is_seen: Callable[[Hit], bool]) -> tuple[Hit, ...]:
    """Return the hits that the model has not seen.

    Where it knows the best one, the others are said only if they are sure themselves: alone they
    would look like the better ones.
    """
    unseen = tuple(hit for hit in hits if not is_seen(hit))
    if len(unseen) == len(hits) or best in unseen:
        return unseen
    return tuple(hit for hit in unseen if hit.score >= CLOSE)


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
