"""Where a server runs that runs once, however many replicas of the gateway there are."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from toolfold.sources.mcp._server_words import ServerWords
    from toolfold.sources.mcp.connection import Connection, Peer
    from toolfold.sources.mcp.transports._process import Child

__all__ = ["Placement", "Reached"]

Reached: TypeAlias = "tuple[Connection, Child | None]"
"""A connection to the server, and its process where it runs here."""


class Placement(Protocol):
    """Finds out where a server runs, and reaches it there."""

    async def settled(self) -> None:
        """Return when it is known that it is to run here, or that it runs elsewhere.

        Raises:
            ServerDownError: Neither, for as long as it may take to start.
        """
        ...

    def reached(self, peer: Peer, words: ServerWords) -> AbstractAsyncContextManager[Reached]:
        """Run it here, or speak with the replica that runs it, as long as the block lasts.

        Args:
            peer: Who listens to the server.
            words: Takes what it says beside the protocol.
        """
        ...

    async def let_go(self) -> None:
        """Let others run it: here it has ended."""
        ...
