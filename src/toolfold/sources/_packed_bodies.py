"""Bodies of HTTP responses, unpacked piece by piece as they are read.

A few hundred kilobytes of gzip can hold gigabytes. So a body is unpacked before the HTTP
library sees it, in pieces that are not large, and whoever reads them can stop at a bound.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator

import httpx2

__all__ = ["ENCODINGS", "BodyStream", "UnpackedBody", "encodings_of"]

ENCODINGS = "gzip, deflate"
"""What servers are told that is understood here."""

_PIECE = 256 * 1024


def encodings_of(response: httpx2.Response) -> list[str]:
    """Return how a response's body is packed, in the order in which that was done."""
    return [
        each.strip().lower()
        for each in response.headers.get("content-encoding", "").split(",")
        if each.strip().lower() not in ("", "identity")
    ]


class BodyStream(httpx2.AsyncByteStream):
    """A body made of another.

    Args:
        inner: The other.
    """

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        """Close the other."""
        await self._inner.aclose()


class UnpackedBody(BodyStream):
    """A body as it was before it was packed.

    Args:
        inner: The body as it comes.
        encodings: How it is packed.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, encodings: list[str]) -> None:
        super().__init__(inner)
        self._encodings = encodings

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not self._encodings:
            async for piece in self._inner:
                yield piece
            return
        # More than one packing inside another is nobody's need, and a bomb's best friend.
        if len(self._encodings) > 1 or self._encodings[0] not in ("gzip", "x-gzip", "deflate"):
            raise httpx2.StreamError("the server's answer is packed in a way nobody asked for")
        unpacker = _Unpacker(is_gzip=self._encodings[0] != "deflate")
        async for piece in self._inner:
            for part in unpacker.parts(piece):
                yield part
                # A bomb is unpacked in turns with everybody else's business.
                await asyncio.sleep(0)


class _Unpacker:
    def __init__(self, *, is_gzip: bool) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16 if is_gzip else zlib.MAX_WBITS)
        self._may_be_bare = not is_gzip

    def parts(self, packed: bytes) -> Iterator[bytes]:
        """Yield what a piece unpacks to, in pieces that are not large either."""
        while packed:
            try:
                part = self._inflate.decompress(packed, _PIECE)
            except zlib.error as error:
                if not self._may_be_bare:
                    raise httpx2.StreamError(f"the server's answer is damaged: {error}") from None
                # "Deflate" is sent with a header and without one.
                self._may_be_bare = False
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._may_be_bare = False
            if part:
                yield part
            packed = self._inflate.unconsumed_tail
            if not part and not packed:
                return
