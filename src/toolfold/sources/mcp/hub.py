"""Who brings several MCP servers together: their news and questions go to a hub."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from toolfold.sources.mcp.connection import Params
from toolfold.sources.mcp.lifecycle import ListedKind
from toolfold.tool import Json, Tool

if TYPE_CHECKING:
    from toolfold.sources.mcp.mcp_source import McpSource
    from toolfold.sources.openapi import OpenAPISource
    from toolfold.sources.source import Source

__all__ = ["Alone", "Hub"]

_log = logging.getLogger(__name__)


class Hub(Protocol):
    """Who brings several servers together: their news and questions go there."""

    def status_changed(self, source: McpSource) -> None:
        """Its state changed."""
        ...

    def list_changed(self, source: McpSource, kind: ListedKind) -> None:
        """One of its lists changed."""
        ...

    def resource_updated(self, source: McpSource, uri: str) -> None:
        """A resource that somebody subscribed to changed."""
        ...

    async def ask_anyone(
        self, source: McpSource, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask the only client that a question outside all calls can be meant for, if any."""
        ...

    def stray_log(self, source: McpSource, params: Params) -> None:
        """Take a log message that belongs to no call for certain."""
        ...

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return those of a server's tools that a person need not look at first."""
        ...

    async def is_held_back(self, source: McpSource, tool: str) -> bool:
        """Whether a tool that was there a moment ago waits for a person by now."""
        ...


class Alone:
    """The hub of a server that stands alone: nobody to tell, everything admitted."""

    def __init__(self) -> None:
        self._said: str | None = None

    def status_changed(self, source: McpSource) -> None:
        """Say where a server cannot be reached; once, while it is for the same reason."""
        if source.state == "ready":
            self._said = None
        elif source.state == "failed" and source.error != self._said:
            self._said = source.error
            _log.warning("server %s: %s", source.name, source.error)

    def list_changed(self, source: McpSource, kind: ListedKind) -> None:
        """Pass over."""

    def resource_updated(self, source: McpSource, uri: str) -> None:
        """Pass over."""

    async def ask_anyone(
        self, source: McpSource, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask nobody."""
        return None

    def stray_log(self, source: McpSource, params: Params) -> None:
        """Pass over."""

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Admit all tools."""
        return tools

    async def is_held_back(self, source: McpSource, tool: str) -> bool:
        """Hold nothing back."""
        return False

    def trusted(self, api: OpenAPISource) -> Source:
        """Hold nothing back."""
        return api
