"""Where the values of a JSON text stand in it, to compare them by their bytes."""

from __future__ import annotations

import json

__all__ = ["elements", "member"]

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def member(text: str, key: str) -> str:
    """Return the value of a key of an object as it is written; empty where it has none."""
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        if name == key:
            return text[at:end]
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return ""


def elements(text: str) -> list[str]:
    """Return the values of an array as they are written."""
    found: list[str] = []
    at = _skip(text, text.index("[") + 1) if text else 0
    while text and text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
