"""The servers that are to run, and those that do: they come, go and change while others serve.

A server that is told to leave takes no new call and ends those under way within a time. One
that comes in its place starts when it has left, so that no two of a name ever run, and one
that is the same as before is not touched.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.errors import ConfigError
from toolfold.serve.catalog.leaving import Leaving
from toolfold.serve.catalog.session_servers import SessionServers
from toolfold.sources.mcp._manifests import Manifests, digest
from toolfold.sources.mcp.mcp_source import Hub, McpSource, ServerDownError
from toolfold.sources.mcp.server_status import ServerState, ServerStatus

if TYPE_CHECKING:
    from toolfold.sources.mcp.placement import Placement
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.mcp.transports._process import Child

__all__ = ["Changed", "ServerSet", "check_names", "taken_out"]


class Changed(NamedTuple):
    """What a change of the servers came to."""

    came: tuple[McpSource, ...] = ()
    """Those that are new, or another than before under the same name."""

    left: tuple[McpSource, ...] = ()
    """Those that run no more, or not as they were."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that it touched."""
        return tuple(dict.fromkeys(source.name for source in (*self.left, *self.came)))


class ServerSet:
    """The servers of a pool.

    Args:
        servers: How to reach them, in order.
        hub: Who brings them together.
        parallel: How many calls each runs at once.
        lazy: Whether known servers wait for their first call.
        limit: The longest description that is passed on.
        manifests: What the servers listed in earlier runs.
        children: Processes that are being started already, by server.
        auth: Makes what signs the HTTP requests to a server.
        known: Servers whose tools are known elsewhere: they wait for their first call.
        placements: Says of a server where it runs, where that is one replica of several.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        hub: Hub,
        *,
        parallel: int,
        lazy: bool,
        limit: int,
        manifests: Manifests | None,
        children: Mapping[str, Awaitable[Child]] | None = None,
        auth: Callable[[Server], Any] | None = None,
        known: Collection[str] = (),
        placements: Callable[[Server], Placement | None] | None = None,
    ) -> None:
        self._hub = hub
        self._known = frozenset(known)
        self._parallel = parallel
        self._lazy = lazy
        self._limit = limit
        self._manifests = manifests
        self._auth = auth
        self._placements = placements
        self._own = SessionServers(self._made_for)
        self._leaving = Leaving()
        self._off: dict[str, float] = {}
        self.configured = {server.name: server for server in servers}
        """All of them, those that are off, too."""
        started = children or {}
        self.on: dict[str, McpSource] = {
            server.name: self._new(server, started.get(server.name)) for server in servers
        }
        """Those that are on, in order."""

    def _new(self, server: Server, child: Awaitable[Child] | None = None) -> McpSource:
        """Return a server as a source; one whose lists are known may wait for its first call."""
        if server.name in self._known and server.lazy is not False:
            return self._made(server, lazy=True, child=child)
        waits = self._lazy if server.lazy is None else server.lazy
        # Who is to run it may be settled long after this start: calls of it wait that long.
        moves = self._placements is not None and server.run == "once"
        known = self._manifests.load(server) if self._manifests and (waits or moves) else None
        made = self._made(server, lazy=waits and known is not None, child=child)
        if known is not None:
            made.lifecycle.remember(known)
        return made

    def _made_for(self, shared: McpSource, client: str) -> McpSource:
        return self._made(shared.server, client=client, shared=shared)

    def _made(
        self,
        server: Server,
        *,
        lazy: bool = False,
        child: Awaitable[Child] | None = None,
        client: str | None = None,
        shared: McpSource | None = None,
    ) -> McpSource:
        return McpSource(
            server,
            self._hub,
            parallel=self._parallel,
            lazy=lazy,
            child=child,
            client=client,
            shared=shared,
            auth=self._auth(server) if self._auth is not None and server.oauth else None,
            description_limit=self._limit,
            placement=self._placements(server) if self._placements is not None else None,
        )

    # ---- their life

    def run(self) -> None:
        """Start all of them, all at once."""
        for source in self.on.values():
            source.run()

    async def stop(self) -> None:
        """End all of them, all at once."""
        self._leaving.close()
        async with asyncio.TaskGroup() as group:
            for source in (*self.on.values(), *self._own.all, *self._leaving.all):
                group.create_task(source.stop())

    @property
    def all(self) -> tuple[McpSource, ...]:
        """Every connection: shared ones, those of single clients, second lines, leaving ones."""
        first = (*self.on.values(), *self._own.all, *self._leaving.all)
        return (*first, *(source.older for source in first if source.older is not None))

    def upstream(self, server: str, client: str, principal: str) -> McpSource:
        """Return the connection on which a client's calls to a server go.

        Args:
            server: The server's name.
            client: The client's key.
            principal: Whose client it is.

        Raises:
            ServerDownError: It is none of these any more, or too many clients have one of
                their own already.
        """
        shared = self.on.get(server)
        if shared is None:
            raise taken_out(server)
        return self._own.of(shared, client, principal) if shared.server.per_session else shared

    def keeps(self, client: str) -> bool:
        """Whether servers run for one client alone."""
        return self._own.keeps(client)

    async def forget(self, client: str) -> None:
        """End the servers that ran for one client alone."""
        for own in self._own.taken_out(client=client):
            await own.stop()

    # ---- changes

    def have(self, servers: Sequence[Server], seconds: float) -> Changed:
        """Have these servers from now on, in this order.

        Args:
            servers: How to reach them.
            seconds: How long calls under way on those that leave have to end.
        """
        self.configured = {server.name: server for server in servers}
        self._off = {name: at for name, at in self._off.items() if name in self.configured}
        return self._put_right(seconds)

    def turn(self, name: str, seconds: float, *, on: bool) -> Changed:
        """Turn a server on or off.

        Args:
            name: The server.
            seconds: How long calls under way have to end.
            on: Which of the two.

        Raises:
            KeyError: There is no such server.
        """
        if name not in self.configured:
            raise KeyError(name)
        if on:
            self._off.pop(name, None)
        else:
            self._off.setdefault(name, time.time())
        return self._put_right(seconds)

    def restart(self, name: str, seconds: float) -> None:
        """Begin to restart a server that is on; a restart that is under way is enough.

        Args:
            name: The server.
            seconds: How long calls under way have to end.

        Raises:
            KeyError: There is no such server that is on.
        """
        self._leaving.restart(self.on[name], seconds)
        for own in self._own.taken_out(server=name):
            self._leaving.retire(own, "was restarted", seconds)

    def gone_status(self, name: str) -> ServerStatus:
        """Return how a server stands that is not on."""
        server, since = self.configured.get(name), self._off.get(name)
        state: ServerState = "removed" if server is None else "disabled"
        transport = "stdio" if server is None else server.transport
        return ServerStatus(name, transport, state, since=since or time.time())

    def _put_right(self, seconds: float) -> Changed:
        """Make what runs the same as what is to run."""
        before, self.on = self.on, {}
        came: list[McpSource] = []
        for name, server in self.configured.items():
            if name in self._off:
                continue
            old = before.get(name)
            if old is not None and _is_same(old.server, server):
                self.on[name] = before.pop(name)
            else:
                came.append(self._new(server))
                self.on[name] = came[-1]
        for new in came:
            old = before.get(new.name)
            if old is not None:
                self._take_over(old, new)
                self._retire(old, "its configuration was changed", seconds)
            new.run(after=self._leaving.of(new.name))
        for name in before.keys() - self.on.keys():
            cause = "it is turned off" if name in self._off else "it was taken out of service"
            self._retire(before[name], cause, seconds)
        return Changed(tuple(came), tuple(before.values()))

    def _take_over(self, old: McpSource, new: McpSource) -> None:
        """Give a server what was known and wanted of the one before it."""
        if digest(old.server) == digest(new.server):
            new.lifecycle.remember(old.lists)
        new.wishes.take_over(old.wishes)

    def _retire(self, source: McpSource, cause: str, seconds: float) -> None:
        for each in (source, *self._own.taken_out(server=source.name)):
            self._leaving.retire(each, cause, seconds)


def check_names(servers: Sequence[Server], others: Collection[str]) -> None:
    """Refuse servers that are named like another source.

    Raises:
        ConfigError: One is.
    """
    for server in servers:
        if server.name in others or server.prefix in others:
            raise ConfigError(
                f"a server and functions are both named {server.prefix or server.name!r}",
                hint="give each a name of its own",
            )


def taken_out(name: str) -> ServerDownError:
    """Return what a call meets whose source is there no more."""
    reason = "is not running: it was taken out of service"
    return ServerDownError(name, reason, lost=False, retry_in=math.inf)


def _is_same(one: Server, other: Server) -> bool:
    """Whether two are reached, started and bounded alike, with the same fault if any."""
    return one == other and str(one.problem) == str(other.problem)
