"""JSON as editors write it, with comments and trailing commas, and where each value stands.

Reading gives a tree of nodes; a node knows its span in the text, so that an error can
name the line and an edit can change one value and leave every other byte alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple

__all__ = ["JsoncError", "Member", "Node", "line_starts", "parse", "skip"]

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}
_DEEPEST = 200
_DECODER = JSONDecoder(strict=False)  # an editor's file may hold a tab in a text


class JsoncError(ValueError):
    """The text is not JSON, comments and trailing commas aside."""

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, position) + 1


class Member(NamedTuple):
    """One pair of an object."""

    key: str
    start: int
    """Where the key begins."""

    value: Node


@dataclass(slots=True)
class Node:
    """A value and its span in the text."""

    start: int
    end: int
    value: Any
    """The plain value, whole."""

    members: list[Member] | None = None
    """The pairs, in order, where it is an object."""

    items: list[Node] = field(default_factory=list["Node"])
    """The elements, where it is a list."""

    def member(self, key: str) -> Member | None:
        """Return the pair with this key; of several, the one that counts."""
        return next((m for m in reversed(self.members or []) if m.key == key), None)


def parse(text: str) -> Node:
    """Return the one value of a text.

    Raises:
        JsoncError: It is not JSON, or something follows the value.
    """
    node = _value(text, skip(text, 0), 0)
    end = skip(text, node.end)
    if end < len(text):
        raise JsoncError("expected nothing after the value", text, end)
    return node


def skip(text: str, position: int) -> int:
    """Return where the next thing begins that is neither white space nor a comment."""
    match = _BLANK.match(text, position)
    return match.end() if match else position


def line_starts(text: str) -> list[int]:
    """Return where each line begins, for `bisect`."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def line_of(starts: list[int], position: int) -> int:
    """Return the line of a position, from 0."""
    return bisect_right(starts, position) - 1


def _value(text: str, start: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise JsoncError("it nests too deep", text, start)
    match text[start : start + 1]:
        case "{":
            return _object(text, start, depth)
        case "[":
            return _list(text, start, depth)
        case '"':
            value, end = _string(text, start)
            return Node(start, end, value)
        case _:
            return _plain(text, start)


def _plain(text: str, start: int) -> Node:
    for word, value in _WORDS.items():
        if text.startswith(word, start):
            return Node(start, start + len(word), value)
    number = _NUMBER.match(text, start)
    if number is None:
        raise JsoncError("expected a value", text, start)
    digits = number.group()
    whole = digits.lstrip("-").isdigit()
    return Node(start, number.end(), int(digits) if whole else float(digits))


def _string(text: str, start: int) -> tuple[str, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except JSONDecodeError as error:
        raise JsoncError("a text is not closed or has a bad escape", text, error.pos) from None


def _object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    position = skip(text, start + 1)
    while text[position : position + 1] != "}":
        if text[position : position + 1] != '"':
            raise JsoncError("expected a key in double quotes", text, position)
        key, end = _string(text, position)
        colon = skip(text, end)
        if text[colon : colon + 1] != ":":
            raise JsoncError("expected ':' after a key", text, colon)
        value = _value(text, skip(text, colon + 1), depth + 1)
        members.append(Member(key, position, value))
        position = _separator(text, value.end, "}")
    plain = {member.key: member.value.value for member in members}
    return Node(start, position + 1, plain, members=members)


def _list(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    position = skip(text, start + 1)
    while text[position : position + 1] != "]":
        items.append(_value(text, position, depth + 1))
        position = _separator(text, items[-1].end, "]")
    return Node(start, position + 1, [item.value for item in items], items=items)


def _separator(text: str, end: int, closing: str) -> int:
    """Return where the next element or the closing bracket stands."""
    position = skip(text, end)
    character = text[position : position + 1]
    if character == ",":
        return skip(text, position + 1)
    if character != closing:
        raise JsoncError(f"expected ',' or '{closing}'", text, position)
    return position
