"""All sources of a gateway, and the one list of tools that they make together.

The merged list follows the configuration: servers in its order, each one's tools in its
own, then functions. Who came first makes no difference, so the same servers give the same
bytes. Changes are gathered for a moment before anybody hears of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from toolfold.absent import AbsentSource
from toolfold.dispatch.records import Observers
from toolfold.scope import Scope
from toolfold.serve.catalog._call_room import CallRoom
from toolfold.serve.catalog.changed_lists import ChangedLists, ListChanges, judged, judged_ones
from toolfold.serve.catalog.first_start import FirstStart
from toolfold.serve.catalog.kept_names import KeptNames
from toolfold.serve.catalog.last_lists import LastLists
from toolfold.serve.catalog.server_set import Changed, ServerSet, check_names, taken_out
from toolfold.serve.catalog.stock import Route, Stock, merged
from toolfold.sources.mcp.connection import Params
from toolfold.sources.mcp.mcp_source import ListedKind, McpSource
from toolfold.sources.mcp.server_status import ServerStatus
from toolfold.sources.merged import Located
from toolfold.sources.source import Source
from toolfold.tool import Json, Tool

if TYPE_CHECKING:
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.sources.mcp._manifests import Manifests
    from toolfold.sources.mcp.placement import Placement
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.mcp.transports._process import Child

__all__ = ["Pool", "Route", "Stock"]

_EVERY_KIND: tuple[ListedKind, ...] = ("tools", "prompts", "resources")


class Pool:
    """All sources of a gateway: MCP servers, which it keeps, and others.

    Args:
        servers: How to reach them, in the order in which their tools appear.
        sources: What else there is, such as functions; whoever made them opens them.
        observers: Who hears of their state.
        parallel: How many calls each server and each other source runs at once.
        lazy: Whether known servers wait for their first call.
        wait: How long the first list waits for servers that are still starting, in seconds.
        limit: The longest description that is passed on.
        trust: Which tools wait for a person's approval.
        manifests: What the servers listed in earlier runs.
        children: Processes that are being started already, by server.
        auth: Makes what signs the HTTP requests to a server.
        reserved: Names that no tool may have: the bridge's.
        known: Servers whose tools are known elsewhere: they wait for their first call.
        placements: Says of a server where it runs, where that is one replica of several.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        observers: Observers,
        sources: Sequence[Source] = (),
        parallel: int = 64,
        lazy: bool = False,
        wait: float = 2.0,
        limit: int = 4_000,
        trust: Trust | None = None,
        manifests: Manifests | None = None,
        children: Mapping[str, Awaitable[Child]] | None = None,
        auth: Callable[[Server], Any] | None = None,
        reserved: Collection[str] = (),
        known: Collection[str] = (),
        placements: Callable[[Server], Placement | None] | None = None,
    ) -> None:
        self._names = KeptNames(reserved)
        self._observers = observers
        self.first_start = FirstStart(wait)
        """The first start of all servers: who comes early waits for it, for a while."""
        self._last_lists = LastLists(manifests, limit)
        self._trust = trust
        self._quarantined: dict[str, tuple[Tool, ...]] = {}
        self._served: dict[str, int] = {}
        self.stock = Stock(0, (), {}, {})
        self.on_change: Callable[[frozenset[ListedKind], frozenset[str]], None] = _nobody
        self.on_update: Callable[[str, str, str | None], None] = _nobody
        self.on_ask: Callable[[str, str, Params, str | None], Awaitable[dict[str, Json] | None]] = (
            _none
        )
        self.on_log: Callable[[str, str | None, Params], None] = _nobody
        self.on_listed: Callable[[frozenset[str]], None] = _nobody
        """Told whose tools may have changed, once they are merged."""
        self._changes = ChangedLists(lambda: self._every, self._tell_now, self._last_lists)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._others = {source.name: source for source in sources}
        self._rooms = {source.name: CallRoom(parallel) for source in sources}
        self._parallel = parallel
        self._unlisten: dict[str, Callable[[], None]] = {}
        check_names(servers, self._others)
        self.servers = ServerSet(
            servers,
            self,
            parallel=parallel,
            lazy=lazy,
            limit=limit,
            manifests=manifests,
            children=children,
            auth=auth,
            known=known,
            placements=placements,
        )

    @property
    def upstreams(self) -> Mapping[str, McpSource]:
        """The servers that are on, by name, in order."""
        return self.servers.on

    # ---- its life

    def run(self) -> None:
        """Start all servers, all at once."""
        self._loop = asyncio.get_running_loop()
        self.first_start.begin()
        for source in self._others.values():
            self._listen(source)
        self.servers.run()
        self._merge()
        for upstream in self.upstreams.values():
            if upstream.is_settled:
                self._observers.server_changed(self._status(upstream))
        self._settle()
        if self._others:  # no server may ever say a word
            self._tell("tools", *self._others)

    async def stop(self) -> None:
        """End all servers, all at once."""
        self._loop = None
        while self._unlisten:
            self._unlisten.popitem()[1]()
        await self._changes.close()
        await self.servers.stop()

    def _settle(self) -> None:
        if all(upstream.is_settled for upstream in self.upstreams.values()):
            self.first_start.end()

    @property
    def _every(self) -> dict[str, Source]:
        return {**self.upstreams, **self._others}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all sources, whether they have a tool now or not."""
        return (*self.upstreams, *self._others)

    @property
    def others(self) -> dict[str, int]:
        """What is served beside the servers, by name, each with its number of tools."""
        return {name: self._served.get(name, 0) for name in self._others}

    def absent(self, scope: Scope, admits: Callable[[Tool], bool]) -> tuple[AbsentSource, ...]:
        """Return the sources that cannot be asked now, as a caller may know of them.

        Args:
            scope: The caller's.
            admits: Whether a tool exists for the caller.
        """
        found: list[AbsentSource] = []
        for source in (*self.upstreams.values(), *self._others.values()):
            away = source.absence()
            if away is None:
                continue
            listed = source.tools()
            if not listed and isinstance(source, McpSource) and "tools" not in source.lists:
                away = replace(away, tools=self._last_lists.tools(source.server))
            reached = scope.reaches(source.name)
            seen = away.seen_by(admits, listed, is_reached=reached)
            found += [] if seen is None else [seen]
        return tuple(found)

    @property
    def statuses(self) -> list[ServerStatus]:
        """Where all servers stand."""
        return [
            self._status(self.upstreams[name])
            if name in self.upstreams
            else self.servers.gone_status(name)
            for name in self.servers.configured
        ]

    def _status(self, upstream: McpSource) -> ServerStatus:
        held = len(self._quarantined.get(upstream.name, ()))
        status = upstream.status
        served = self._served.get(upstream.name, 0)
        if status.state == "ready" and held and not served:
            return replace(status, state="quarantined", tools=0, quarantined=held)
        return replace(status, tools=served, quarantined=held)

    # ---- the merged list

    def _merge(self) -> None:
        """Put the merged list together; a source whose list is the same reads nothing again."""
        every = self._every
        self._served = {name: len(source.tools()) for name, source in every.items()}
        number, was_seen = self.stock.number + 1, self.first_start.may_be_seen
        self.stock = merged(number, every, self._names, self._awaited, was_seen=was_seen)

    def _awaited(self, source: Source) -> tuple[Tool, ...]:
        """Return the tools that keep a name for a server which is not there yet."""
        if not isinstance(source, McpSource) or source.server.prefix != "":
            return ()
        return () if "tools" in source.lists else self._last_lists.tools(source.server)

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return those of a server's tools that need not wait for a person."""
        if self._trust is None or source.client is not None:
            return tools
        sifted = self._trust.sift(source.name, list(tools))
        self._quarantined[source.name] = tuple(entry.tool for entry in sifted.quarantined)
        return sifted.admitted

    def listed(self, name: str) -> tuple[list[Tool], tuple[Tool, ...]] | None:
        """Return the tools that a source has now, and those of it that wait for a person.

        None where the source is not there, or has listed nothing yet.
        """
        upstream = self.upstreams.get(name)
        if name not in self._others and (upstream is None or "tools" not in upstream.lists):
            return None
        own = [t for t in self.stock.tools if self.stock.sources[t.name].source.name == name]
        return own, self._quarantined.get(name, ())

    async def started(self, name: str) -> None:
        """Have a server started that waits for its first call, and its tools merged.

        Raises:
            ServerDownError: It is there no more, or cannot be reached now.
        """
        upstream = self.upstreams.get(name)
        if upstream is None and name not in self._others:
            raise taken_out(name)
        if upstream is not None and "tools" not in upstream.lists:
            await upstream.lifecycle.ready()
        if not self._changes.is_empty:
            await judged(judged_ones(self._every, [name]))
            self._merge()

    def is_quarantined(self, server: str) -> bool:
        """Whether all that a server offers waits: not one of its tools is approved."""
        return bool(self._quarantined.get(server)) and not self._served.get(server)

    async def is_held_back(self, source: McpSource, tool: str) -> bool:
        """Whether a tool that was there a moment ago waits for a person by now."""
        if self._trust is None:
            return False
        shared = self.upstreams.get(source.name)
        if shared is None:
            return True
        await judged([shared])
        return all(own.name != tool for own in shared.tools())

    async def judge_again(self, names: Collection[str]) -> None:
        """Judge the lists of sources anew, because a person has decided; it holds on return."""
        again = judged_ones(self._every, names)
        for source in again:
            source.judge_again()
        await judged(again)
        self._merge()
        self._tell("tools", *names)

    # ---- whom to ask

    @property
    def all(self) -> tuple[McpSource, ...]:
        """Every connection: the shared ones and those of single clients, with second lines."""
        return self.servers.all

    def located(self, stock: Stock, name: str, client: str, principal: str) -> Located:
        """Return a tool of a list with the source that runs it for a client.

        The list is the one that the client saw: what has become of the tool since then, its
        source judges.

        Raises:
            ServerDownError: It has left, or too many clients have one of their own already.
        """
        tool, source = stock.sources[name]
        if isinstance(source, McpSource):
            source = self.upstream(source.name, client, principal)
        elif self._others.get(source.name) is not source:
            raise taken_out(source.name)
        return Located(tool, source)

    def upstream(self, server: str, client: str, principal: str) -> McpSource:
        """Return the connection on which a client's calls to a server go.

        Raises:
            ServerDownError: It has left, or too many clients have one of their own already.
        """
        return self.servers.upstream(server, client, principal)

    def room(self, source: Source) -> CallRoom | None:
        """Return where a source's calls wait for their turn; None of a server, which knows."""
        return self._rooms.get(source.name)

    @property
    def in_flight(self) -> int:
        """How many calls are running."""
        asked = sum(len(upstream.in_flight) for upstream in self.all)
        return asked + sum(room.running for room in self._rooms.values())

    def keeps(self, client: str) -> bool:
        """Whether servers run for one client alone."""
        return self.servers.keeps(client)

    async def forget(self, client: str) -> None:
        """End the servers that ran for one client alone."""
        await self.servers.forget(client)

    # ---- servers that come, go and change

    def have(self, servers: Sequence[Server], seconds: float) -> Changed:
        """Have these servers from now on, in this order; one that is the same is not touched.

        Args:
            servers: How to reach them.
            seconds: How long calls under way on those that leave have to end.

        Raises:
            ConfigError: One has the name of another source; nothing is changed.
        """
        check_names(servers, self._others)
        return self._changed_to(self.servers.have(servers, seconds))

    def have_others(self, sources: Sequence[Source]) -> None:
        """Have these sources beside the servers from now on; one that is the same stays.

        Args:
            sources: The sources, in the order in which their tools appear.
        """
        before, self._others = self._others, {source.name: source for source in sources}
        gone = [name for name, source in before.items() if self._others.get(name) is not source]
        for name in gone:
            del self._rooms[name]
            if name in self._unlisten:
                self._unlisten.pop(name)()
        new = [source for source in sources if source.name not in self._rooms]
        for source in new:
            self._rooms[source.name] = CallRoom(self._parallel)
            self._listen(source)
        if gone or new:
            self._merge()
            self._tell("tools", *gone, *(source.name for source in new))

    def _listen(self, source: Source) -> None:
        self._unlisten[source.name] = source.on_change(partial(self._source_changed, source.name))

    def say_changed(self, *kinds: ListedKind) -> None:
        """Have clients told whose lists are others by now, though no server's are."""
        for kind in kinds or _EVERY_KIND:
            self._tell(kind)

    def turn(self, name: str, seconds: float, *, on: bool) -> Changed:
        """Turn a server on or off; see `ServerSet.turn`."""
        return self._changed_to(self.servers.turn(name, seconds, on=on))

    def _changed_to(self, changed: Changed) -> Changed:
        """Serve what is there after a change of the servers, and tell who should know."""
        for source in changed.left:
            self._quarantined.pop(source.name, None)
            self._last_lists.forget(source.name)
            if source.name not in self.upstreams:
                self._observers.server_changed(self.servers.gone_status(source.name))
        self._settle()
        self._merge()
        for kind in _EVERY_KIND if changed.names else ():
            self._tell(kind, *changed.names)
        return changed

    # ---- what servers say

    def status_changed(self, source: McpSource) -> None:
        """A server's state changed."""
        if self.upstreams.get(source.name) is source:
            self._observers.server_changed(self._status(source))
            self._settle()

    def list_changed(self, source: McpSource, kind: ListedKind) -> None:
        """A server's list changed."""
        if self.upstreams.get(source.name) is source:
            self._tell(kind, source.name)

    def _source_changed(self, name: str) -> None:
        # Functions come and go in any thread, and before anything runs.
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody is told
                self._loop.call_soon_threadsafe(self._tell, "tools", name)

    def _tell(self, kind: ListedKind, *servers: str) -> None:
        self._changes.note(kind, *servers)
        # Until all have started once, nobody has been told anything that could be wrong.
        if kind == "tools" and not self.first_start.is_over:
            self._merge()

    def _tell_now(self, changed: ListChanges) -> None:
        if "tools" in changed:
            self._merge()
            for name in changed["tools"] & self.upstreams.keys():
                self._observers.server_changed(self._status(self.upstreams[name]))
            self.on_listed(frozenset(changed["tools"]))
        servers = frozenset(name for names in changed.values() for name in names)
        self.on_change(frozenset(changed), servers)

    def resource_updated(self, source: McpSource, uri: str) -> None:
        """A resource that somebody subscribed to changed."""
        self.on_update(source.name, uri, source.client)

    async def ask_anyone(
        self, source: McpSource, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask the only client that a question outside all calls can be meant for, if any."""
        return await self.on_ask(source.name, method, params, source.client or origin)

    def stray_log(self, source: McpSource, params: Params) -> None:
        """Take a log message that belongs to no call for certain."""
        self.on_log(source.name, source.client, params)


def _nobody(*_: object) -> None:
    """Do nothing, until somebody listens."""


async def _none(*_: object) -> None:
    """Answer nothing, until somebody listens."""
