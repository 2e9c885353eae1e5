"""The shapes in which models write a tool call as text.

Each reader takes the text and a place in it, and returns the calls there with the place
where they end, or None where its shape does not begin there. A call that was begun and
cannot be read raises `Unreadable`. Nothing is evaluated; every reader moves forward only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from toolfold.runtime._loose import Loose, arguments_text, loose_json
from toolfold.tool import Json, is_array, is_object

__all__ = [
    "CALLS_AT_MOST",
    "CallSpan",
    "Unreadable",
    "Written",
    "calls_behind_tag",
    "calls_of_all",
    "untagged_calls",
]

CALLS_AT_MOST = 16
"""How many calls of one message are read."""

_NAME_LIMIT = 128
_HINT_WINDOW = 2_000

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "input", "params", "tool_input", "action_input"
)  # fmt: skip
_SURE_KEYS = frozenset({"arguments", "parameters", "args", "tool_input", "action_input"})
_WRAPPERS = ("function", "function_call", "tool_call")
_IDS = frozenset({"id", "call_id", "tool_call_id", "type"})

_NAME = r"\w[\w./-]{0,127}+"
_SEPARATOR = r"<[|｜]tool▁sep[|｜]>"
_GLUE = re.compile(r"(?:[\s;,}\]]++|```(?:json|tool_calls?|tool_code|function_call)?+(?![\w`]))*+")
"""What may stand between calls: separators, fences, a bracket too many."""

_NAMED = re.compile(
    rf"""
    (?P<sure>>>>|functions\.|function{_SEPARATOR})?
    (?P<name>{_NAME})
    (?::\d{{1,4}}+)?
    (?:\[CALL_ID\][\w-]{{0,64}}+)?
    (?:\[ARGS\] | {_SEPARATOR} | <\|tool_call_argument_begin\|>
       | (?:\s?(?:<\|constrain\|>)?json)?<\|message\|>)?
    :?+\s*+ (?:```(?:json)?\s*+)?
    (?={{)
    """,
    re.VERBOSE,
)
_PYTHON_CALL = re.compile(rf"\s*+({_NAME})\(")
_KEYWORD = re.compile(r"\s*+([^\W\d]\w{0,127}+)\s*+=(?!=)")
_COMMA = re.compile(r"\s*+,?+")
_CLOSING = re.compile(r"\s*+\)")
_XML_CALL = re.compile(
    r"<(?:function|invoke)(?:=|\s++name=)[\"']?([^\"'<>\s]{1,128}+)[\"']?\s*+>", re.IGNORECASE
)
_XML_KEY = re.compile(r"\s*+<parameter(?:=|\s++name=)[\"']?([^\"'<>\n]{1,128}+)[\"']?[^>\n]{0,64}>")
_XML_VALUE_END = re.compile(r"</parameter>|\n(?=<parameter[= ])|\n?(?=</(?:function|invoke)>)")
_XML_END = re.compile(r"\s*+</(?:function|invoke|tool_call)>")
_ARG_CALL = re.compile(rf"({_NAME})\s*+(?=<arg_key>|</tool_call>)")
_ARG_KEY = re.compile(r"\s*+<arg_key>([^<]{1,128}+)</arg_key>\s*+<arg_value>")

_BEGINNING = re.compile(r"[\[{]\s*+[\"'{]")
_NAME_HINT = re.compile(
    r"[\"'](?:name|tool|tool_name|function)[\"']\s{0,9}:\s{0,9}[\"']([^\"'\n]{1,128})[\"']"
)
_ARGUMENTS_HINT = re.compile(r"[\"'](?:arguments|parameters|args)[\"']\s{0,9}:")


class Written(NamedTuple):
    """One call, as it was written."""

    name: str
    arguments: Json
    sure: bool = True
    """Whether it can be nothing but a call, even where its name is unknown."""


class CallSpan(NamedTuple):
    """Calls that were read, and where they end in the text."""

    calls: list[Written]
    end: int


class Unreadable(Exception):
    """A call was begun and cannot be read.

    Args:
        name: Its name, where that can be told.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.name = name


def calls_of_all(text: str) -> list[Written]:
    """Return the calls of a text that is nothing else: names, each with its object of arguments.

    Python's `[name(key=value)]` is noticed and not taken: with no tag it may be plain code.

    Raises:
        Unreadable: The text was meant as a call and is none that is taken.
    """
    calls: list[Written] = []
    at = _after_glue(text, 0) if text.startswith("```") else 0
    while at < len(text):
        step = _json_calls(text, at, tagged=False) or _named_call(text, at, tagged=False)
        if step is None:
            begun = calls or _listed_calls(text)
            # A message that begins with a bare call was meant as one, whatever follows.
            if begun and begun[0].sure and text[0] in "{[":
                raise Unreadable(begun[0].name)
            return []
        calls += step.calls
        at = _after_glue(text, step.end)
    return calls


def calls_behind_tag(text: str, at: int) -> CallSpan:
    """Return the calls that follow a tag which says that calls follow."""
    calls: list[Written] = []
    end = at
    while True:
        at = _after_glue(text, end)
        step = _xml_call(text, at) or _arg_call(text, at)
        if not calls:
            step = step or _named_call(text, at, tagged=True)
        step = step or _python_calls(text, at) or _json_calls(text, at, tagged=not calls)
        if step is None:
            return CallSpan(calls, end if calls else at)
        calls += step.calls
        end = step.end


def untagged_calls(text: str, at: int) -> CallSpan | None:
    """Return the calls of the JSON that begins at a place, if it is made of calls.

    Raises:
        Unreadable: It was meant as one and cannot be read.
    """
    return _json_calls(text, at, tagged=False)


def _listed_calls(text: str) -> list[Written]:
    """Return the calls of a text that is a list of Python calls, each with arguments."""
    step = _python_calls(text, 0) if text.startswith("[") else None
    whole = step is not None and not text[step.end :].strip()
    return step.calls if step and whole and all(call.arguments for call in step.calls) else []


def _after_glue(text: str, at: int) -> int:
    return _end(_GLUE, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


# ---- JSON


def _json_calls(text: str, at: int, *, tagged: bool) -> CallSpan | None:
    if text[at : at + 1] not in ("{", "["):
        return None
    read = loose_json(text, at)
    if read is not None and read.missing > 1:
        read = None
    # With a bracket missing the arguments must be closed, and so stand under a key of their own.
    calls = _calls_in(read.value, tagged=tagged and not read.missing) if read else None
    if read is not None and calls:
        return CallSpan(calls, read.end)
    window = at + _HINT_WINDOW
    name = _NAME_HINT.search(text, at, window)
    begun = read is None and name and _BEGINNING.match(text, at)
    begun = begun and _ARGUMENTS_HINT.search(text, at, window)
    if not tagged and not begun:
        return None
    raise Unreadable(name[1] if name else "")


def _calls_in(value: Json, *, tagged: bool, depth: int = 2) -> list[Written] | None:
    """Return the calls that a JSON value is, or None."""
    if is_array(value):
        found = [_calls_in(v, tagged=tagged, depth=0) for v in value[:CALLS_AT_MOST]]
        parts = [calls for calls in found if calls]
        return [call for calls in parts for call in calls] if len(parts) == len(found) else None
    if not is_object(value):
        return None
    if depth and is_array(value.get("tool_calls")):
        return _calls_in(value["tool_calls"], tagged=tagged, depth=0)
    wrapper = next((key for key in _WRAPPERS if is_object(value.get(key))), None)
    inner = _call_in(value if wrapper is None else value[wrapper], tagged=tagged)
    return None if inner is None else [inner]


def _call_in(value: Mapping[str, Json], *, tagged: bool) -> Written | None:
    """Return the call that an object is, or None."""
    key = next((k for k in _NAME_KEYS if isinstance(value.get(k), str)), None)
    name: str = value[key].strip() if key else ""
    if not name or len(name) > _NAME_LIMIT or _is_definition(value):
        return None
    given = next((k for k in _ARGUMENT_KEYS if k in value and k != key), None)
    if given is None:
        beside = {k: v for k, v in value.items() if k != key and k not in _IDS}
        return Written(name, beside) if tagged else None
    arguments = _arguments(value[given])
    sure = tagged or given in _SURE_KEYS or key not in ("name", "action")
    if tagged or is_object(arguments):
        return Written(name, {} if arguments is None else arguments, sure)
    if sure:
        raise Unreadable(name)
    return None


def _is_definition(value: Mapping[str, Json]) -> bool:
    """Whether an object tells of a tool instead of calling it."""
    if "arguments" in value or "args" in value:
        return False
    keys = ("parameters", "input_schema", "inputSchema")
    schema = next((value[key] for key in keys if key in value), None)
    shaped = is_object(schema) and schema.get("type") == "object" and "properties" in schema
    return shaped or (schema is not None and "description" in value)


def _arguments(value: Json) -> Json:
    """Return arguments as they are, read where they are JSON text themselves."""
    written = arguments_text(value) if isinstance(value, str) else None
    read = loose_json(written) if written is not None else None
    return value if read is None else read.value


def _whole(text: str, at: int) -> Loose | None:
    """Read arguments of which nothing can have been cut off."""
    read = loose_json(text, at)
    return read if read is not None and not read.missing else None


# ---- names before arguments


def _named_call(text: str, at: int, *, tagged: bool) -> CallSpan | None:
    """Read `name{…}`, with the marks that models put between the two."""
    match = _NAMED.match(text, at)
    if match is None:
        return None
    sure = tagged or match["sure"] is not None
    if not sure and not text.startswith(("{", "[ARGS]"), match.end("name")):
        return None
    read = _whole(text, match.end())
    if read is not None and is_object(read.value) and (sure or read.value):
        return CallSpan([Written(match["name"], read.value, sure)], read.end)
    if sure:
        raise Unreadable(match["name"])
    return None


def _python_calls(text: str, at: int) -> CallSpan | None:
    """Read `name(key=value)`, or a list of such."""
    if not text.startswith("[", at):
        return _python_call(text, at)
    calls: list[Written] = []
    at += 1
    while step := _python_call(text, at):
        calls += step.calls
        at = _after_glue(text, step.end)
        if at >= len(text) or "]" in text[step.end : at]:
            return CallSpan(calls, at)
    return None


def _python_call(text: str, at: int) -> CallSpan | None:
    match = _PYTHON_CALL.match(text, at)
    if match is None:
        return None
    name, at = match[1], match.end()
    arguments: dict[str, Json] = {}
    while key := _KEYWORD.match(text, at):
        read = _whole(text, key.end())
        if read is None:
            return None
        arguments[key[1]] = read.value
        at = _end(_COMMA, text, read.end)
    alone = _whole(text, at) if not arguments and text.startswith("{", at) else None
    if alone is not None and is_object(alone.value):
        arguments, at = dict(alone.value), alone.end
    closing = _CLOSING.match(text, at)
    if closing is None:
        return None
    return CallSpan([Written(name, arguments)], closing.end())


# ---- names and values in tags of their own


def _xml_call(text: str, at: int) -> CallSpan | None:
    """Read `<function=name>`, with JSON or with one tag for each argument behind it."""
    match = _XML_CALL.match(text, at)
    if match is None:
        return None
    name, at = match[1], _after_glue(text, match.end())
    arguments: Json = {}
    is_json = text.startswith("{", at)
    if is_json:
        read = _whole(text, at)
        if read is None:
            raise Unreadable(name)
        arguments, at = read.value, _after_glue(text, read.end)
    while not is_json and (key := _XML_KEY.match(text, at)):
        end = _XML_VALUE_END.search(text, key.end())
        if end is None:
            raise Unreadable(name)
        arguments[key[1].strip()] = _inner(text[key.end() : end.start()])
        at = end.end()
    end = _XML_END.match(text, at)
    if end is None and not is_json:
        raise Unreadable(name)
    return CallSpan([Written(name, arguments)], end.end() if end else at)


def _arg_call(text: str, at: int) -> CallSpan | None:
    """Read `name` with pairs of `<arg_key>` and `<arg_value>` behind it."""
    match = _ARG_CALL.match(text, at)
    if match is None:
        return None
    name, at = match[1], match.end()
    arguments: dict[str, Json] = {}
    while key := _ARG_KEY.match(text, at):
        end = text.find("</arg_value>", key.end())
        if end < 0:
            raise Unreadable(name)
        arguments[key[1].strip()] = _inner(text[key.end() : end])
        at = end + len("</arg_value>")
    at = _after_glue(text, at)
    if not text.startswith("</tool_call>", at):
        raise Unreadable(name)
    return CallSpan([Written(name, arguments)], at)


def _inner(value: str) -> str:
    """Return a value without the line breaks that belong to its tags."""
    return value.removeprefix("\n").removesuffix("\n")
