"""What servers listed last: to know what is missing while one is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolfold.sources.mcp._tool_list import ToolList
from toolfold.tool import Tool

if TYPE_CHECKING:
    from toolfold.sources.mcp._manifests import Manifests
    from toolfold.sources.mcp.mcp_source import McpSource
    from toolfold.sources.mcp.server import Server

__all__ = ["LastLists"]


class LastLists:
    """The last lists of a gateway's servers, read once each.

    Args:
        manifests: Where they are kept; None keeps none.
        limit: The longest description that is passed on.
    """

    def __init__(self, manifests: Manifests | None, limit: int) -> None:
        self._manifests = manifests
        self._limit = limit
        self._known: dict[str, tuple[Tool, ...]] = {}

    def tools(self, server: Server) -> tuple[Tool, ...]:
        """Return the tools that a server had in an earlier run."""
        known = self._known.get(server.name)
        if known is None:
            lists = self._manifests.load(server) if self._manifests is not None else None
            read = ToolList(server, lambda tools: tools, self._limit).read
            known = self._known[server.name] = read(lists["tools"]) if lists else ()
        return known

    def forget(self, name: str) -> None:
        """Read a server's list anew when it is asked for."""
        self._known.pop(name, None)

    async def save(self, sources: Sequence[McpSource]) -> None:
        """Keep what servers list now."""
        manifests = self._manifests
        if manifests is not None:
            lists = [(source.server, dict(source.lists)) for source in sources]
            await asyncio.to_thread(lambda: [manifests.save(*own) for own in lists])
