"""The likely tools, named behind what the user just said, before the model asks.

A note is a message of its own behind the user's, never inside it, and stands there in every
later request, to the byte: it is kept under a digest of all that stands before it. Where the
store lost it, it was never there.

It speaks as the user: what a tool says of itself is a stranger's text, to which a system's or a
developer's message would give a weight that is not its own, and templates that are strict about
those put them elsewhere or refuse them. Some refuse a second message of the user's as well
(Mistral's, Gemma's: roles must alternate). Then the request goes up once more without notes,
and that model is told none from then on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from toolfold._json_values import sendable
from toolfold._memo import Memo
from toolfold.answer import Hit
from toolfold.proxy.folding import FoldedTools
from toolfold.proxy.history import History
from toolfold.proxy.json_spans import Edit
from toolfold.proxy.request import ProxiedRequest
from toolfold.runtime._prefetch import may_prefetch, prefetched
from toolfold.runtime._request_words import request_words
from toolfold.tool import Json, is_array, is_object

__all__ = ["Notes", "notes_for", "refuses_notes", "take_no_notes", "takes_notes"]

_TEXTS = frozenset({"text", "input_text"})
_BESIDE = frozenset({"system", "developer"})
"""Who may speak behind the user before the model does."""

_ABOUT_ROLES = re.compile(
    rb"alternat|consecutive|unexpected role|after role|roles? must|same role|jinja|template",
    re.IGNORECASE,
)
_REFUSALS = frozenset({400, 422, 500})
_READ_AT_MOST = 20_000

_DEAF: Memo[tuple[str, str], bool] = Memo(256)
"""The models that do not take two messages of the user in a row, by address and name."""


class Notes(NamedTuple):
    """The notes of one request."""

    edits: tuple[Edit, ...] = ()
    """What puts them behind the messages of the user."""

    behind: tuple[str, ...] = ()
    """What stands behind a conversation that is one text."""

    hits: tuple[Hit, ...] = ()
    """What is named in this request for the first time."""

    def __bool__(self) -> bool:
        return bool(self.edits or self.behind)


def notes_for(
    request: ProxiedRequest, history: History, tools: FoldedTools, edits: Sequence[Edit]
) -> Notes:
    """Return the notes of a request: those that were kept, and one for what was said last.

    Args:
        request: The request.
        history: What its conversation is known by.
        tools: Its tools, folded.
        edits: What else is changed of it: what the model saw of earlier searches.
    """
    if not may_prefetch(tools.folded):
        return Notes()
    known = tools.folded.catalog
    kept = dict(_kept(request, history, lambda name: name in known))
    place, hits = _said_last(request), ()
    if place is not None and _may_call(request) and not history.has_note(place):
        before = [*(_edit(request, *one) for one in kept.items()), *edits]
        note, hits = prefetched(
            tools.folded,
            _text(request, place),
            is_seen=_seen_in(lambda: request.written(before).decode(), history.called),
            is_later=history.has_answers,
        )
        if note:
            kept[place] = sendable({"role": "user", "content": note}).decode()
            history.keep_note(place, kept[place], [hit.name for hit in hits])
    if request.is_one_text:
        return Notes(behind=tuple(kept.values()), hits=hits)
    return Notes(tuple(_edit(request, *one) for one in sorted(kept.items())), hits=hits)


def refuses_notes(status: int, body: bytes) -> bool:
    """Whether an upstream's error is about whose turn it is to speak."""
    return status in _REFUSALS and bool(_ABOUT_ROLES.search(body[:_READ_AT_MOST]))


def takes_notes(address: str, model: str) -> bool:
    """Whether a model may be told something behind the user's message."""
    return not _DEAF.get((address, model))


def take_no_notes(address: str, model: str) -> None:
    """Remember that a model takes no second message of the user."""
    _DEAF.put((address, model), True)


def _kept(
    request: ProxiedRequest, history: History, is_there: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Yield the notes that were kept, each with how many items stand before it."""
    places = [1] if request.is_one_text else range(1, len(request.items) + 1)
    for place in places:
        if request.is_one_text or _is_users(request.items[place - 1].value):
            note = history.note(place, is_there)
            if note is not None:
                yield place, note


def _edit(request: ProxiedRequest, place: int, note: str) -> Edit:
    end = request.items[place - 1].end
    return Edit(end, end, request.separator + note)


def _said_last(request: ProxiedRequest) -> int | None:
    """Return how many items stand up to the user's words that are not answered yet, if any."""
    if request.is_one_text:
        return 1
    for place in range(len(request.items), 0, -1):
        item = request.items[place - 1].value
        if item.get("role") in _BESIDE:
            continue
        if not _is_users(item):
            return None
        if request_words(_text(request, place)):
            return place
    return None


def _may_call(request: ProxiedRequest) -> bool:
    choice = request.document.get("tool_choice")
    return (choice.get("type") if is_object(choice) else choice) != "none"


def _is_users(item: Json) -> bool:
    """Whether an item is a message of the user, and holds no results of tools."""
    if not is_object(item) or item.get("role") != "user":
        return False
    if item.get("type") not in (None, "message"):
        return False
    content = item.get("content")
    parts = content if is_array(content) else ()
    return not any(is_object(p) and p.get("type") == "tool_result" for p in parts)


def _text(request: ProxiedRequest, place: int) -> str:
    if request.is_one_text:
        return str(request.document.get("input"))
    content = request.items[place - 1].value.get("content")
    if isinstance(content, str):
        return content
    parts = [p for p in (content if is_array(content) else ()) if is_object(p)]
    texts = (p.get("text") for p in parts if p.get("type") in _TEXTS)
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _seen_in(written: Callable[[], str], called: frozenset[str]) -> Callable[[Hit], bool]:
    """Return the test of whether the model that is sent a request knows how a tool is called."""
    body = cache(written)

    def is_seen(hit: Hit) -> bool:
        quoted = sendable(hit.signature).decode()[1:-1]
        return hit.name in called or quoted in body()

    return is_seen
