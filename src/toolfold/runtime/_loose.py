"""JSON as small models write it.

Python's own reader comes first. Where it refuses, a second one reads what still has one
plain meaning: single and triple quotes, raw control characters, Python's words, trailing
commas, bare keys, brackets that are missing after a closed one at the end. What breaks off
anywhere else is not guessed at. Nothing is evaluated, nothing raises, and the time is linear
in the text.
"""

from __future__ import annotations

import json
import math
import re
from typing import NamedTuple, NoReturn

from toolfold._json_values import NotJsonError, compact_bytes, parse_strict
from toolfold.tool import Json, is_object

__all__ = ["Loose", "arguments_text", "json_text", "loose_json"]

_DEPTH = 64
_DIGITS_AT_MOST = 300

_SPACE = re.compile(r"\s*+")
_BARE_KEY = re.compile(r"[^\W\d][\w$-]{0,127}+")
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.])")
_WORD = re.compile(r"[A-Za-z]{2,8}+(?![\w])")
_STRINGS = {
    '"': re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL),
    '"""': re.compile(r'"""((?:[^"\\]++|\\.|"(?!""))*+)"""', re.DOTALL),
    "'''": re.compile(r"'''((?:[^'\\]++|\\.|'(?!''))*+)'''", re.DOTALL),
}
_ESCAPE = re.compile(
    r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)", re.DOTALL
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ITSELF = frozenset("\"'\\/")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_TAG = re.compile(r"</|<\||<｜|```")
"""Where the writer has ended a value, with all its brackets or not."""


class Loose(NamedTuple):
    """A value that was read."""

    value: Json

    end: int
    """Where it ends in the text."""

    missing: int = 0
    """How many closing brackets the text ended without."""


class _Unreadable(Exception):
    """The text has no plain meaning here."""


def loose_json(text: str, start: int = 0) -> Loose | None:
    """Return the JSON value that begins at `start`, or None where none can be read."""
    start = _skipped(text, start)
    try:
        return Loose(*_STRICT.raw_decode(text, start))
    except (ValueError, RecursionError):
        pass
    reader = _Reader(text)
    try:
        value, end = reader.value(start, _DEPTH)
    except (_Unreadable, RecursionError):
        return None
    return Loose(value, end, reader.missing)


def json_text(value: Json) -> str | None:
    """Return the JSON text of a value that was read, or None where it nests too deep."""
    try:
        return compact_bytes(value).decode()
    except NotJsonError:
        return None


def arguments_text(text: str) -> str | None:
    """Return a call's arguments as the JSON text of an object, or None.

    Text that is one already comes back as it is; blank text stands for no arguments.
    """
    if not text.strip():
        return "{}"
    read = loose_json(text)
    if read is None or not is_object(read.value) or read.missing > 1:
        return None
    if text[read.end :].strip("}] \t\r\n"):
        return None
    try:
        return text if is_object(parse_strict(text)) else None
    except ValueError:
        return json_text(read.value)


def _refuse(_: str) -> NoReturn:
    raise ValueError("no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("no finite number")
    return number


_STRICT = json.JSONDecoder(strict=False, parse_constant=_refuse, parse_float=_finite)


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


class _Reader:
    """Reads one value, from a place to the next."""

    __slots__ = ("missing", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.missing = 0

    def value(self, at: int, depth: int) -> tuple[Json, int]:
        at = _skipped(self.text, at)
        opening = self.text[at : at + 1]
        if not depth or not opening:
            raise _Unreadable
        if opening == "{":
            return self.object(at + 1, depth - 1)
        if opening == "[":
            return self.array(at + 1, depth - 1)
        if opening in "\"'":
            return self.string(at)
        number = _NUMBER.match(self.text, at)
        if number:
            return _number(number[0]), number.end()
        word = _WORD.match(self.text, at)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        raise _Unreadable

    def object(self, at: int, depth: int) -> tuple[Json, int]:
        members: dict[str, Json] = {}
        while True:
            at = _skipped(self.text, at)
            if self.text.startswith("}", at):
                return members, at + 1
            key, at = self.key(at)
            at = _skipped(self.text, at)
            if not self.text.startswith(":", at):
                raise _Unreadable
            members[key], at = self.value(at + 1, depth)
            at, ended = self.after(at, "}")
            if ended:
                return members, at

    def array(self, at: int, depth: int) -> tuple[Json, int]:
        items: list[Json] = []
        while True:
            at = _skipped(self.text, at)
            if self.text.startswith("]", at):
                return items, at + 1
            item, at = self.value(at, depth)
            items.append(item)
            at, ended = self.after(at, "]")
            if ended:
                return items, at

    def after(self, at: int, closing: str) -> tuple[int, bool]:
        """Return where to go on after a member, and whether its container has ended."""
        is_bracketed = self.text[at - 1] in "}]"
        at = _skipped(self.text, at)
        if self.text.startswith(",", at):
            return at + 1, False
        if self.text.startswith(closing, at):
            return at + 1, True
        if at == len(self.text) and is_bracketed:
            self.missing += 1
            return at, True
        if _TAG.match(self.text, at):
            return at, True
        raise _Unreadable

    def key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] in ('"', "'"):
            return self.string(at)
        bare = _BARE_KEY.match(self.text, at)
        if bare is None:
            raise _Unreadable
        return bare[0], bare.end()

    def string(self, at: int) -> tuple[str, int]:
        quotes = self.text[at : at + 3]
        quotes = quotes if quotes in _STRINGS else quotes[0]
        match = _STRINGS[quotes].match(self.text, at)
        if match is None:
            raise _Unreadable
        content = match[1]
        return (_unescaped(content) if "\\" in content else content), match.end()


def _unescaped(content: str) -> str:
    plain = _ESCAPE.sub(_character, content)
    if _SURROGATE.search(plain):
        return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return plain


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    # An escape that means nothing is a backslash that was meant as one, as in a pattern.
    return _ESCAPED.get(code) or (code if code in _ITSELF else match[0])


def _number(digits: str) -> int | float:
    if len(digits) > _DIGITS_AT_MOST:
        raise _Unreadable
    try:
        return int(digits)
    except ValueError:
        number = float(digits)
    if math.isinf(number):
        raise _Unreadable
    return number
