"""Calls that a small model writes as text, where its upstream is set to be read so.

A text is a call only where a tool that is offered would be called by it, and never where it
stands in what the user or a tool said: whoever can write there could else make calls.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence

from toolfold._json_values import compact, parse
from toolfold.proxy.turns import ModelCall
from toolfold.runtime._lenient import recovered_calls
from toolfold.tool import Json, is_array, is_object

__all__ = ["Recovery"]

_DECODER = json.JSONDecoder()
_BEGINS = re.compile(r'\{\s*"')
_ESCAPED = re.compile(r'(?<!\\)\\++(["/nrt])')
_ESCAPED_LENGTH = 6
"""How many characters one may be written in."""

_WHITE_SPACE = 2_000
"""How much longer an object may be in a text than in its shortest form."""

_TRIED_AT_MOST = 20_000
"""How many places in a text are looked at."""

_QUOTING = str.maketrans("", "", "\\\"'")


class Recovery:
    """Reads calls in the texts of one answer.

    Args:
        is_known: Whether a tool of this name is offered, or one of ours.
        items: The conversation.
        seed: Makes the ids of the calls those of this answer alone.
    """

    def __init__(self, is_known: Callable[[str], bool], items: Sequence[Json], seed: str) -> None:
        self._is_known = is_known
        self._items = [item for item in items if not _is_models(item)]
        self._seed = seed
        self._said: str | None = None
        self._made = 0

    def calls(self, text: str, prefix: str) -> tuple[ModelCall, ...]:
        """Return the calls that a text is, or holds in tags.

        Args:
            text: What the model wrote.
            prefix: What ids of calls begin with in this dialect.
        """
        found = recovered_calls(text, self._is_known)
        if not found or self._stood(text):
            return ()
        if any(self._stood_with(call.name, call.arguments) for call in found):
            return ()
        calls: list[ModelCall] = []
        for place, call in enumerate(found):
            self._made += 1
            mark = hashlib.sha256(f"{self._seed} {self._made}".encode()).hexdigest()[:24]
            calls.append(
                ModelCall(f"{prefix}{mark}", call.name, call.arguments, place=place, is_text=True)
            )
        return tuple(calls)

    def _stood(self, text: str) -> bool:
        return _bare(text) in self._others

    def _stood_with(self, name: str, arguments: str) -> bool:
        bare, inner = _bare(arguments), parse(arguments)
        if inner and _bare(name) in self._others and (bare in self._others or self._gave(inner)):
            return True
        # What somebody wrote as a call of a tool is one, too, when our own call holds it.
        own, held = (inner.get("name"), inner.get("arguments")) if is_object(inner) else ("", None)
        return isinstance(own, str) and is_object(held) and self._stood_with(own, compact(held))

    def _gave(self, arguments: Json) -> bool:
        """Whether others gave an object of this value, in whatever order and white space."""
        if any(value == arguments for value in _objects(self._items)):
            return True
        longest = _ESCAPED_LENGTH * len(compact(arguments)) + _WHITE_SPACE
        try:
            return any(
                value == arguments
                for text in _texts(self._items)
                for value in objects_in(text, longest)
            )
        except _TooMuchError:
            return True

    @property
    def _others(self) -> str:
        """All that others than the model said, as far as quoting changes nothing about it."""
        if self._said is None:
            self._said = "\n".join(map(_bare, _texts(self._items)))
        return self._said


def objects_in(text: str, longest: int) -> Iterator[dict[str, Json]]:
    """Yield the JSON objects that stand in a text, quoted or not, and those in them.

    Args:
        text: The text.
        longest: How many characters of an object are looked at.

    Raises:
        _TooMuchError: More may be some than anybody can look at.
    """
    tried = 0
    for form in {text, _ESCAPED.sub(_plain, text), text.replace("'", '"')}:
        end = 0
        for found in _BEGINS.finditer(form):
            if found.start() < end:
                continue
            tried += 1
            if tried > _TRIED_AT_MOST:
                raise _TooMuchError
            try:
                value, length = _DECODER.raw_decode(form[found.start() : found.start() + longest])
            except (ValueError, RecursionError):
                continue
            end = found.start() + length
            yield from _objects(value)


class _TooMuchError(Exception):
    """A text holds too much of what may be objects."""


def _plain(escape: re.Match[str]) -> str:
    return escape[1] if escape[1] in '"/' else " "


def _objects(value: Json) -> Iterator[dict[str, Json]]:
    """Yield the objects in a value, itself among them."""
    if is_object(value):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif is_array(value):
        for inner in value:
            yield from _objects(inner)


def _is_models(item: Json) -> bool:
    """Whether an item of a conversation is what the model said."""
    if not is_object(item):
        return False
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")


def _bare(text: str) -> str:
    """Return a text without what changes when it is quoted: white space, quotes, backslashes."""
    return "".join(text.translate(_QUOTING).split())


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for inner in value.values():
            yield from _texts(inner)
    elif is_array(value):
        for inner in value:
            yield from _texts(inner)
