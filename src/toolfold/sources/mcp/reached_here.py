"""A server that is reached from here: its process started, or its address asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolfold.sources.mcp.connection import Connection, Peer
from toolfold.sources.mcp.transports._process import Child, start

if TYPE_CHECKING:
    from toolfold.sources.mcp._server_words import ServerWords
    from toolfold.sources.mcp.placement import ReachedServer
    from toolfold.sources.mcp.server import Server

__all__ = ["reached_here"]


@asynccontextmanager
async def reached_here(
    server: Server,
    peer: Peer,
    words: ServerWords,
    *,
    child: Awaitable[Child] | None = None,
    auth: Any = None,
) -> AsyncGenerator[ReachedServer]:
    """Connect to a server, as long as the block lasts.

    Args:
        server: How to reach it.
        peer: Who listens to it.
        words: Takes what it says beside the protocol.
        child: Its process, where it is being started already.
        auth: Signs HTTP requests.
    """
    if server.transport == "stdio":
        from toolfold.sources.mcp.transports._stdio import pipes

        process = await (child if child is not None else start(server))
        process.listen(words.heard)
        async with pipes(process, words.printed) as streams:
            yield Connection(streams, peer, knows_calls=False), process
    else:
        from toolfold.sources.mcp.transports._http import remote

        words.refusal = None
        async with remote(server, auth, words.refused) as streams:
            yield Connection(streams, peer, knows_calls=server.transport == "http"), None
