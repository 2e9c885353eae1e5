"""All servers, and the one list of tools that they make together.

The merged list follows the configuration: servers in its order, each one's tools in its
own. Who came first makes no difference, so the same servers give the same bytes. Changes
are gathered for a moment before anybody hears of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.dispatch.records import Observers
from toolfold.invisible import shown_tool
from toolfold.scope import name_matches
from toolfold.sources.mcp.connection import Params
from toolfold.sources.mcp.exposed_names import exposed_names
from toolfold.sources.mcp.exposed_records import named_tool
from toolfold.sources.mcp.lifecycle import ServerDownError, Supervised
from toolfold.sources.mcp.server_status import ServerStatus
from toolfold.sources.mcp.upstream import Kind, Upstream
from toolfold.tool import Json, Tool, is_object

if TYPE_CHECKING:
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.sources.mcp.manifests import Manifests
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.mcp.transports.process import Child

__all__ = ["Pool", "Route", "Stock"]

SETTLING = 2.0
"""How long the first list waits for servers that are still starting, in seconds."""

QUIET = 0.1
"""For how long changes are gathered, in seconds."""

OWN_AT_MOST = 256
"""How many connections of single clients there may be."""

_log = logging.getLogger(__name__)


class Route(NamedTuple):
    """Where a tool of the catalog is really called."""

    server: str
    name: str
    """The server's own name for it."""
    has_headers: bool
    """Whether some of its parameters travel as headers."""

    @property
    def full_name(self) -> str:
        """The two names, whole: what a person would write who knows no limits of clients."""
        return f"{self.server}__{self.name}"


@dataclass(frozen=True, slots=True)
class Stock:
    """The merged tools of all servers at one moment."""

    number: int
    """Counts the changes."""

    tools: tuple[Tool, ...]
    routes: Mapping[str, Route]


