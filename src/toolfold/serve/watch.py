"""One call seen to its end: what the client gets where it fails, what the observers hear."""

from __future__ import annotations

import asyncio
import time

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT

from toolfold.answer import Invocation
from toolfold.bounds import one_line
from toolfold.dispatch.records import CallRecord, Observers, Outcome, Via
from toolfold.dispatch.spans import Ended
from toolfold.prompts import gateway as words
from toolfold.serve.catalog.views import View
from toolfold.serve.principals import Principal
from toolfold.sources.mcp.relay import Caller
from toolfold.sources.mcp.upstream import ServerDownError
from toolfold.tool import Json

__all__ = ["Watch", "as_errors", "as_json", "text_result"]


class Watch:
    """Sees one call to its end and tells the observers how it went."""

    def __init__(
        self,
        observers: Observers,
        invocation: Invocation,
        principal: Principal,
        caller: Caller,
        view: View,
    ) -> None:
        self._observers = observers
        self._invocation = invocation
        self._principal = principal.name
        self._session = caller.key
        self._at = time.time()
        self._began = time.perf_counter()
        self._outcome: Outcome = "ok"
        self._error: str | None = None
        self._via: Via = invocation.via
        if (
            self._via == "direct"
            and view.reveals
            and invocation.tool.name in view.folded.bridge.folded
        ):
            self._via = "revealed"
        self._size = 0
        self._ended: Ended | None = None
        self.result: dict[str, Json] = {}
        """What the client gets: the server's answer, or words in its place."""

    def ended(self, result: dict[str, Json]) -> None:
        """Take the server's answer."""
        self.result = result
        self._size = len(as_json(result))
        if result.get("isError") is True:
            self._outcome = "tool_error"

    def refused(self, text: str) -> dict[str, Json]:
        """Take a refusal, and return what the client gets."""
        self._outcome, self._error = "refused", text
        return text_result(text, is_error=True)

    def until(self, ended: Ended) -> Watch:
        """Watch, and tell a span how it went too."""
        self._ended = ended
        return self

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        tool = self._invocation.tool
        name, server = tool.shown_name, tool.source or ""
        swallowed = False
        if isinstance(error, ServerDownError):
            self._outcome = "failed"
            text = words.server_down(name, server, error.reason, lost=error.lost)
            self.result, swallowed = text_result(text, is_error=True), True
        elif isinstance(error, TimeoutError):
            self._outcome = "timeout"
            text = words.timed_out(name, server, round(time.perf_counter() - self._began, 1))
            self.result, swallowed = text_result(text, is_error=True), True
        elif isinstance(error, asyncio.CancelledError):
            self._outcome = "cancelled"
        elif error is not None:
            self._outcome = "failed"
        if error is not None:
            # The audit redacts it and cuts it then: a part of a secret is not known for one.
            self._error = one_line(str(error) or type(error).__name__, 900)
        record = CallRecord(
            at=self._at,
            principal=self._principal,
            session=self._session,
            server=server,
            tool=tool.name,
            via=self._via,
            outcome=self._outcome,
            seconds=time.perf_counter() - self._began,
            request_size=len(as_json(self._invocation.arguments)),
            result_size=self._size,
            arguments=self._invocation.arguments,
            error=self._error,
        )
        self._observers.called(record)
        if self._ended is not None:
            self._ended(record)
        return swallowed


class as_errors:
    """Turns what only tools answer in words into errors of the protocol."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, ServerDownError):
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        if isinstance(error, TimeoutError):
            raise MCPError(REQUEST_TIMEOUT, "the server took too long") from None


def text_result(text: str, *, is_error: bool) -> dict[str, Json]:
    """Return a result that is one text."""
    result: dict[str, Json] = {"content": [{"type": "text", "text": text}]}
    return {**result, "isError": True} if is_error else result


def as_json(value: Json) -> bytes:
    """Return a value as JSON, or nothing where its numbers are too large for a quick answer."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return b""
