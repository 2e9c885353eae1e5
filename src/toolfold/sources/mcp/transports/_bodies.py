"""The body of a server's response: unpacked here, piece by piece, within a bound.

A few hundred kilobytes of gzip can hold gigabytes. So the body is unpacked before the HTTP
library sees it, which then finds nothing packed; an answer that is too long fails where it
is read, and that is one request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from toolfold.sources._packed_bodies import (
    ENCODINGS,
    BodyStream,
    UnpackedBody,
    encodings_of,
)
from toolfold.sources.mcp.transports._nesting import SIZE_LIMIT, levelled, may_nest

__all__ = ["ANSWER_LIMIT", "ENCODINGS", "bound"]

ANSWER_LIMIT = 64 * 1024 * 1024
"""The longest answer of a server over HTTP, unpacked, in bytes."""

ERROR_LIMIT = 1024 * 1024
"""The longest body of a refusal."""


def bound(response: httpx2.Response, server: str) -> None:
    """Let a response's body be read within bounds.

    A stream of events has no end of its own; there each event has one, and who reads the
    events holds it.

    Args:
        response: What came; its body has not been read.
        server: From whom.
    """
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    kind = response.headers.get("content-type", "").lower()
    encodings = encodings_of(response)
    limit = ANSWER_LIMIT if response.status_code < 400 else ERROR_LIMIT
    body: httpx2.AsyncByteStream = UnpackedBody(response.stream, encodings)
    if kind.startswith("text/event-stream"):
        body = _LevelledEvents(body, server)
    else:
        body = _Bounded(body, limit)
        if kind.startswith("application/json"):
            body = _Levelled(body, server)
    response.stream = body
    response.headers.pop("content-encoding", None)


class _Bounded(BodyStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        super().__init__(inner)
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > self._limit:
                raise httpx2.StreamError(f"the server's answer has more than {self._limit:,} bytes")
            yield piece


class _Levelled(BodyStream):
    """A JSON body; one tool in it that nests too deep is left out."""

    def __init__(self, inner: httpx2.AsyncByteStream, server: str) -> None:
        super().__init__(inner)
        self._server = server

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = b"".join([piece async for piece in self._inner])
        yield (levelled(whole, self._server) if may_nest(whole) else None) or whole


class _LevelledEvents(_Levelled):
    """A stream of events; one tool in them that nests too deep is left out."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = bytearray()
        async for piece in self._inner:
            begun += piece
            # Longer than a list that is looked through: whoever reads the events bounds it.
            end = len(begun) if len(begun) > 2 * SIZE_LIMIT else begun.rfind(b"\n") + 1
            if end:
                whole = bytes(begun[:end])
                del begun[:end]
                yield b"".join(map(self._line, whole.splitlines(keepends=True)))
        yield bytes(begun)

    def _line(self, line: bytes) -> bytes:
        if not line.startswith(b"data:") or not may_nest(line[5:]):
            return line
        rest = levelled(line[5:], self._server)
        return line if rest is None else b"data:" + rest + b"\n"
