"""A server's list of tools, read: under the names by which they are served, nothing hidden."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from toolfold.invisible import shown_tool
from toolfold.scope import name_is_denied, name_matches
from toolfold.sources.mcp._exposed_names import Route, own_names
from toolfold.sources.mcp._exposed_records import named_tool
from toolfold.sources.mcp.server import Server
from toolfold.tool import Json, Tool, is_object

__all__ = ["DESCRIPTION_LIMIT", "ToolList"]

DESCRIPTION_LIMIT = 4_000
"""The longest description that is passed on where nothing else is said."""

_log = logging.getLogger(__name__)


class ToolList:
    """What a server lists, read once for each list that comes. Safe to read in any thread.

    Args:
        server: Whose tools they are; its own `allow` and `deny` hold.
        admitted: Returns those of the tools that a person need not look at first.
        limit: The longest description that is passed on.
    """

    def __init__(
        self,
        server: Server,
        admitted: Callable[[Sequence[Tool]], Sequence[Tool]],
        limit: int = DESCRIPTION_LIMIT,
    ) -> None:
        self._server = server
        self._admitted = admitted
        self._limit = limit
        self._reading = Lock()
        self._records: Sequence[Json] | None = None
        self._tools: tuple[Tool, ...] = ()
        self._routes: dict[str, Route] = {}
        self._has_told = False
        self._former_routes: dict[str, Route] = {}

    def read(self, records: Sequence[Json]) -> tuple[Tool, ...]:
        """Return the tools of a list; one that cannot be read takes nobody else's with it."""
        with self._reading:
            if self._records is not records:
                self._records = records  # who decides meanwhile has it read once more
                try:
                    self._tools = self._read(records)
                except Exception:
                    name = self._server.name
                    _log.exception("server %s: its tools cannot be read, and are left out", name)
                    self._tools = ()
            return self._tools

    def has_read(self, records: Sequence[Json]) -> bool:
        """Whether a list was read already."""
        return self._records is records and not self._reading.locked()

    def forget(self) -> None:
        """Read the list anew when it is next asked for."""
        self._records = None

    def route(self, tool: str) -> Route:
        """Return where a tool is really called."""
        # A call of what was listed a moment ago still finds its way; the server judges it.
        found = self._routes.get(tool) or self._former_routes.get(tool)
        return found or Route(self._server.name, tool.removeprefix(f"{self._server.name}__"))

    def _read(self, records: Sequence[Json]) -> tuple[Tool, ...]:
        server = self._server
        by_name: dict[str, dict[str, Json]] = {}
        for record in records:
            own = record.get("name") if is_object(record) else None
            if isinstance(own, str) and own.strip():
                if own in by_name:
                    _log.warning("server %s lists %r twice", server.name, own[:100])
                by_name.setdefault(own, record)
        self._tell_unmatched(by_name)
        names = own_names(server.name, server.prefix, by_name)
        tools: list[Tool] = []
        routes: dict[str, Route] = {}
        for own, record in by_name.items():
            if not self._is_wanted(own):
                continue
            tool = named_tool(record, server.name, own, names[own])
            if tool is not None:
                tools.append(tool)
                has_headers = server.transport == "http" and "x-mcp-header" in str(
                    record.get("inputSchema")
                )
                routes[names[own]] = Route(server.name, own, has_headers)
        self._former_routes, self._routes = self._routes, routes
        return tuple(shown_tool(tool, self._limit) for tool in self._admitted(tools))

    def _tell_unmatched(self, names: Iterable[str]) -> None:
        """Say once which of the server's own patterns match none of its tools."""
        server, names = self._server, list(names)
        if self._has_told or not names:
            return
        self._has_told = True
        for pattern in (*server.allow, *server.deny):
            if not any(name_is_denied(name, server.name, (pattern,)) for name in names):
                _log.warning("server %s: the pattern %r matches no tool", server.name, pattern)

    def _is_wanted(self, name: str) -> bool:
        """Whether the server's own allow and deny lists leave one of its tools."""
        server = self._server
        if server.allow == ("*",) and not server.deny:
            return True
        return name_matches(name, server.name, server.allow) and not name_is_denied(
            name, server.name, server.deny
        )
