"""Which errors say that a provider does not take deferred tools.

An error may quote the request: a tool's name, a piece of its description, an argument that
its schema names. Such a quotation says nothing about the provider, so a field counts only
where the error is about it: at the end of a path into the request, as a value of its own
that is no tool's name, or beside words that refuse something.
"""

from __future__ import annotations

import re

from toolfold._json_values import NotJsonError, parse
from toolfold.tool import Json, is_array, is_object

__all__ = ["names_deferral"]

_READ_AT_MOST = 20_000
_BESIDE = 80
"""How far from a field the words may stand that refuse it."""

_FIELD = (
    r"(?:defer_loading|tool_references?|tool_search(?:_call|_output|_tool_\w+)?"
    r"|tool_addition|tool_definition)"
)
_PATH = re.compile(
    rf"(?<![\w.\]-])(?:(?:[A-Za-z_]\w*|\d+)(?:\[\d+\])*\.)+{_FIELD}(?![\w.\[-])"
    rf"|\]\.(?:{_FIELD}|execution|namespace)\b(?![\w.\[-])",
    re.IGNORECASE,
)
_ROOT = re.compile(r"(?:body|request|tools?|messages|input)(?:\[\d+\])*\.", re.IGNORECASE)
_IN_A_SCHEMA = re.compile(r"\b(?:input_schema|parameters|properties|schema|\$?defs)\b", re.I)
_VALUE = re.compile(rf"{_FIELD}|inline-tools[\w-]*", re.IGNORECASE)
_WORD = re.compile(
    rf"(?<![\w.-])(?:{_FIELD}|tool references?|deferred tools?)(?![\w.-])|inline-tools", re.I
)
_MISSING = re.compile(r"missing namespace for function_call", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)(['\"`“‘])(.{0,600}?)(?:['\"`”’])(?!\w)", re.DOTALL)
_A_NAME_FOLLOWS = re.compile(
    r"\b(?:(?:functions?|tools?|named?|called)[\s:=(]*|(?:properties|parameters)['\"`,\s]+)\Z",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(?:un\w*(?:known|supported|recogni[sz]ed|expected|permitted)|unknown|invalid|extra|beta"
    r"|not (?:\w+ ){0,2}(?:permitted|allowed|known|available|enabled|supported|accepted|valid)"
    r"|no (?:corresponding|such)|missing|found using|does(?: not|n't)|requires?|needs?|must"
    r"|cannot)\b",
    re.IGNORECASE,
)


def names_deferral(body: str | bytes | Json) -> bool:
    """Whether an error is about one of the fields that defer tools.

    Args:
        body: What came with the status: the text, or the JSON in it.
    """
    said = _message(body)
    if _MISSING.search(said) or any(_is_of_ours(path[0]) for path in _PATH.finditer(said)):
        return True
    return any(_is_value(quote, said) for quote in _QUOTED.finditer(said)) or any(
        _REFUSES.search(_around(word, bare)) is not None
        for bare in (_QUOTED.sub(_emptied, said),)
        for word in _WORD.finditer(bare)
    )


def _is_of_ours(path: str) -> bool:
    """Whether a path leads to a field of a tool or a message, and not into a tool's schema."""
    if _IN_A_SCHEMA.search(path):
        return False
    return path.startswith("]") or _ROOT.match(path) is not None


def _is_value(quote: re.Match[str], said: str) -> bool:
    """Whether a quotation is a field by itself, and no tool's name."""
    if _VALUE.fullmatch(quote[2]) is None:
        return False
    return _A_NAME_FOLLOWS.search(said[max(quote.start() - _BESIDE, 0) : quote.start()]) is None


def _around(word: re.Match[str], said: str) -> str:
    return said[max(word.start() - _BESIDE, 0) : word.end() + _BESIDE]


def _emptied(quote: re.Match[str]) -> str:
    return f"{quote[1]}{quote[1]}"


# ---- what an error says


def _message(body: str | bytes | Json) -> str:
    """Return what an error says, without what it may quote elsewhere."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        text = body[:_READ_AT_MOST]
        try:
            body = parse(text)
        except (NotJsonError, ValueError, RecursionError):
            return text
    error = body.get("error", body) if is_object(body) else body
    if not is_object(error):
        return str(error)[:_READ_AT_MOST]
    named = [error.get(key) for key in ("message", "param", "code", "detail")]
    said = " ".join(_faults(part) for part in named if part is not None)
    return (said or str(error))[:_READ_AT_MOST]


def _faults(part: Json) -> str:
    """Return a part of an error, without the request that some servers quote in it."""
    return "\n".join(map(_fault, part if is_array(part) else [part]))


def _fault(fault: Json) -> str:
    if not is_object(fault):
        return str(fault)
    place = fault.get("loc")
    if not is_array(place):
        return str({**fault, "input": None})
    return f"{'.'.join(map(str, place))}: {fault.get('msg')}"
