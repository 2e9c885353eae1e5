"""Conversations that Anthropic's server would hold: one whose tools are folded is asked for whole.

A thread keeps the tools that it was begun with, and its later requests bring none. So nobody
could tell what is folded there, and what a search found would be the server's to remember.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolfold._json_values import sendable
from toolfold.proxy.request import ProxiedRequest
from toolfold.tool import is_object

__all__ = ["begins_thread", "continues_thread", "sends_whole_instead", "thread_refusal"]

_HELPERS = "x-stainless-helper"
_RUNNER = "BetaToolRunner"


def begins_thread(request: ProxiedRequest) -> bool:
    """Whether the server is to hold the conversation from this request on."""
    return _thread(request) == "create"


def continues_thread(request: ProxiedRequest) -> bool:
    """Whether the server holds what stands before this request, its tools included."""
    return _thread(request) == "continue"


def sends_whole_instead(headers: Mapping[str, str]) -> bool:
    """Whether a client sends its conversation whole where a thread is refused.

    The tool runner of Anthropic's SDK begins a thread by itself and does; a program that asked
    for a thread gets an error.

    Args:
        headers: The request's, their names in lower case.
    """
    return _RUNNER in (name.strip() for name in headers.get(_HELPERS, "").split(","))


def thread_refusal() -> bytes:
    """Return the error by which the API says that a request cannot be held as a thread."""
    message = (
        "toolfold: a conversation whose tools are folded cannot be held as a thread; send it whole"
    )
    details = {"error_code": "thread_unsupported_request", "unsupported": ["tools"]}
    error = {"type": "invalid_request_error", "message": message, "details": details}
    return sendable({"type": "error", "error": error})


def _thread(request: ProxiedRequest) -> str:
    if request.items_key != "messages":
        return ""
    thread = request.document.get("thread")
    kind = thread.get("type") if is_object(thread) else None
    return kind if isinstance(kind, str) else ""
