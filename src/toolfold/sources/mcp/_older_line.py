"""A second line to a server, in the revisions before 2026-07-28.

A server that speaks both families of revisions may ask its questions in the way of the one
that it is spoken to in: as results between two calls, or in the middle of a call. A client
of an older revision takes the latter alone, so its calls go to the server on a line of that
family. Over HTTP that is a second connection beside the first; over stdio there is one process,
and the first client that can be asked decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolfold.sources.mcp.relay import Caller, can
from toolfold.tool import Json, Tool

if TYPE_CHECKING:
    from toolfold.sources.mcp.connection import Connection, Params
    from toolfold.sources.mcp.hub import Hub
    from toolfold.sources.mcp.lifecycle import ListedKind
    from toolfold.sources.mcp.mcp_source import McpSource

__all__ = ["Lines", "OlderLineHub"]

_QUESTIONS = ("elicitation", "sampling", "roots")


def is_asked_midway(caller: Caller) -> bool:
    """Whether a client takes questions in the middle of a call, and only there."""
    return not caller.is_modern and any(can(caller.capabilities, what) for what in _QUESTIONS)


class Lines:
    """The lines to one server.

    Args:
        first: The source, which is the first of them.
    """

    def __init__(self, first: McpSource) -> None:
        self._first = first
        self._has_run = False
        self.older: McpSource | None = None
        """The second line, where it has been needed."""
        self._older_stands: bool | None = None

    def needs_older(self, connection: Connection, caller: Caller) -> bool:
        """Whether a call is for another line than the one that stands."""
        is_first, self._has_run = not self._has_run, True
        if not connection.is_modern or not is_asked_midway(caller):
            return False
        # A process that has run nothing loses nothing; later there is one line for all.
        return is_first or self._first.server.transport != "stdio"

    async def older_or_first(self) -> McpSource:
        """Return the line in the older revisions, or the first one where there is none."""
        if self._first.server.transport == "stdio":
            self._first.lifecycle.begin_older()
            await self._first.lifecycle.ready()
            return self._first
        if self._older_stands is False:
            return self._first
        if self.older is None:
            self.older = self._first.on_older_line()
            self.older.run()
        older = self.older
        if self._older_stands is None:
            await older.lifecycle.settled()
            self._older_stands = older.state == "ready"
            if not self._older_stands:
                await self.stop()
        return older if self._older_stands else self._first

    async def stop(self) -> None:
        """End the second line."""
        older, self.older = self.older, None
        if older is not None:
            await older.stop()


class OlderLineHub:
    """The hub of a second line: its questions and logs are those of the first one's server.

    What the server is, and what it lists, the first line tells.

    Args:
        first: The source whose second line it is.
        hub: That source's own hub.
    """

    def __init__(self, first: McpSource, hub: Hub) -> None:
        self._first = first
        self._hub = hub

    def status_changed(self, source: McpSource) -> None:
        """Pass over."""

    def list_changed(self, source: McpSource, kind: ListedKind) -> None:
        """Pass over."""

    def resource_updated(self, source: McpSource, uri: str) -> None:
        """Pass over."""

    async def ask_anyone(
        self, source: McpSource, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask whom the first line would."""
        return await self._hub.ask_anyone(self._first, method, params, origin)

    def stray_log(self, source: McpSource, params: Params) -> None:
        """Take a log message as the first line would."""
        self._hub.stray_log(self._first, params)

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Admit all tools: nobody sees this list."""
        return tools

    async def is_held_back(self, source: McpSource, tool: str) -> bool:
        """Whether a tool waits for a person by now."""
        return await self._hub.is_held_back(source, tool)
