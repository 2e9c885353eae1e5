"""Tool calls that arrive as plain text.

Small models, and servers that do not know a model's template, put the call into the
answer. The shapes are those of the field: JSON of several kinds, and the tags of Hermes,
Qwen, Llama, Mistral, DeepSeek and others with JSON, XML or Python behind them.

A text may also quote a call, of a page that wants it run or as an example, so caution comes
first: rather lose a call than run a quoted one. Without a tag, the calls must be the whole
message, each a name with an object of arguments. Tagged calls must end the message, and not
stand in thinking, quotation marks, a block quote, code, the middle of a sentence, or behind
words that announce an example. Only names that exist are taken, and all calls of a message
or none. A message is read once, from left to right, and reading never raises.

What is not taken may still have been meant: `attempted_call` finds a call that is broken,
whose name there is not, or that stands as bare JSON in prose, so that its writer can be told.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from toolfold.runtime._loose import json_text
from toolfold.runtime._shapes import (
    CALLS_AT_MOST,
    Unreadable,
    Written,
    calls_behind_tag,
    calls_of_all,
    untagged_calls,
)
from toolfold.runtime.messages import Call
from toolfold.tool import Json

__all__ = ["THOUGHTS", "Attempt", "after_thoughts", "attempted_call", "recovered_calls"]

_TEXT_LIMIT = 1_000_000
"""Longer texts are not read: no call is that long."""

THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<scratch_pad>": "</scratch_pad>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel|>analysis<|message|>": "<|end|>",
}
"""What opens and closes thinking."""

_STOPS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "</s>", "<end_of_turn>")

_SPACE = re.compile(r"\s*+")
_EVENT = re.compile(
    rf"""
    (?P<thought>{"|".join(map(re.escape, THOUGHTS))})
    | (?P<thought_end></think>|\[/THINK\])
    | (?P<tag>
        <(?:tool_?calls?|TOOLCALL|function_?calls?|tool_code)>
        | <tools?>(?=\s*+[\[{{])
        | <(?=(?:function|invoke)(?:=|\s++name=))
        | (?<!`)```(?:tool_calls?|tool_code|function_call)\b
      )
    | (?P<mark>
        \[TOOL_(?:CALLS|REQUEST)\]
        | (?:<\|tool_calls_section_begin\|>\s*+)?+<\|tool_call_begin\|>
        | <\|(?:tool_calls?|tool_call_start|python_tag|START_ACTION)\|>
        | (?:<[|｜]tool▁calls▁begin[|｜]>\s*+)?+<[|｜]tool▁call▁begin[|｜]>
        | ^functools(?=\s*+\[)
        | (?:<\|start\|>assistant)?+<\|channel\|>[a-z]*+\ to=(?=functions\.)
      )
    """,
    re.VERBOSE | re.MULTILINE,
)
"""What matters in a text with tags: where calls may begin, and thinking."""

_CLOSING = re.compile(
    rf"""
    (?: [\s;,}}\]]++
      | </(?:tool_?calls?|TOOLCALL|function_?calls?|tool_code|tools?|function|invoke)>
      | \[/TOOL_CALLS\] | \[END_TOOL_REQUEST\]
      | <\|(?:tool_call_end|tool_calls_end|tool_calls_section_end|/tool_calls?|END_ACTION)\|>
      | <[|｜]tool▁calls?▁end[|｜]>
      | {"|".join(map(re.escape, _STOPS))}
    )*+
    """,
    re.VERBOSE,
)
"""All that may follow a call that ends a message."""

_BARE_CALL = re.compile(
    r"""[\[{]\s*+(?:\{\s*+)?+["'](?:name|tool|tool_name|function|function_name|tool_calls|action
    |type|id|arguments|parameters)["']\s*+:""",
    re.VERBOSE,
)
"""Where JSON begins that may be a call."""
_JSON_FENCE = re.compile(r"(?:^|\n)```(?:json)?+[ \t]*+\n\s*+\Z")
"""A fence right before such JSON."""

_TAG_ENDS = ("</tool", "</TOOL", "</function", "</invoke")


def recovered_calls(text: str, known: Callable[[str], bool]) -> tuple[Call, ...]:
    """Return the calls that a message is, or holds in tags; none where it is just text.

    Args:
        text: What the model wrote.
        known: Tells whether a tool of this name exists for the caller.
    """
    try:
        written = _read(text)
    except Unreadable:
        return ()
    calls: list[Call] = []
    for one in written[:CALLS_AT_MOST]:
        name = _known_name(one.name, known)
        arguments = json_text(one.arguments)
        if name is None or arguments is None:
            return ()
        calls.append(Call(name, arguments, recovered=True))
    return tuple(calls)


class Attempt(NamedTuple):
    """A call that was meant and is none that can be run."""

    name: str
    """Its name; empty where it has none."""

    arguments: Json = None
    """What it was given, where that can be read."""

    in_prose: bool = False
    """Whether it is a whole call that only stands among words."""


def attempted_call(text: str, known: Callable[[str], bool] | None = None) -> Attempt | None:
    """Return what in a message was meant as a call; None where the message is just text.

    To be asked where `recovered_calls` found nothing: the call is then unreadable, a name in
    it is unknown, or it is bare JSON with words before or behind it.

    Args:
        text: What the model wrote.
        known: Tells which names exist, so that the one that does not is returned.
    """
    try:
        written = _read(text)
    except Unreadable as attempt:
        return Attempt(attempt.name)
    sure = [one for one in written if one.sure]
    unknown = [one for one in sure if known is None or _known_name(one.name, known) is None]
    if sure:
        tried = (unknown or sure)[0]
        return Attempt(tried.name, tried.arguments)
    return None if written else _attempt_in_prose(text)


def _known_name(name: str, known: Callable[[str], bool]) -> str | None:
    forms = (name, name.removeprefix("functions."), name.removesuffix(".call"))
    return next((form for form in forms if form and known(form)), None)


def _read(text: str) -> list[Written]:
    """Return the calls of a message.

    Raises:
        Unreadable: One was begun and cannot be read.
    """
    if len(text) > _TEXT_LIMIT:
        return []
    said = _without_stops(text[after_thoughts(text) :])
    return calls_of_all(said) or _tagged(said)


def _attempt_in_prose(text: str) -> Attempt | None:
    """Return the call that stands as bare JSON in prose, unless the words say that it is shown."""
    if len(text) > _TEXT_LIMIT:
        return None
    said = _without_stops(text[after_thoughts(text) :])
    if _EVENT.search(said):
        return None  # what tags hold has been judged
    prose = _Prose(said)
    at = 0
    for _ in range(CALLS_AT_MOST):
        begun = _BARE_CALL.search(said, at)
        if begun is None:
            return None
        start = begun.start()
        try:
            step = untagged_calls(said, start)
        except Unreadable as attempt:
            return None if prose.is_shown(start, len(said)) else Attempt(attempt.name)
        at = step.end if step else begun.end()
        if step is None or not step.calls[0].sure or prose.is_shown(start, at):
            prose.skip(start, at)
            continue
        return Attempt(step.calls[0].name, step.calls[0].arguments, in_prose=True)
    return None


def after_thoughts(text: str) -> int:
    """Return where a message goes on after the thinking that it begins with."""
    at = _after_space(text, 0)
    if text[at : at + 1] not in ("{", "[", "<", "`"):
        # Templates that open the block themselves leave only its end in the answer.
        end = text.find("</think>", at)
        if end >= 0 and text.find("<think>", at, end) < 0 and not _Prose(text).is_cited(end):
            at = _after_space(text, end + len("</think>"))
    while opening := next((tag for tag in THOUGHTS if text.startswith(tag, at)), None):
        end = text.find(THOUGHTS[opening], at)
        if end < 0:
            return len(text)
        at = _after_space(text, end + len(THOUGHTS[opening]))
    return at


def _after_space(text: str, at: int) -> int:
    return _end_of(_SPACE, text, at)


def _without_stops(text: str) -> str:
    for _ in range(4):
        text = text.rstrip()
        text = next((text.removesuffix(stop) for stop in _STOPS if text.endswith(stop)), text)
    return text


def _tagged(text: str) -> list[Written]:
    """Return the calls that stand in tags at the end of a text."""
    prose = _Prose(text)
    last_end = max(text.rfind(end) for end in _TAG_ENDS)
    calls: list[Written] = []
    scattered = False
    at = start = 0
    end = quoted = -1
    while event := _EVENT.search(text, at):
        at = event.end()
        if event.lastgroup == "thought":
            at = _after(text, at, THOUGHTS[event[0]])
            prose.skip(event.start(), at)
        elif event.lastgroup == "thought_end":
            calls.clear()
        elif event.start() == quoted or (event.start() != end and prose.is_quoted(event.start())):
            # What is wrapped in a quoted tag is quoted with it.
            quoted = _after_space(text, at)
        else:
            step = calls_behind_tag(text, event.start() if event[0] == "<" else at)
            # A tag that only stands in prose has no end, or another tag behind it.
            begun = event.lastgroup == "mark" or at <= last_end
            if not step.calls and begun and not _EVENT.match(text, step.end):
                raise Unreadable
            if event.start() != end:
                scattered = bool(calls)
                start = event.start()
            calls += step.calls
            at = max(at, step.end)
            if step.calls:
                at = _after_closing(text, start, at)
                prose.skip(event.start(), at)
            end = at
    if not calls or end < len(text):
        return []
    if scattered:
        # To run only the last would be to run it before those that it was meant to follow.
        raise Unreadable(calls[-1].name)
    return calls


def _after_closing(text: str, start: int, at: int) -> int:
    """Return the place after all that closes the calls from `start` to `at`."""
    end = _end_of(_CLOSING, text, at)
    if text.startswith("```", end) and text.find("```", start, at) >= 0:
        end = _end_of(_CLOSING, text, end + 3)
    return end


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _after(text: str, at: int, closing: str) -> int:
    """Return the place after the next `closing`; the end where there is none."""
    end = text.find(closing, at)
    return len(text) if end < 0 else end + len(closing)


# ---- what is quoted

_QUOTES = {
    '"': '"', "'": "'", "“": "”", "„": "“”", "‘": "’", "‚": "‘’", "«": "»", "»": "«",
    "‹": "›", "›": "‹", "「": "」", "『": "』",
}  # fmt: skip
_MARK = re.compile(
    r"""
    (?P<blank>^[ \t]*+\n)
    | (?P<line>^(?P<lead>[ \t]*+(?:(?:>|(?:[-*+•]|\d{1,9}+[.)])(?=[ \t]))[ \t]*+)*+)
        (?P<fence>`{3,}+(?![^\n]*`)|~{3,}+)?+)
    | (?P<ticks>`++)
    | (?P<html></?(?:pre|code|samp|kbd|xmp|blockquote|q|quote|example)\b[^<>\n]{0,200}>)
    | (?P<quote>["'“”„‘’‚«»‹›「」『』])
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_TAG_NAME = re.compile(r"\w+")
_BLANK_LINE_REST = re.compile(r"[ \t]*+$", re.MULTILINE)
_CODE_INDENT = 4
_WINDOW = 300
"""How much of the words before a tag is looked at."""

_SENTENCE_ENDS = (".", "!", "?", "…", ":", "。", "！", "？", "：", "|>", "｜>")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n|[。！？]")
_ANNOUNCES = re.compile(
    r"""
    \b(?:examples?(?!\.\w)|e\.g\b|for\ instance|beispiel|exemple|ejemplo|esempio|exemplo)
    | 例 | пример
    | \b(?:never|not|don['’]t)\s+(?:ever\s+)?
        (?:write|use|call|run|send|output|print|follow|execute|trust|make|type)\b
    | \b(?:says?|said|reads|contain\w*|shows|wrote|writes|written|returned|like\s+this|looks\s+like
        |as\s+follows|follows|inject\w*|instructions?|syntax|quot\w+)\b [^.!?\n]* [:：]$
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Words that say: what follows is shown, not done."""


class _Prose:
    """Reads the words of a text, from left to right, for what they quote.

    Marks that were opened count until they are closed, or to the end of their paragraph;
    fences and HTML until they are closed.
    """

    __slots__ = ("_at", "_block", "_fence", "_floor", "_html", "_lead", "_line", "_mark", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._floor = self._line = 0
        self._fence = self._html = self._mark = self._lead = ""
        self._block = False

    def is_quoted(self, at: int) -> bool:
        """Whether the tag at a place is shown instead of meant; its paragraph is so with it."""
        quoted = self.is_cited(at) or bool(self._fence) or self._is_inside(at)
        self._block = self._block or quoted
        return quoted

    def is_cited(self, at: int) -> bool:
        """Whether a place stands in marks, a block quote, or indented code."""
        self._read(at)
        if self._mark or self._html or self._block:
            return True
        indent = self._text[max(self._line, at - _WINDOW) : at]
        return indent.isspace() and len(indent.expandtabs(_CODE_INDENT)) >= _CODE_INDENT

    def is_shown(self, start: int, end: int) -> bool:
        """Whether the words around bare JSON say that it is an example, or another's."""
        before = self._text[max(self._floor, start - _WINDOW) : start]
        fence = _JSON_FENCE.search(before)
        behind = self._text[end : end + _WINDOW].lstrip("` \t\n")
        if _ANNOUNCES.search(_SENTENCE.split(behind, maxsplit=1)[0]):
            return True
        if fence is None:
            return self.is_quoted(start)
        said = _SENTENCE.split(before[: fence.start()].rstrip())[-1]
        return self.is_cited(start) or _ANNOUNCES.search(said) is not None

    def skip(self, start: int, end: int) -> None:
        """Leave out what is no prose."""
        self._read(start)
        self._at = self._floor = self._line = end
        self._lead = ""

    def _is_inside(self, at: int) -> bool:
        """Whether a place is in the middle of a sentence, or an example is announced before it."""
        before = self._text[max(self._floor, at - _WINDOW) : at]
        here = self._text[max(self._line + len(self._lead), at - _WINDOW) : at].strip()
        # A mark that closes something says nothing about the sentence.
        here = here.rstrip("\"'”’»*_) ") or here
        if here and not here.endswith(_SENTENCE_ENDS) and unicodedata.category(here[-1]) != "So":
            return True
        return _ANNOUNCES.search(_SENTENCE.split(before.rstrip())[-1]) is not None

    def _read(self, to: int) -> None:
        for match in _MARK.finditer(self._text, self._at, max(to, self._at)):
            self._see(match)
        self._at = max(to, self._at)

    def _see(self, match: re.Match[str]) -> None:
        kind = match.lastgroup
        if self._fence:
            if kind == "line":
                self._see_line(match)
        elif kind == "blank":
            self._block = False
            # A mark that ends its paragraph opens the next one.
            if not self._mark or not self._text.endswith(self._mark, 0, match.start() - 1):
                self._mark = ""
        elif kind == "line":
            self._see_line(match)
        elif kind == "html" and not self._mark:
            self._see_html(match[0])
        elif self._html:
            return
        elif kind == "ticks" and (not self._mark or self._mark[0] == "`"):
            self._mark = "" if match[0] == self._mark else self._mark or match[0]
        elif kind == "quote":
            self._see_quote(match[0], match.start())

    def _see_html(self, tag: str) -> None:
        if not self._html and not tag.startswith("</"):
            self._html = _name(tag)
        elif tag.startswith("</") and _name(tag) == self._html:
            self._html = ""

    def _see_line(self, match: re.Match[str]) -> None:
        run = match["fence"] or ""
        if self._fence:
            alone = _BLANK_LINE_REST.match(self._text, match.end())
            if run.startswith(self._fence) and alone and not match["lead"].strip():
                self._fence = ""
            return
        self._line, self._lead = match.start(), match["lead"]
        self._block = self._block or ">" in match["lead"]
        self._fence = run if not self._html else ""

    def _see_quote(self, mark: str, at: int) -> None:
        before, after = self._text[max(at - 1, 0) : at], self._text[at + 1 : at + 2]
        if self._mark:
            # Between letters it is an apostrophe.
            if mark in _QUOTES.get(self._mark, "") and not (mark in "'’" and after.isalnum()):
                self._mark = ""
        elif mark in _QUOTES and (mark != "'" or not before.isalnum()):
            self._mark = mark


def _name(tag: str) -> str:
    match = _TAG_NAME.search(tag)
    return match[0].lower() if match else ""
