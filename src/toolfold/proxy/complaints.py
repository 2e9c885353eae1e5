"""Errors of the proxy's own, in the dialect of the client that reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from toolfold._bounds import one_line
from toolfold._json_values import compact, parse
from toolfold.proxy.exchange import ProxyDialect
from toolfold.proxy.paths import TITLES
from toolfold.tool import Json, is_object

__all__ = ["error_body", "error_event", "error_kind", "lacks_dialect", "lacks_text", "said_in"]

_KINDS: Mapping[int, str] = MappingProxyType(
    {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        503: "overloaded_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
)
_SAID_AT_MOST = 500
_NO_SUCH_PATH = re.compile(
    r"(?:404[\s:]*)?(?:the requested (?:url|resource) )?(?:(?:page|file|path|route|url|endpoint) )?"
    r"(?:was )?not found\W*\Z"
    r"|method not allowed\W*\Z|invalid url|unknown (?:request )?url|unexpected endpoint|no route"
    r"|unrecognized request url|cannot post ",
    re.IGNORECASE,
)


def error_kind(status: int) -> str:
    """Return what kind of error a status stands for."""
    return _KINDS.get(status, "api_error")


def error_body(dialect: ProxyDialect | None, status: int, message: str) -> bytes:
    """Return the body of an error."""
    kind = error_kind(status)
    if dialect == "anthropic-messages":
        value: Json = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        value = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return compact(value).encode()


def error_event(dialect: ProxyDialect | None, message: str, kind: str = "api_error") -> bytes:
    """Return the event that ends a stream with an error."""
    if dialect == "anthropic-messages":
        value: Json = {"type": "error", "error": {"type": kind, "message": message}}
        return f"event: error\ndata: {compact(value)}\n\n".encode()
    if dialect == "openai-responses":
        value = {"type": "error", "code": kind, "message": message, "param": None}
        return f"event: error\ndata: {compact(value)}\n\n".encode()
    error: Json = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return f"data: {compact(error)}\n\n".encode()


def said_in(body: bytes) -> str:
    """Return what an upstream's error says, in one line; empty where it says nothing."""
    try:
        value = parse(body)
    except (ValueError, RecursionError):
        value = None
    if not is_object(value):
        text = body.decode("utf-8", "replace")
        return "" if "<" in text[:200] else one_line(text, _SAID_AT_MOST)
    error = value.get("error")
    for found in (error.get("message") if is_object(error) else error, value.get("message")):
        if isinstance(found, str) and found.strip():
            return one_line(found, _SAID_AT_MOST)
    detail = value.get("detail")
    return one_line(detail, _SAID_AT_MOST) if isinstance(detail, str) else ""


def lacks_dialect(status: int, path: str, body: bytes) -> bool:
    """Whether an upstream's answer says that it has no such path, and not that of a model.

    Args:
        status: The answer's status.
        path: The path that was asked for, without its query.
        body: The answer's body.
    """
    if status == 405:
        return True
    said = said_in(body)
    if status != 404:
        return said.lower().startswith("unexpected endpoint")
    return not said or path in said or _NO_SUCH_PATH.match(said) is not None


def lacks_text(dialect: ProxyDialect, address: str, status: int) -> str:
    """Return what is said where an upstream does not speak a dialect."""
    return (
        f"toolfold proxy: {address} does not speak {TITLES[dialect]} (it answered {status}); use a "
        "server that does, or a client that speaks what this one has"
    )
