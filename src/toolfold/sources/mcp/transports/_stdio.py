"""The protocol over a server's pipes: one JSON message a line.

What is no message is counted and passed over; it never ends the connection, and takes no
more than a share of the time. The stream
to read ends as soon as the process is gone, also where a grandchild holds the pipe, and
when the process takes no more input: what it was asked then, it will not answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from toolfold.sources.mcp.transports._nesting import levelled
from toolfold.sources.mcp.transports._pace import Pace
from toolfold.sources.mcp.transports._process import Child

__all__ = ["Streams", "pipes"]

Reader: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Writer: TypeAlias = MemoryObjectSendStream[SessionMessage]
Streams: TypeAlias = tuple[Reader, Writer]
"""What a dispatcher reads and writes."""

_LINGER = 0.2
"""How long what a process has written that hears no more is still read, in seconds."""


@asynccontextmanager
async def pipes(child: Child, on_rubbish: Callable[[bytes], None]) -> AsyncGenerator[Streams]:
    """Speak with a process; at the end, end it.

    Args:
        child: The process.
        on_rubbish: Called with each line of its output that is no message.
    """
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, out = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(child, into, on_rubbish)),
        asyncio.create_task(_write(child, out, into)),
        asyncio.create_task(_watch(child, into)),
    ]
    try:
        yield read, write
    finally:
        for task in tasks[1:]:
            task.cancel()
        ending = asyncio.ensure_future(child.end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Whoever hurries gets no orphan: the rest of the ending takes no more time.
            child.kill()
            await ending
            raise
        finally:
            tasks[0].cancel()
            for stream in (into, read, write, out):
                stream.close()


async def _read(
    child: Child,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    on_rubbish: Callable[[bytes], None],
) -> None:
    stream = child.process.stdout
    assert stream is not None
    pace = Pace()
    with into:
        while True:
            try:
                line = await stream.readline()
            except ValueError:
                on_rubbish(b"(a line longer than the limit)")
                continue
            if not line:
                return
            began = time.perf_counter()
            message = _message(line, child.name)
            if message is None:
                if line.strip():
                    on_rubbish(line)
                await pace.rest(time.perf_counter() - began)
                continue
            try:
                await into.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


def _message(line: bytes, server: str) -> JSONRPCMessage | None:
    """Return the message that a line is, if it is one."""
    parse = jsonrpc_message_adapter.validate_json
    try:
        return parse(line, by_name=False)
    except ValueError:
        rest = levelled(line, server) if line.startswith(b"{") else None
    try:
        return None if rest is None else parse(rest, by_name=False)
    except ValueError:
        return None


async def _write(
    child: Child,
    out: MemoryObjectReceiveStream[SessionMessage],
    into: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    stream = child.process.stdin
    assert stream is not None
    with out:
        async for item in out:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                stream.write(line.encode() + b"\n")
                await stream.drain()
            except (OSError, RuntimeError):
                break
        else:
            return
    await asyncio.sleep(_LINGER)
    into.close()


async def _watch(child: Child, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    await child.left()
    await asyncio.sleep(_LINGER)
    into.close()
