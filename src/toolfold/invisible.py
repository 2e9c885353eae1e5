"""Texts of strangers with nothing hidden in them.

A description may hold characters that a person does not see and a model reads: zero-width
ones, direction marks, tag letters that spell a second text, escapes that a terminal obeys.
`shown` writes each of them out (`[U+202E]`), so that both read the same; `marks` says in
words what was there. Nothing is dropped, and nothing invisible passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from operator import is_

from toolfold import prompts
from toolfold._bounds import ELLIPSIS, cut
from toolfold._characters import has_hidden, runs
from toolfold._json_values import compact
from toolfold.tool import Json, Tool, is_array, is_mapping

__all__ = ["marks", "shown", "shown_texts", "shown_tool"]

_PLAIN = re.compile(r"[\t\n -~]*\Z")
_RUN = 4
_SCANNED = 50_000
_DEPTH = 64

_READ = frozenset({"description", "title", "$comment"})
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_ESCAPE = re.compile("[\x1b\x9b\x90\x9d]")
_GAP = re.compile(r"[ \t]{200}|(?:[ \t]*\n){30}")

_ORDERS = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (
            r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}"
            r"\b(?:previous|prior|above|earlier|preceding|system|all|any)\b[^.\n]{0,40}"
            r"\b(?:instruction|prompt|rule|message|direction|context|guideline)",
            "tells the model to set instructions aside",
        ),
        (
            r"\b(?:do not|don't|never|must not|without)\b[^.\n]{0,20}"
            r"\b(?:tell|telling|inform|informing|mention|mentioning|reveal|show|notify|alert"
            r"|asking|ask)\b[^.\n]{0,30}\b(?:user|human|person|anyone|this|it)\b",
            "tells the model to hide something from the person",
        ),
        (
            r"<\s*/?\s*(?:important|system|secret|instructions?|admin|hidden)\s*>"
            r"|\[\s*/?\s*(?:system|inst)\s*\]|<\|im_start\|>",
            "is written like a message of the system",
        ),
        (
            r"\b(?:before|after|when|whenever|prior to)\b[^.\n]{0,40}"
            r"\b(?:using|calling|use|call|invoking)\b[^.\n]{0,40}\b(?:tool|function)s?\b"
            r"[^.\n]{0,60}\b(?:must|always|first|should)\b",
            "tells the model what to do around other calls",
        ),
        (
            r"(?:~|\$HOME|/home/\w+|/root)/\.(?:ssh|aws|cursor|config|netrc|gnupg|kube)\b"
            r"|\bid_(?:rsa|ed25519)\b|\bmcp\.json\b|/etc/(?:passwd|shadow)",
            "names files that hold secrets",
        ),
    )
)


def shown(text: str, limit: int | None = None) -> str:
    """Return `text` with every character that cannot be seen written out.

    Args:
        text: The text. Line breaks and tabs stay.
        limit: The most characters to return; what is beyond is cut, with an ellipsis.

    Example:
        assert shown("pay\\u202eme") == "pay[U+202E]me"
    """
    is_cut = limit is not None and len(text) > limit
    text = text[:limit] if is_cut else text
    if has_hidden(text):
        text = "".join(_written_out(text.replace("\r\n", "\n")))
    return text if limit is None else cut(text + ELLIPSIS if is_cut else text, limit)


def shown_tool(tool: Tool, limit: int) -> Tool:
    """Return a tool whose texts hide nothing; the very same one where they do not already.

    A text longer than the limit is cut, and says so at its end.

    Names, enumerations and defaults stay as they are, since calls must carry them back to
    the server unchanged.
    """
    raw = _shown_texts(tool.raw, limit, _DEPTH)
    if raw is not None and raw is tool.raw:
        return tool
    changes: dict[str, Json] = {
        "description": _passed_on(tool.description, limit),
        "title": None if tool.title is None else _passed_on(tool.title, limit),
        "parameters": _shown_texts(tool.parameters, limit, _DEPTH),
        "annotations": _shown_texts(tool.annotations, limit, _DEPTH),
    }
    if raw is None and all(value == getattr(tool, name) for name, value in changes.items()):
        return tool
    return replace(tool, **changes, raw=raw, size=0 if raw is None else len(compact(raw)))


def marks(tool: Tool) -> tuple[str, ...]:
    """Return what a person should look at twice in a tool's texts, as clauses.

    They point something out; an honest tool may have some, a hostile one none.
    """
    found: dict[str, None] = {}
    for text in _texts(tool):
        found.update(dict.fromkeys(_marks(text[:_SCANNED])))
    return tuple(found)


def _marks(text: str) -> Iterator[str]:
    if not _PLAIN.match(text):
        yield from _invisible_marks(text)
    if _GAP.search(text):
        yield "leaves a long gap, with text after it"
    for pattern, meaning in _ORDERS:
        match = pattern.search(text)
        if match:
            yield f"{meaning}: {shown(match[0], 80)!r}"


def _invisible_marks(text: str) -> Iterator[str]:
    for tags in _TAGS.findall(text)[:3]:
        spelt = "".join(chr(ord(c) - 0xE0000) for c in tags)
        yield f"spells {cut(spelt, 80)!r} in invisible tag letters"
    if _BIDI.search(text):
        yield "changes the direction of writing"
    if _ESCAPE.search(text):
        yield "holds escapes that a terminal obeys"
    hidden = [run for run, is_hidden in runs(text) if is_hidden]
    if hidden:
        count = sum(map(len, hidden))
        kinds = sorted({_code(c) for run in hidden for c in run})
        some = ", ".join(kinds[:4]) + (", …" if len(kinds) > 4 else "")
        yield f"holds {count} invisible character{'s' if count > 1 else ''} ({some})"


def _texts(tool: Tool) -> Iterator[str]:
    yield tool.name
    yield tool.title or ""
    yield tool.description
    yield from _strings(tool.parameters, _DEPTH)
    yield from _strings(tool.annotations, _DEPTH)
    yield from _strings((tool.raw or {}).get("outputSchema"), _DEPTH)


def _strings(value: Json, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_mapping(value) and depth:
        for key, inner in value.items():
            yield key
            yield from _strings(inner, depth - 1)
    elif is_array(value) and depth:
        for inner in value:
            yield from _strings(inner, depth - 1)


def shown_texts(value: Json, limit: int) -> Json:
    """Return a JSON value with what is written for reading shown, at every depth."""
    return _shown_texts(value, limit, _DEPTH)


def _shown_texts(value: Json, limit: int, depth: int) -> Json:
    """Return a JSON value with what is written for reading shown; itself where it all is."""
    if not depth:
        return value
    if is_array(value):
        items = [_shown_texts(inner, limit, depth - 1) for inner in value]
        return value if all(map(is_, items, value)) else items
    if not is_mapping(value):
        return value
    fields = {
        key: _passed_on(inner, limit)
        if key in _READ and isinstance(inner, str)
        else _shown_texts(inner, limit, depth - 1)
        for key, inner in value.items()
    }
    return value if all(map(is_, fields.values(), value.values())) else fields


def _passed_on(text: str, limit: int) -> str:
    """Return a text for reading that hides nothing and, where it is cut, not that either."""
    if len(text) <= limit and len(whole := shown(text)) <= limit:
        return whole
    note = prompts.text_cut(len(text))
    room = limit - len(note) - 1
    return f"{shown(text, room)} {note}" if room >= len(note) else shown(text, limit)


def _written_out(text: str) -> Iterator[str]:
    for run, is_hidden in runs(text):
        if not is_hidden:
            yield run
        elif len(run) <= _RUN:
            yield from (f"[{_code(c)}]" for c in run)
        else:
            yield f"[{len(run)} invisible characters: {_code(run[0])} … {_code(run[-1])}]"


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"
