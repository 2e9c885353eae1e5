"""What goes wrong between a client and its server, in words for a person.

A `Failure` is one attempt that came to nothing: what to say about it, and whether another
attempt may help. What servers say about errors is theirs to choose, so it is looked for
in several places, cut, and cleared of secrets before it is shown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite

from toolfold._bounds import one_line
from toolfold.tool import Json, is_array, is_object

__all__ = ["Failure", "answered", "reported", "retry_after", "said"]

_TEXT_LIMIT = 300
_AGAIN = frozenset({408, 409, 425, 429})
_AGAIN_KINDS = frozenset(
    "api_error internal_server_error overloaded overloaded_error rate_limit_error "
    "rate_limit_exceeded server_error timeout timeout_error unavailable".split()
)
_NO_MONEY = frozenset({"billing_error", "insufficient_quota", "billing_not_active"})
_TOO_LONG = ("context length", "context window", "context_length", "too many tokens", "too long")


class Failure(Exception):
    """One attempt that failed.

    Args:
        message: What went wrong.
        hint: What to do about it.
        status: The HTTP status, where there is one.
        again: Whether another attempt may help.
        wait: How many seconds the server asks to wait before it.
        body: All that the server said.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        again: bool = False,
        wait: float | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
        self.again = again
        self.wait = wait
        self.body = body


def answered(status: int, headers: Mapping[str, str], body: str, key_hint: str) -> Failure:
    """Return the failure that an HTTP status other than success tells of.

    Args:
        status: The status.
        headers: The headers, with lower-case names.
        body: The beginning of the body.
        key_hint: What to do where the key is missing or wrong.
    """
    kinds = set(_kinds(_json(body)))
    text = said(_json(body)) or one_line(body, _TEXT_LIMIT)
    message = f"the server answered {status}" + (f": {text!r}" if text else "")
    request = headers.get("request-id") or headers.get("x-request-id")
    if request:
        message += f", request {one_line(request, 80)!r}"
    again = (status in _AGAIN or status >= 500) and not kinds & _NO_MONEY
    told = headers.get("x-should-retry")
    if told in ("true", "false"):
        again = told == "true"
    hint = _hint(status, text, kinds, key_hint, headers.get("location"))
    wait = retry_after(headers)
    return Failure(message, hint=hint, status=status, again=again, wait=wait, body=body)


def reported(error: Json) -> Failure:
    """Return the failure that an error inside a reply tells of."""
    kinds = set(_kinds(error))
    text = said(error) or "no reason given"
    numbers = [int(kind) for kind in kinds if kind.isdecimal() and len(kind) == 3]
    again = bool(kinds & _AGAIN_KINDS) or any(n in _AGAIN or n >= 500 for n in numbers)
    return Failure(
        f"the server reported an error: {text!r}",
        hint=_hint(numbers[0] if numbers else 0, text, kinds, "check the API key", None),
        status=numbers[0] if numbers else None,
        again=again and not kinds & _NO_MONEY,
        body=json.dumps(error),
    )


def said(error: Json, depth: int = 4) -> str:
    """Return the sentence in a server's error, or nothing."""
    if isinstance(error, str):
        return one_line(error, _TEXT_LIMIT)
    if is_array(error):
        return said(error[0], depth - 1) if error and depth else ""
    if not is_object(error) or not depth:
        return ""
    found = (said(error.get(key), depth - 1) for key in ("error", "message", "detail", "msg"))
    return next((text for text in found if text), "")


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return how many seconds the server asks to wait, or None where it does not say."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if isfinite(seconds):
            return max(seconds, 0.0)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(date.timestamp() - (time.time() if now is None else now), 0.0)


def _json(body: str) -> Json:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _kinds(error: Json, depth: int = 3) -> Iterator[str]:
    """Yield the words by which an error tells its kind."""
    if is_array(error) and error and depth:
        yield from _kinds(error[0], depth - 1)
    if is_object(error) and depth:
        yield from (str(error[k]).lower() for k in ("type", "code", "status") if error.get(k))
        yield from _kinds(error.get("error"), depth - 1)


def _hint(
    status: int, text: str, kinds: set[str], key_hint: str, location: str | None
) -> str | None:
    if status in (401, 403):
        return key_hint
    if kinds & _NO_MONEY:
        return "check the plan and the balance of the account"
    if 300 <= status < 400:
        where = f" to {one_line(location, 200)!r}" if location else ""
        return f"it redirects{where}: use that as the base URL"
    if status == 404:
        return "check the base URL and the model's name"
    if status == 413 or any(words in text.lower() for words in _TOO_LONG):
        return "shorten the conversation, or use a model with a larger context window"
    if status == 429 or "rate_limit_error" in kinds:
        return "wait, ask less often, or raise `retries`"
    if status >= 500 or kinds & _AGAIN_KINDS:
        return "try again later, or raise `retries`"
    return None
