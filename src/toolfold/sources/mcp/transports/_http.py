"""Servers elsewhere: streamable HTTP and the older SSE, with headers, tokens and OAuth."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from toolfold.sources.mcp.transports._bodies import ENCODINGS, bound
from toolfold.sources.mcp.transports._responses import FATE, Fate

if TYPE_CHECKING:
    from toolfold.sources.mcp.server import Server

__all__ = ["remote"]

EVENT_LIMIT = 64 * 1024 * 1024
"""The longest event of a stream, in bytes."""

_CONNECT_TIMEOUT = 30.0


@asynccontextmanager
async def remote(
    server: Server, auth: httpx2.Auth | None, on_refusal: Callable[[int], None]
) -> AsyncGenerator[Any]:
    """Connect to a server by its address and yield its two streams.

    Args:
        server: Where, and with which headers.
        auth: Signs requests, where the server wants OAuth.
        on_refusal: Told the status of each answer that is an error.
    """

    async def look(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            on_refusal(response.status_code)
        bound(response, server.name)
        fate = FATE.get()
        if fate is not None:
            _note(response, fate)

    def bounded(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        hooks = {"response": [look]}
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, event_hooks=hooks)

    # Reading has no deadline: a quiet server's stream must not be given up. Calls have one.
    timeout = httpx2.Timeout(_CONNECT_TIMEOUT, read=None)
    headers = {"accept-encoding": ENCODINGS, **server.headers}
    if server.transport == "sse":
        async with sse_client(
            server.url, headers=headers, timeout=_CONNECT_TIMEOUT,
            sse_read_timeout=float("inf"), auth=auth, httpx_client_factory=bounded,
        ) as streams:  # fmt: skip
            yield streams
        return
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with (
        httpx2.AsyncClient(
            headers=headers,
            timeout=timeout,
            auth=auth,
            limits=limits,
            event_hooks={"response": [look]},
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=EVENT_LIMIT
        ) as streams,
    ):
        yield streams


def _note(response: httpx2.Response, fate: Fate) -> None:
    """Note what a request comes to.

    Within a request there may be others: for signing in before it, and answers to what the
    server asks after it has begun. The first have no session, the second change nothing.
    """
    if MCP_SESSION_ID in response.request.headers and (fate.status is None or fate.status >= 400):
        fate.status = response.status_code
    kind = response.headers.get("content-type", "")
    if kind.lower().startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Watched(response.stream, fate)


class _Watched(httpx2.AsyncByteStream):
    """The body of a response, which notes its end.

    Whoever reads it stops at the answer: where the end is reached, there was none. A stream
    whose events have ids can be taken up again, and one that ends in good order is meant to be.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        fate = self._fate
        try:
            async for chunk in self._inner:
                # What comes here is whole lines.
                if not fate.is_resumable and (chunk.startswith(b"id:") or b"\nid:" in chunk):
                    fate.is_resumable = True
                yield chunk
        except Exception:
            fate.is_cut = True
            raise
        fate.is_cut = True
        if fate.is_resumable and fate.on_closed is not None:
            await fate.on_closed()

    async def aclose(self) -> None:
        await self._inner.aclose()
