"""Where the values of a JSON text stand, so that a part of it can be changed and the rest kept.

A request is read as text and written by splicing: what nobody changes keeps the very bytes it
came in, white space, escapes and the order of keys included. Python's own scanner reads each
value and says where it ends, which is all that is needed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from toolfold.tool import Json, is_object

__all__ = ["Edit", "Element", "JsonDocument", "UnreadableError", "elements", "members", "spliced"]

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"


class UnreadableError(Exception):
    """A text is not a JSON object that can be read for certain."""


class Element(NamedTuple):
    """A value, and where it stands in its text."""

    value: Json
    start: int
    end: int

    def text(self, whole: str) -> str:
        """Return it as it stands in its text."""
        return whole[self.start : self.end]


class Edit(NamedTuple):
    """What stands in place of a part of a text; where the part is empty, what comes in there."""

    start: int
    end: int
    text: str


class JsonDocument(NamedTuple):
    """A JSON object, and where its members stand."""

    text: str
    members: dict[str, Element]
    arrays: dict[str, tuple[Element, ...]]
    """The values of those of its arrays that were asked for."""

    @classmethod
    def of(cls, body: bytes, arrays: Collection[str] = ()) -> JsonDocument:
        """Read a body.

        Args:
            body: The bytes.
            arrays: The keys of the arrays whose values' places are wanted.

        Raises:
            UnreadableError: It is no object in UTF-8, nests too deep, holds a number that nobody
                reads, or has one key twice, which readers take differently.
        """
        try:
            text = body.decode("utf-8")
            found = members(text, 0, arrays)
            if _skipped(text, found.end) != len(text):
                raise UnreadableError
        except (ValueError, RecursionError):
            raise UnreadableError from None
        return cls(text, found.members, found.arrays)

    def get(self, key: str) -> Json:
        """Return the value of a member, or None."""
        found = self.members.get(key)
        return None if found is None else found.value

    @property
    def separator(self) -> str:
        """What its writer puts between two members."""
        ordered = sorted(self.members.values(), key=lambda member: member.start)
        if len(ordered) < 2:
            return ","
        between = self.text[ordered[0].end : ordered[1].start]
        return between[: between.find('"')] if '"' in between else ","


class _Members(NamedTuple):
    members: dict[str, Element]
    arrays: dict[str, tuple[Element, ...]]
    end: int


def members(text: str, start: int, arrays: Collection[str] = ()) -> _Members:
    """Return the members of the object that begins at a place, and where it ends.

    Args:
        text: The text.
        start: The place.
        arrays: The keys of the arrays whose values' places are wanted.

    Raises:
        UnreadableError: There is no object, or it has one key twice.
        ValueError: It is not JSON.
        RecursionError: It nests too deep.
    """
    at = _skipped(text, start)
    if not text.startswith("{", at):
        raise UnreadableError
    found: dict[str, Element] = {}
    split: dict[str, tuple[Element, ...]] = {}
    at = _skipped(text, at + 1)
    if text.startswith("}", at):
        return _Members(found, split, at + 1)
    while True:
        if not text.startswith('"', at):
            raise UnreadableError
        key = _element(text, at)
        at = _skipped(text, key.end)
        if not text.startswith(":", at) or key.value in found:
            raise UnreadableError
        at = _skipped(text, at + 1)
        if key.value in arrays and text.startswith("[", at):
            items, end = _array(text, at)
            split[key.value] = tuple(items)
            member = Element([item.value for item in items], at, end)
        else:
            member = _element(text, at)
        found[key.value] = member
        at = _skipped(text, member.end)
        if text.startswith("}", at):
            return _Members(found, split, at + 1)
        if not text.startswith(",", at):
            raise UnreadableError
        at = _skipped(text, at + 1)


def elements(text: str, start: int) -> list[Element]:
    """Return the values of the array that begins at a place, each with where it stands.

    Raises:
        UnreadableError: There is no array.
        ValueError: It is not JSON.
        RecursionError: It nests too deep.
    """
    at = _skipped(text, start)
    if not text.startswith("[", at):
        raise UnreadableError
    return _array(text, at)[0]


def _array(text: str, at: int) -> tuple[list[Element], int]:
    """Return the values of the array that begins here, and where it ends."""
    found: list[Element] = []
    at = _skipped(text, at + 1)
    if text.startswith("]", at):
        return found, at + 1
    while True:
        item = _element(text, at)
        found.append(item)
        at = _skipped(text, item.end)
        if text.startswith("]", at):
            return found, at + 1
        if not text.startswith(",", at):
            raise UnreadableError
        at = _skipped(text, at + 1)


def spliced(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with parts of it replaced; the parts do not overlap.

    Where several come in at one place, they stand there in the order they are given.
    """
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts.append(text[at : edit.start])
        parts.append(edit.text)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def separator_of(text: str, items: Sequence[Element], default: str) -> str:
    """Return what a writer puts between the items of an array."""
    return text[items[0].end : items[1].start] if len(items) > 1 else default


def _element(text: str, at: int) -> Element:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except StopIteration:
        raise UnreadableError from None
    return Element(value, at, end)


def _skipped(text: str, at: int) -> int:
    while text[at : at + 1] in _SPACE and at < len(text):
        at += 1
    return at


def without(value: Json, key: str) -> Json:
    """Return a value without a key, wherever in its objects it stands."""
    if is_object(value):
        return {k: without(v, key) for k, v in value.items() if k != key}
    return [without(v, key) for v in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
