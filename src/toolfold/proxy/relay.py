"""One request of a client, passed on: as it came, or folded, round by round.

Whatever an upstream answers in place of an answer goes back with its own status, body and
headers, as long as the client has not heard anything yet. Afterwards an error is an event of
the client's dialect, and where not even that can be said, the connection breaks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from toolfold.proxy.answering import Answering, BrokenAnswerError, Pulse
from toolfold.proxy.complaints import (
    error_body,
    error_event,
    lacks_dialect,
    lacks_text,
    said_in,
)
from toolfold.proxy.exchange import Again, Exchange, ProxyDialect
from toolfold.proxy.headers import downward, named
from toolfold.proxy.upstreams import Choice, UpstreamConnections
from toolfold.serve.http.customs import Header

if TYPE_CHECKING:
    import httpx2

__all__ = ["Relay", "UpstreamError"]

T = TypeVar("T")

_ERROR_LIMIT = 1024 * 1024
_TELLING = 2_000
"""Up to so many bytes, an answer of JSON may be the word that there is no such path."""

_JSON = (b"content-type", b"application/json")
_REWRITTEN = frozenset({b"content-length", b"content-encoding"})


class UpstreamError(Exception):
    """An upstream did not answer, or not to the end.

    Args:
        status: What a client gets that has heard nothing yet.
        message: What happened.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class Relay:
    """Passes one request on, and its answer back."""

    connections: UpstreamConnections
    choice: Choice
    method: str
    query: bytes
    headers: list[Header]
    """The client's headers."""

    dialect: ProxyDialect | None
    answering: Answering
    timeout: float
    keep_alive: float
    reply_limit: int
    own_seconds: float = field(default=0.0, init=False)
    """How long the proxy itself has worked on it."""

    error: str | None = field(default=None, init=False)
    """What went wrong, in one line."""

    _head: tuple[int, list[Header]] | None = field(default=None, init=False)
    """The status and the headers of a folded stream that are not sent yet: until there is
    something to say, a later round may still be refused."""

    _streamed_bytes: int = field(default=0, init=False)

    kept: list[bytes] | None = None
    """What the client got, where that is to be written down."""

    # ---- as it came

    async def untouched(self, body: bytes | AsyncIterable[bytes] | None) -> None:
        """Pass a request and its answer as they come."""
        await self._passed(body, self.choice.headers(self.headers, self.dialect))

    async def counted(self, exchange: Exchange) -> None:
        """Have the tokens of a folded request counted, in place of the client's."""
        await self._passed(exchange.body, self._folded_headers(exchange))

    async def _passed(self, body: bytes | AsyncIterable[bytes] | None, up: list[Header]) -> None:
        response = await self._sent(body, up)
        try:
            self._check_place(response)
            if await self._told_lack(response):
                return
            headers = downward(response.headers.raw)
            await self.answering.begin(response.status_code, headers)
            if self.method != "HEAD":
                async for data in response.aiter_raw():
                    await self._write(data)
            await self.answering.end()
        except self._broken as error:
            await self._break_off(_cause(error, self.timeout), response)
        finally:
            await response.aclose()

    def _check_place(self, response: httpx2.Response) -> None:
        """Refuse an answer that sends a client elsewhere, with its key or its token.

        Raises:
            UpstreamError: It does.
        """
        if self.dialect is None or response.status_code not in (301, 302, 303, 307, 308):
            return
        if self.answering.is_begun:
            return
        place = urlsplit(named(response.headers.raw, b"location"))
        where = f" to {place.scheme}://{place.hostname}" if place.hostname else ""
        raise UpstreamError(
            502, f"{self.choice.address} sends requests on{where}; name where they end as `url`"
        )

    async def _told_lack(self, response: httpx2.Response) -> bool:
        """Say so where the upstream does not speak the client's dialect."""
        status = response.status_code
        if self.dialect is None or not _may_tell(response):
            return False
        body = await self._limited(response, _ERROR_LIMIT)
        if body is not None and lacks_dialect(status, self.choice.path, body):
            self.error = lacks_text(self.dialect, self.choice.address, status)
            status = status if status in (404, 405) else 404
            await self.answering.whole(
                status, (_JSON,), error_body(self.dialect, status, self.error)
            )
        elif body is not None:
            headers = downward(response.headers.raw, without=_REWRITTEN)
            await self.answering.whole(status, headers, body)
            self._keep(body)
        return body is not None

    async def _break_off(self, message: str, response: httpx2.Response) -> None:
        """End an answer that was passed as it came and that the upstream does not end."""
        self.error = message
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        tail = self.answering.tail
        whole = not tail or tail.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        if not self.answering.is_begun:
            raise UpstreamError(502, message)
        if self.dialect is None or not is_stream or not whole:
            raise BrokenAnswerError(message)
        await self.answering.end(error_event(self.dialect, message))

    # ---- folded

    async def folded(self, exchange: Exchange) -> None:
        """Pass a request on, as often as it takes, and one answer back."""
        body = exchange.body
        async with self._pulse(exchange) as pulse:
            while True:
                again = await self._round(exchange, body, pulse)
                if again is None:
                    return
                body = again.body
                if again.head:
                    await self._write(again.head)

    def _pulse(self, exchange: Exchange) -> Pulse:
        async def say() -> None:
            await self._write(exchange.keep_alive())

        return Pulse(self.keep_alive, say)

    async def _round(self, exchange: Exchange, body: bytes, pulse: Pulse) -> Again | None:
        pulse.is_wanted = self._head is not None
        try:
            response = await self._sent(body, self._folded_headers(exchange))
        except UpstreamError as error:
            if not self.answering.is_begun:
                raise
            self.error = error.message
            await self.answering.end(exchange.broken(error.message))
            return None
        try:
            if response.status_code >= 300:
                return await self._refused(exchange, response)
            if not exchange.is_streamed or (self._head is None and not _is_stream(response)):
                return await self._whole(exchange, response)
            return await self._streamed(exchange, response, pulse)
        finally:
            pulse.is_wanted = False
            await response.aclose()

    async def _refused(self, exchange: Exchange, response: httpx2.Response) -> Again | None:
        """Take an upstream's error in place of an answer."""
        self._check_place(response)
        status = response.status_code
        body = await self._limited(response, _ERROR_LIMIT) or b""
        again = await self._own(lambda: exchange.refused(status, body))
        if again is not None:
            return again
        self.error = said_in(body) or f"the upstream answered {status}"
        if self.answering.is_begun:
            await self.answering.end(exchange.broken(self.error))
        elif (
            self.dialect is not None
            and lacks_dialect(status, self.choice.path, body)
            and (status in (404, 405))
        ):
            self.error = lacks_text(self.dialect, self.choice.address, status)
            own = error_body(self.dialect, status, self.error)
            await self.answering.whole(status, (_JSON,), own)
        else:
            headers = downward(response.headers.raw, without=_REWRITTEN)
            await self.answering.whole(status, headers, body)
        return None

    async def _whole(self, exchange: Exchange, response: httpx2.Response) -> Again | None:
        """Take an answer in one piece, asked for so or not."""
        body = await self._limited(response, self.reply_limit)
        if body is None:
            raise UpstreamError(502, f"the answer has more than {self.reply_limit:,} bytes")
        if (
            self.dialect is not None
            and _may_tell(response)
            and lacks_dialect(response.status_code, self.choice.path, body)
        ):
            raise UpstreamError(
                404, lacks_text(self.dialect, self.choice.address, response.status_code)
            )
        ended = await self._own(lambda: exchange.end(body))
        if isinstance(ended, Again):
            return ended
        headers = downward(response.headers.raw, without=_REWRITTEN)
        await self.answering.whole(
            response.status_code, (*headers, *_own_headers(ended.headers)), ended.tail
        )
        self._keep(ended.tail)
        return None

    async def _streamed(
        self, exchange: Exchange, response: httpx2.Response, pulse: Pulse
    ) -> Again | None:
        """Take a stream."""
        if self._head is None:
            headers = downward(response.headers.raw, without=_REWRITTEN)
            self._head = (response.status_code, headers)
        try:
            pulse.is_wanted = True
            async for data in response.aiter_bytes():
                out = self._received(exchange, data)
                if out is None:
                    message = f"the answer has more than {self.reply_limit:,} bytes"
                    return await self._end_broken(exchange, message)
                if out:
                    pulse.beat()
                    await self._write(out)
        except self._broken as error:
            return await self._end_broken(exchange, _cause(error, self.timeout))
        pulse.is_wanted = False
        ended = await self._own(exchange.end)
        if isinstance(ended, Again):
            return ended
        if ended.error:
            self.error = ended.error
            if not self.answering.is_begun:
                raise UpstreamError(502, ended.error)
        if not self.answering.is_begun:
            status, headers = self._head
            await self.answering.begin(status, (*headers, *_own_headers(ended.headers)))
        self._keep(ended.tail)
        await self.answering.end(ended.tail)
        return None

    def _received(self, exchange: Exchange, data: bytes) -> bytes | None:
        """Take a piece of a stream; return what goes out of it. None where that is too much."""
        self._streamed_bytes += len(data)
        if self._streamed_bytes > self.reply_limit:
            return None
        began = time.perf_counter()
        out = exchange.receive(data)
        self.own_seconds += time.perf_counter() - began
        return out

    async def _end_broken(self, exchange: Exchange, message: str) -> None:
        """End a stream that does not come to its own end.

        Raises:
            UpstreamError: The client has heard nothing yet.
        """
        if not self.answering.is_begun:
            raise UpstreamError(502, message) from None
        self.error = message
        await self.answering.end(exchange.broken(message))

    # ---- common

    async def _own(self, work: Callable[[], T]) -> T:
        """Do what is ours and may take long, off the event loop."""
        began = time.perf_counter()
        try:
            return await asyncio.to_thread(work)
        finally:
            self.own_seconds += time.perf_counter() - began

    async def _write(self, data: bytes) -> None:
        if not self.answering.is_begun and self._head is not None:
            await self.answering.begin(*self._head)
        self._keep(data)
        await self.answering.write(data)

    def _keep(self, data: bytes) -> None:
        if self.kept is not None:
            self.kept.append(data)

    @property
    def _broken(self) -> tuple[type[Exception], ...]:
        http = self.connections.http
        return (http.TransportError, http.DecodingError, http.StreamError)

    async def _sent(
        self, body: bytes | AsyncIterable[bytes] | None, headers: list[Header]
    ) -> httpx2.Response:
        """Send a request; return its response, of which nothing is read yet.

        Raises:
            UpstreamError: There is none.
        """
        try:
            return await self.connections.send(self.choice, self.method, headers, body, self.query)
        except self._broken as error:
            http = self.connections.http
            status = 504 if isinstance(error, http.TimeoutException) else 502
            where = self.choice.address
            message = f"{where} cannot be reached: {_cause(error, self.timeout)}"
            if isinstance(error, http.ReadTimeout):
                message = f"{where} was silent for {self.timeout:g} s"
            raise UpstreamError(status, message) from None

    async def _limited(self, response: httpx2.Response, limit: int) -> bytes | None:
        """Return a whole body; None where it is longer than it may be.

        Raises:
            UpstreamError: It breaks off.
        """
        pieces: list[bytes] = []
        size = 0
        try:
            async for data in response.aiter_bytes():
                size += len(data)
                if size > limit:
                    return None
                pieces.append(data)
        except self._broken as error:
            raise UpstreamError(502, _cause(error, self.timeout)) from None
        return b"".join(pieces)

    def _folded_headers(self, exchange: Exchange) -> list[Header]:
        return self.choice.headers(
            self.headers,
            self.dialect,
            without=[name.encode() for name in exchange.drop_headers],
            # What is folded is read, so it must come plain.
            more={**exchange.set_headers, "accept-encoding": "identity"},
        )


def _is_stream(response: httpx2.Response) -> bool:
    """Whether a response may be a stream of events: a web page and JSON are none."""
    kind = named(response.headers.raw, b"content-type").lower()
    return not ("json" in kind or "html" in kind)


def _may_tell(response: httpx2.Response) -> bool:
    """Whether a response may say that there is no such path."""
    if response.status_code in (404, 405):
        return True
    length = named(response.headers.raw, b"content-length")
    kind = named(response.headers.raw, b"content-type").lower()
    is_short = length.isascii() and length.isdigit() and int(length[:20]) <= _TELLING
    return response.status_code == 200 and "json" in kind and is_short


def _own_headers(headers: Mapping[str, str]) -> list[Header]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _cause(error: Exception, timeout: float) -> str:
    """Return what happened, as a clause without anything of the request in it."""
    match type(error).__name__:
        case "ReadTimeout":
            return f"the upstream was silent for {timeout:g} s"
        case "ConnectTimeout" | "PoolTimeout":
            return "it took too long to connect"
        case "ConnectError":
            return "there is no connection"
        case "DecodingError":
            return "the answer is compressed in a way that cannot be read"
        case _:
            return "the upstream broke the connection off"
