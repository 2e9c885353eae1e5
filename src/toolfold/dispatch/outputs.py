"""What a tool returns or raises, as what a model reads."""

from __future__ import annotations

from typing import Any

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold._json_values import fast_bytes, text_of_any
from toolfold.redact import redact
from toolfold.sources.calls import Output, PendingCall
from toolfold.tool import Json

__all__ = ["bounded", "failure", "json_size", "output_of", "words_of"]

_REASON_LIMIT = 400


def output_of(value: Any) -> Output:
    """Return a tool's value as what the model reads."""
    if isinstance(value, Output):
        return value
    if value is None:
        return Output(prompts.NO_OUTPUT)
    if isinstance(value, str):
        # A member of an enumeration may be a text, too, and would show its own name.
        text = str.__str__(value)
        return Output(text or prompts.NO_OUTPUT, value=text)
    return Output(text_of_any(value), value=value)


def failure(call: PendingCall, error: BaseException) -> str:
    """Return what the model reads where a tool raised."""
    return prompts.failed(
        call.tool.shown_name,
        type(error).__name__,
        one_line(redact(words_of(error)), _REASON_LIMIT),
    )


def words_of(error: BaseException) -> str:
    """Return what an exception says; nothing where it raises over that, too."""
    try:
        return str(error)
    except Exception:
        return ""


def bounded(text: str, limit: int) -> str:
    """Return a result, or its first part with a note of how much was cut."""
    # Half a character cannot be sent.
    text = text if text.isascii() else text.encode("utf-8", "replace").decode()
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n{prompts.result_cut(limit, len(text))}"


def json_size(value: Json) -> int:
    """Return the length of a value in JSON; 0 where its numbers are too large to be written."""
    return len(fast_bytes(value) or b"")
