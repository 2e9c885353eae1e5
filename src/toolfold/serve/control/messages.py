"""What is said on the control socket: one JSON object a line, asked and answered in turn.

A request is `{"toolfold": 1, "verb": "status", "arguments": {}}`. Its answer is
`{"toolfold": 1, "ok": true, "result": {…}}`, or `{"toolfold": 1, "ok": false, "error":
{"code": "…", "message": "…"}}`. The number is the version of this form. Keys that are not
known are passed over, so that a later one can say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from toolfold._json_values import compact_bytes, parse
from toolfold.errors import ToolfoldError
from toolfold.tool import Json, is_object

__all__ = ["VERSION", "ControlError", "Question", "read_answer", "read_question"]

VERSION = 1
"""The version of the form in which is asked and answered."""

KEY = "toolfold"


class ControlError(ToolfoldError):
    """A request on the control socket was refused.

    Args:
        code: Which kind: `bad_request`, `version`, `unknown_verb` or `failed`.
        message: What is wrong, for a person.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Question(NamedTuple):
    """A request."""

    verb: str
    arguments: Mapping[str, Json] = {}

    def line(self) -> bytes:
        """Return it as it is sent."""
        return _line({"verb": self.verb, "arguments": dict(self.arguments)})


def read_question(line: bytes) -> Question:
    """Return the request that a line is.

    Raises:
        ControlError: It is none, or of another version.
    """
    asked = _object(line)
    if asked.get(KEY) != VERSION:
        raise ControlError("version", f"this gateway speaks version {VERSION}")
    verb, arguments = asked.get("verb"), asked.get("arguments", {})
    if not isinstance(verb, str) or not is_object(arguments):
        raise ControlError("bad_request", "a request has a `verb`, and `arguments` in an object")
    return Question(verb, arguments)


def read_arguments(body: bytes) -> Mapping[str, Json]:
    """Return the arguments that a body holds; none where it is empty.

    Raises:
        ControlError: It is no JSON object.
    """
    return _object(body) if body.strip() else {}


def answer_line(result: Json) -> bytes:
    """Return what a verb came to, as it is sent."""
    return _line({"ok": True, "result": result})


def refusal_line(error: ControlError) -> bytes:
    """Return why a request was refused, as it is sent."""
    return _line({"ok": False, "error": {"code": error.code, "message": error.message}})


def read_answer(line: bytes) -> Json:
    """Return the result that an answer holds.

    Raises:
        ControlError: The request was refused, or the line is no answer.
    """
    answer = _object(line)
    if answer.get("ok") is True:
        return answer.get("result")
    error = answer.get("error")
    if not is_object(error):
        raise ControlError("bad_answer", "its answer cannot be read")
    raise ControlError(str(error.get("code")), str(error.get("message")))


def _line(value: Mapping[str, Json]) -> bytes:
    return compact_bytes({KEY: VERSION, **value}) + b"\n"


def _object(line: bytes) -> dict[str, Json]:
    try:
        value = parse(line)
    except (ValueError, RecursionError):
        value = None
    if not is_object(value):
        raise ControlError("bad_request", "a request is one JSON object on a line")
    return value
