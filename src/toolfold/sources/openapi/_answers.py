"""What an API answers, as what a model reads: JSON as a value, the rest as bounded text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from toolfold._bounds import cut, one_line, visible
from toolfold._json_values import Json, is_mapping, parse_strict
from toolfold.prompts import content_left_out, http_calls
from toolfold.sources.calls import Output
from toolfold.sources.openapi._http_client import HttpAnswer
from toolfold.sources.openapi._request_bodies import is_json
from toolfold.sources.openapi.operation import Operation

__all__ = ["output_of_answer"]

_SAID_LIMIT = 2_000
_CHARSETS = re.compile(r"(?:iso-8859-(?:[1-9]|1[013-6])|windows-125[0-8]|us-ascii|utf-16)\Z")
_TEXTS = ("xml", "javascript", "yaml", "csv", "x-www-form-urlencoded", "graphql", "x-ndjson", "sql")


def output_of_answer(
    answer: HttpAnswer,
    operation: Operation,
    name: str,
    *,
    source: str,
    missing: Sequence[str],
    redact: Callable[[str], str],
    fits: Callable[[Json], bool] | None,
) -> Output:
    """Return what a call comes to.

    Args:
        answer: What the API answered.
        operation: What was called.
        name: The tool's name, as the model knows it.
        source: The source's name.
        missing: The security schemes for which there are no credentials.
        redact: Takes the credentials out of a text.
        fits: Whether a value is what the document promises; None where nobody asks.
    """
    if answer.leads_to is not None and 300 <= answer.status < 400:
        return Output(http_calls.redirected(name, answer.status, answer.leads_to), is_error=True)
    kind = answer.headers.get("content-type", "")
    if not 200 <= answer.status < 300:
        return Output(_failure(answer, kind, name, source, missing, redact), is_error=True)
    if not answer.content:
        return Output(http_calls.done_without_content(answer.status))
    if not _is_text(kind, answer.content):
        size = len(answer.content)
        what = one_line(kind.partition(";")[0], 100) or "bytes"
        return Output(content_left_out(what, "", size))
    text = redact(_decoded(answer.content, kind))
    if answer.is_cut:
        return Output(f"{text}\n{http_calls.api_answer_cut(len(answer.content))}")
    value: Json = None
    if is_json(kind) or (not kind and text[:1] in "{["):
        try:
            value = parse_strict(text)
        except (ValueError, RecursionError):
            value = None
    if fits is not None and not (is_mapping(value) and fits(value)):
        return Output(http_calls.output_does_not_fit(name), is_error=True)
    return Output(text, value=value)


def _failure(
    answer: HttpAnswer,
    kind: str,
    name: str,
    source: str,
    missing: Sequence[str],
    redact: Callable[[str], str],
) -> str:
    said = ""
    if _is_text(kind, answer.content) and "html" not in kind:
        said = cut(visible(redact(_decoded(answer.content, kind))).strip(), _SAID_LIMIT)
    retry = one_line(answer.headers.get("retry-after", ""), 40)
    text = http_calls.api_failed(
        name, answer.status, one_line(answer.reason, 60), said, retry if retry.isdecimal() else ""
    )
    if answer.status in (401, 403):
        foot = http_calls.api_needs_credentials(name, answer.status, missing, source)
        return f"{text}\n{foot}"
    return text


def _is_text(kind: str, content: bytes) -> bool:
    essence = kind.partition(";")[0].strip().lower()
    if not essence:
        return b"\0" not in content[:1024]
    return (
        essence.startswith("text/")
        or is_json(essence)
        or any(essence.endswith(each) for each in _TEXTS)
    )


def _decoded(content: bytes, kind: str) -> str:
    _, _, charset = kind.lower().partition("charset=")
    name = charset.partition(";")[0].strip().strip('"')
    return content.decode(name if _CHARSETS.match(name) else "utf-8", "replace")