class Pool:
    """All servers of a gateway.

    Args:
        servers: How to reach them, in the order in which their tools appear.
        observers: Who hears of their state.
        parallel: How many calls each runs at once.
        lazy: Whether known servers wait for their first call.
        limit: The longest description that is passed on.
        trust: Which tools wait for a person's approval.
        manifests: What the servers listed in earlier runs.
        children: Processes that are being started already, by server.
        auth: Makes what signs the HTTP requests to a server.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        observers: Observers,
        parallel: int = 64,
        lazy: bool = False,
        limit: int = 4_000,
        trust: Trust | None = None,
        manifests: Manifests | None = None,
        children: Mapping[str, Awaitable[Child]] | None = None,
        auth: Callable[[Server], Any] | None = None,
    ) -> None:
        self._observers = observers
        self._parallel = parallel
        self._limit = limit
        self._trust = trust
        self._manifests = manifests
        self._auth = auth
        self._quarantined: dict[str, int] = {}
        self._by_client: dict[tuple[str, str], Upstream] = {}
        self._tools: dict[str, tuple[Json, tuple[Tool, ...], dict[str, Route]]] = {}
        self.stock = Stock(0, (), {})
        self.on_change: Callable[[frozenset[Kind], frozenset[str]], None] = _nobody
        self.on_update: Callable[[str, str, str | None], None] = _nobody
        self.on_ask: Callable[[str, str, Params, str | None], Awaitable[dict[str, Json] | None]] = (
            _none
        )
        self.on_log: Callable[[str, str | None, Params], None] = _nobody
        self._changed: dict[Kind, set[str]] = {}
        self._telling: asyncio.TimerHandle | None = None
        self._settled = asyncio.Event()
        self._began = 0.0
        self.upstreams: dict[str, Upstream] = {}
        for server in servers:
            wait = lazy if server.lazy is None else server.lazy
            known = manifests.load(server) if manifests is not None and wait else None
            self.upstreams[server.name] = upstream = self._made(
                server, lazy=known is not None, child=(children or {}).get(server.name)
            )
            if known is not None:
                upstream.remember(known)

    def _made(
        self,
        server: Server,
        *,
        lazy: bool = False,
        child: Awaitable[Child] | None = None,
        client: str | None = None,
    ) -> Upstream:
        auth = self._auth(server) if self._auth is not None and server.oauth else None
        return Upstream(
            server, self, parallel=self._parallel, lazy=lazy, child=child, client=client, auth=auth
        )

    # ---- its life

    def run(self) -> None:
        """Start all servers, all at once."""
        self._began = asyncio.get_running_loop().time()
        self._merge()
        for upstream in self.upstreams.values():
            upstream.run()
            if upstream.is_settled:
                self._observers.server_changed(self._status(upstream))
        self._settle()

    async def stop(self) -> None:
        """End all servers, all at once."""
        if self._telling is not None:
            self._telling.cancel()
            self._save(self._changed)
        async with asyncio.TaskGroup() as group:
            for upstream in self.all:
                group.create_task(upstream.stop())

    async def settled(self) -> None:
        """Return when no server is still starting, or when that has taken too long."""
        if self._settled.is_set():
            return
        left = self._began + SETTLING - asyncio.get_running_loop().time()
        if left > 0:
            try:
                async with asyncio.timeout(left):
                    await self._settled.wait()
            except TimeoutError:
                pass

    def _settle(self) -> None:
        if all(upstream.is_settled for upstream in self.upstreams.values()):
            self._settled.set()

    @property
    def statuses(self) -> list[ServerStatus]:
        """Where all servers stand."""
        return [self._status(upstream) for upstream in self.upstreams.values()]

    def _status(self, upstream: Supervised) -> ServerStatus:
        held = self._quarantined.get(upstream.name, 0)
        status = upstream.status
        served = len(self._tools[upstream.name][1]) if upstream.name in self._tools else 0
        if status.state == "ready" and held and not served:
            return replace(status, state="quarantined", tools=0, quarantined=held)
        return replace(status, tools=served, quarantined=held)

    # ---- the merged list

    def _merge(self) -> None:
        """Put the merged list together; servers whose list is the same are not read again."""
        for name, upstream in self.upstreams.items():
            records = upstream.lists.get("tools")
            if records is None:
                self._tools.pop(name, None)
            elif name not in self._tools or self._tools[name][0] is not records:
                self._tools[name] = (records, *self._read_or_none(upstream.server, records))
        tools: list[Tool] = []
        routes: dict[str, Route] = {}
        for name in self.upstreams:
            _, own, where = self._tools.get(name, (None, (), {}))
            for tool in own:
                if tool.name in routes:
                    _log.warning("two tools come to the name %s: one is left out", tool.name)
                    continue
                tools.append(tool)
                routes[tool.name] = where[tool.name]
        self.stock = Stock(self.stock.number + 1, tuple(tools), routes)

    def _read_or_none(
        self, server: Server, records: Sequence[Json]
    ) -> tuple[tuple[Tool, ...], dict[str, Route]]:
        """Read a server's list; one that cannot be read takes no other server's with it."""
        try:
            return self._read(server, records)
        except Exception:
            _log.exception("server %s: its tools cannot be read, and are left out", server.name)
            return (), {}

    def _read(
        self, server: Server, records: Sequence[Json]
    ) -> tuple[tuple[Tool, ...], dict[str, Route]]:
        """Return a server's tools as the catalog has them, and where they are called."""
        by_name: dict[str, dict[str, Json]] = {}
        for record in records:
            own = record.get("name") if is_object(record) else None
            if isinstance(own, str) and own.strip():
                if own in by_name:
                    _log.warning("server %s lists %r twice", server.name, own[:100])
                by_name.setdefault(own, record)
        found = exposed_names((server.name, own) for own in by_name)
        names = {own: name for name, (_, own) in found.items()}
        tools: list[Tool] = []
        routes: dict[str, Route] = {}
        for own, record in by_name.items():
            if not _admitted(server, own):
                continue
            name = names[own]
            tool = named_tool(record, server.name, name)
            if tool is not None:
                tools.append(tool)
                has_headers = server.transport == "http" and "x-mcp-header" in str(
                    record.get("inputSchema")
                )
                routes[name] = Route(server.name, own, has_headers)
        if self._trust is not None:
            sifted = self._trust.sift(server.name, tools)
            self._quarantined[server.name] = len(sifted.quarantined)
            tools = list(sifted.admitted)
        return tuple(shown_tool(tool, self._limit) for tool in tools), routes

    def is_quarantined(self, server: str) -> bool:
        """Whether all that a server offers waits: not one of its tools is approved."""
        served = self._tools.get(server, (None, (), {}))[1]
        return bool(self._quarantined.get(server)) and not served

    def is_held_back(self, tool: str) -> bool:
        """Whether a tool that was there a moment ago waits for a person by now."""
        if self._trust is None:
            return False
        if "tools" in self._changed:
            self._merge()
        return tool not in self.stock.routes

    def judge_again(self, servers: Sequence[str]) -> None:
        """Read servers' lists anew, because a person has approved something."""
        for name in servers:
            self._tools.pop(name, None)
        self._tell("tools", *servers)

    # ---- whom to ask

    @property
    def all(self) -> tuple[Upstream, ...]:
        """Every connection: the shared ones and those of single clients."""
        return (*self.upstreams.values(), *self._by_client.values())

    def upstream(self, server: str, client: str) -> Upstream:
        """Return the connection on which a client's calls to a server go.

        Raises:
            ServerDownError: Too many clients have one of their own already.
        """
        shared = self.upstreams[server]
        if not shared.server.per_session:
            return shared
        own = self._by_client.get((server, client))
        if own is None:
            if len(self._by_client) >= OWN_AT_MOST:
                raise ServerDownError(server, "serves too many clients already", lost=False)
            own = self._by_client[server, client] = self._made(shared.server, client=client)
            own.run()
        return own

    async def forget(self, client: str) -> None:
        """End the servers that ran for one client alone."""
        for key in [key for key in self._by_client if key[1] == client]:
            await self._by_client.pop(key).stop()

    # ---- what servers say

    def status_changed(self, upstream: Supervised) -> None:
        """A server's state changed."""
        if upstream.client is None:
            self._observers.server_changed(self._status(upstream))
            self._settle()

    def list_changed(self, upstream: Supervised, kind: Kind) -> None:
        """A server's list changed."""
        if upstream.client is None:
            self._tell(kind, upstream.name)

    def _tell(self, kind: Kind, *servers: str) -> None:
        self._changed.setdefault(kind, set()).update(servers)
        # Until all have started once, nobody has been told anything that could be wrong.
        if kind == "tools" and not self._settled.is_set():
            self._merge()
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(QUIET, self._tell_now)

    def _tell_now(self) -> None:
        self._telling = None
        changed, self._changed = self._changed, {}
        self._save(changed)
        if "tools" in changed:
            self._merge()
            for name in changed["tools"]:
                self._observers.server_changed(self._status(self.upstreams[name]))
        servers = frozenset(name for names in changed.values() for name in names)
        self.on_change(frozenset(changed), servers)

    def _save(self, changed: Mapping[Kind, set[str]]) -> None:
        # Once for all that was gathered: a server may say thousands of times that it changed.
        if self._manifests is not None:
            for name in sorted({name for names in changed.values() for name in names}):
                self._manifests.save(self.upstreams[name].server, self.upstreams[name].lists)

    def resource_updated(self, upstream: Supervised, uri: str) -> None:
        """A resource that somebody subscribed to changed."""
        self.on_update(upstream.name, uri, upstream.client)

    async def ask_anyone(
        self, upstream: Supervised, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask the only client that a question outside all calls can be meant for, if any."""
        return await self.on_ask(upstream.name, method, params, upstream.client or origin)

    def stray_log(self, upstream: Supervised, params: Params) -> None:
        """Take a log message that belongs to no call for certain."""
        self.on_log(upstream.name, upstream.client, params)


def _admitted(server: Server, name: str) -> bool:
    """Whether a server's own allow and deny lists leave one of its tools."""
    if server.allow == ("*",) and not server.deny:
        return True
    return name_matches(name, server.name, server.allow) and not name_matches(
        name, server.name, server.deny
    )


def _nobody(*_: object) -> None:
    """Do nothing, until somebody listens."""


async def _none(*_: object) -> None:
    """Answer nothing, until somebody listens."""
