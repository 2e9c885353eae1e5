"""The protocol over our own standard input and output.

While it is served, file descriptor 1 is standard error: whatever prints in this process or
in its children cannot come between two messages. Input is read by a daemon thread, so that
a signal ends the process at once though nothing has been typed, and so that the first
request is answered while the protocol's library is still being imported. What the client
does not take at once is written by another one: a client that reads no more keeps nobody.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from toolfold.serve.mcp._handshake import greeting
from toolfold.tool import Json, is_object

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

__all__ = ["Console"]

_AHEAD = 256
"""How many messages are read ahead before the client has to wait."""

_AT_ONCE = 4096
"""Up to this size a pipe that is ready takes a message whole, so that no thread is needed."""


class Console:
    """The client at the other end of our pipes.

    Args:
        read: The descriptor that the client writes to.
        write: The one that it reads.
    """

    def __init__(self, read: int, write: int, instructions: str) -> None:
        self._in = read
        self._instructions = instructions
        self._out = write
        self.closed = asyncio.Event()
        """Set when the client has closed our input."""
        self._answered: str | int | None = None
        self._waiting: set[str | int] = set()
        self._said = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_AHEAD)
        self._unsent: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        threading.Thread(target=self._pump, daemon=True, name="toolfold-stdin").start()

    def _pump(self) -> None:
        is_first = True
        with suppress(RuntimeError), os.fdopen(self._in, "rb", closefd=False) as stream:
            with suppress(OSError):
                for line in stream:
                    if is_first and (answer := greeting(line, self._instructions)) is not None:
                        self._answered = answer.id
                        self._put(answer.line)
                    is_first = is_first and not line.strip()
                    self._room.acquire()
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    async def all_answered(self) -> None:
        """Return when every request has its answer but those that listen for news."""
        while self._waiting:
            self._said.clear()
            await self._said.wait()

    def _note(self, message: JSONRPCMessage) -> None:
        """Take note of who waits for an answer."""
        method: str | None = getattr(message, "method", None)
        number: str | int | None = getattr(message, "id", None)
        if method == "notifications/cancelled":  # it gets none
            params: Json = getattr(message, "params", None)
            number = params.get("requestId") if is_object(params) else None
        elif method is not None:
            if number is not None and method != "subscriptions/listen":
                self._waiting.add(number)
            return
        if isinstance(number, str | int):
            self._waiting.discard(number)
            self._said.set()

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        """Yield what a dispatcher reads and writes."""
        import anyio
        from mcp.shared.message import SessionMessage

        into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, out = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [asyncio.create_task(self._read(into)), asyncio.create_task(self._write(out))]
        try:
            yield read, write
        finally:
            for task in tasks:
                task.cancel()
            for stream in (into, read, write, out):
                stream.close()

    async def _read(self, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        parse = jsonrpc_message_adapter.validate_json
        with into:
            while (line := await self._lines.get()) is not None:
                self._room.release()
                try:
                    item: SessionMessage | Exception = SessionMessage(parse(line, by_name=False))
                    self._note(item.message)
                except ValueError as error:
                    item = error
                try:
                    await into.send(item)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
            self.closed.set()

    async def _write(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with out:
            async for item in out:
                message = item.message
                if self._answered is not None and getattr(message, "id", None) == self._answered:
                    self._answered = None
                    self._note(message)
                    continue
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                line = text.encode() + b"\n"
                try:
                    if len(line) <= _AT_ONCE and self._is_ready():
                        self._put(line)
                    else:
                        await self._put_slowly(line)
                except OSError:
                    self.closed.set()
                    return
                if getattr(message, "method", None) is None:
                    self._note(message)

    def _is_ready(self) -> bool:
        # Elsewhere only sockets can be asked.
        return os.name == "posix" and bool(select.select([], [self._out], [], 0)[1])

    async def _put_slowly(self, line: bytes) -> None:
        """Write by a thread, which may wait for as long as it likes."""
        if self._writer is None:
            self._writer = threading.Thread(
                target=self._put_all, daemon=True, name="toolfold-stdout"
            )
            self._writer.start()
        sent: asyncio.Future[None] = self._loop.create_future()
        self._unsent.put((line, sent))
        await sent

    def _put_all(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            while True:
                line, sent = self._unsent.get()
                error = None
                try:
                    self._put(line)
                except OSError as failed:
                    error = failed
                self._loop.call_soon_threadsafe(_settle, sent, error)

    def _put(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._out, rest) :]


def _settle(sent: asyncio.Future[None], error: OSError | None) -> None:
    if sent.done():
        return
    if error is None:
        sent.set_result(None)
    else:
        sent.set_exception(error)
