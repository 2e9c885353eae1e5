"""One answer on its way to a client: its head, its pieces, its end.

Nothing is sent before there is something to send: until then the status may still become
another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self

from toolfold.serve.http.customs import Header, Send
from toolfold.serve.http.rate_limit import Receive

__all__ = ["Answering", "Arriving", "BrokenAnswerError", "Pulse", "until_left"]


_PIECES_HELD = 8


class BrokenAnswerError(Exception):
    """An answer that has begun cannot be brought to its end: the connection must break."""


class Answering:
    """Sends one answer.

    Args:
        send: Where to.
        began: When the request came, by `time.perf_counter`.
    """

    def __init__(self, send: Send, began: float) -> None:
        self._send = send
        self._began = began
        self.status = 0
        """What the client got; 0 before that."""

        self.first: float | None = None
        """How many seconds the first byte took."""

        self.tail = b""
        """The last bytes that were sent."""

        self.is_whole = False
        """Whether the last piece is sent, or about to be."""

    @property
    def is_begun(self) -> bool:
        """Whether the client has the status."""
        return self.status != 0

    async def begin(self, status: int, headers: Iterable[Header]) -> None:
        """Send the status and the headers."""
        self.status = status
        message = {"type": "http.response.start", "status": status, "headers": list(headers)}
        await self._send(message)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        if data:
            if self.first is None:
                self.first = time.perf_counter() - self._began
            self.tail = (self.tail + data[-4:])[-4:]
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece of the body."""
        if data and self.first is None:
            self.first = time.perf_counter() - self._began
        self.is_whole = True
        await self._send({"type": "http.response.body", "body": data})

    async def whole(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Send all of an answer."""
        length = (b"content-length", str(len(body)).encode())
        await self.begin(status, (*headers, length))
        await self.end(body)


class Pulse:
    """Says something whenever nothing was said for a while, as long as the block lasts.

    Args:
        seconds: How long a while is.
        say: Says it.
    """

    def __init__(self, seconds: float, say: Callable[[], Awaitable[None]]) -> None:
        self._seconds = seconds
        self._say = say
        self._last = 0.0
        self._task: asyncio.Task[None] | None = None
        self.is_wanted = False
        """Whether it may say something now."""

    def beat(self) -> None:
        """Something was said."""
        self._last = time.monotonic()

    async def __aenter__(self) -> Self:
        self.beat()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        while True:
            left = self._last + self._seconds - time.monotonic()
            if left > 0:
                await asyncio.sleep(left)
                continue
            self.beat()
            if self.is_wanted:
                await self._say()


class Arriving:
    """The events of one request: its body, and that the client has left.

    Args:
        receive: Where ASGI's events come from.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        # As much as is waiting is all that is held of a body that passes.
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES_HELD)

    async def whole(self) -> bytes | None:
        """Return the whole body; None where the client leaves before its end."""
        pieces: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return None
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body as it comes, while somebody waits until the client has left."""
        while (piece := await self._pieces.get()) is not None:
            if piece:
                yield piece

    async def left(self) -> None:
        """Wait until the client has left; take what comes of its body meanwhile."""
        while (message := await self._receive())["type"] != "http.disconnect":
            await self._pieces.put(message.get("body", b""))
            if not message.get("more_body", False):
                await self._pieces.put(None)


async def until_left(
    work: Coroutine[Any, Any, None], arriving: Arriving, answering: Answering
) -> bool:
    """Do some work until it is done or the client has left; return whether it has.

    Args:
        work: What is done; it is cancelled at once when the client leaves.
        arriving: What comes from the client.
        answering: What goes to it: when that is whole, the client may leave.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(arriving.left())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if answering.is_whole:
            await asyncio.wait((working,))
    finally:
        has_left = not working.done()
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))
    if not working.cancelled():
        working.result()
    return has_left
