"""The gateway itself: what a client's request comes to, whatever it came over.

Every request has a principal. The principal's scope is applied before there is a catalog,
so whatever is answered here, list, search, description, error or news, knows of nothing
else. A call that resolves to a real tool goes through dispatch to that tool's source, and
what a server answers goes back as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolfold import prompts
from toolfold.absent import AbsentSource
from toolfold.answer import Invocation
from toolfold.dispatch.dispatch import Dispatch, Origin
from toolfold.dispatch.learning import learning
from toolfold.dispatch.records import FoldRecord, Observer, Observers
from toolfold.dispatch.spans import Spans
from toolfold.errors import ConfigError
from toolfold.scope import EVERYTHING, Scope
from toolfold.serve._calls_under_way import CallsUnderWay, StoppedError, StoppingError
from toolfold.serve.catalog.other_sources import OtherSources
from toolfold.serve.catalog.pool import Pool
from toolfold.serve.catalog.views import View, ViewFolding, Views, foldings
from toolfold.serve.doors import Door
from toolfold.serve.mcp._bounded_results import bounded_result, limit_of
from toolfold.serve.mcp._once import result_before, run_once
from toolfold.serve.mcp._parking import Parking, is_continuation, may_ask
from toolfold.serve.mcp._progress import ProgressReports
from toolfold.serve.mcp._results import output_result, text_result
from toolfold.serve.mcp.approval import ClientApproval
from toolfold.serve.mcp.connected_clients import ConnectedClient, ConnectedClients
from toolfold.serve.mcp.notifications import Notifications
from toolfold.serve.mcp.offered_requests import OfferedRequests
from toolfold.serve.mcp.resources import ResourceCatalog
from toolfold.serve.narrowing import Narrowing
from toolfold.serve.observe.unmatched import tell_unmatched
from toolfold.serve.own_sessions import OwnSessions, Sessions
from toolfold.serve.principals import LOCAL, Principal
from toolfold.session import Session
from toolfold.sources.calls import PendingCall
from toolfold.sources.mcp.relay import Caller, RelayedCall, can
from toolfold.sources.openapi import OpenAPISource
from toolfold.sources.source import Source, SourceError
from toolfold.tool import Json
from toolfold.wire.write import served_as

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.memory import Memory
    from toolfold.serve.catalog.shared_tools import SharedTools
    from toolfold.serve.replica.membership import Membership
    from toolfold.serve.replica.roaming_sessions import RoamingSessions
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.sources.mcp._manifests import Manifests
    from toolfold.sources.mcp.placement import Placement
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.mcp.transports._process import Child

__all__ = ["Gateway"]


class Gateway:
    """All servers behind one.

    Args:
        config: The servers, how to serve and how to fold.
        scope: The tools that exist for anybody at all.
        sources: What is served beside the servers, such as functions. Nobody needs to trust
            them, but for HTTP APIs; what they say of their tools is passed on whole.
        observers: Who is told of calls, searches and servers.
        trust: Which tools wait for a person's approval.
        manifests: What the servers listed in earlier runs.
        children: Processes that are being started already, by server.
        auth: Makes what signs the HTTP requests to a server.
        spans: Makes OpenTelemetry's spans.
        memory: What searches led to: it learns from all that is called.
        shared: Makes its part in a shared catalog, where tools are searched in one.
        known: The servers whose tools are in that: they wait for their first call.
        placements: Says of a server where it runs, where that is one replica of several.
        sessions: What conversations have done so far; by default known to this process alone.

    Raises:
        ConfigError: Two sources, or a source and a server, have one name.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        scope: Scope = EVERYTHING,
        sources: Sequence[Source] = (),
        observers: tuple[Observer, ...] = (),
        trust: Trust | None = None,
        manifests: Manifests | None = None,
        children: Mapping[str, Awaitable[Child]] | None = None,
        auth: Callable[[Any], Any] | None = None,
        spans: Spans | None = None,
        memory: Memory | None = None,
        shared: Callable[[Pool, Mapping[str, ViewFolding]], SharedTools] | None = None,
        known: Collection[str] = (),
        placements: Callable[[Server], Placement | None] | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self.config, self._scope = config, scope
        self._narrowing = Narrowing(config, scope)
        self.trust = trust
        serve = config.serve
        self.others = OtherSources(sources, trust)
        self.observers = Observers((*observers, *learning(memory)))
        self.calls = CallsUnderWay()
        self._approval = ClientApproval(serve.destructive)
        self._dispatch = Dispatch(
            hooks=(self._approval,),
            observers=self.observers,
            spans=spans,
            given_up=self.calls.why_given_up,
            memory=None if memory is None or shared is not None else memory.of,
        )
        self.pool = Pool(
            config.servers,
            observers=self.observers,
            sources=self.others.all,
            parallel=serve.max_parallel,
            lazy=serve.lazy,
            wait=serve.folded_wait,
            limit=serve.description_limit,
            trust=trust,
            manifests=manifests if shared is None else None,
            children=children,
            auth=auth,
            reserved=prompts.bridge_names(config.folding.bridge_prefix).all,
            known=known,
            placements=placements,
        )
        if taken := [s.name for s in sources if s.name in self.pool.upstreams]:
            clash = f"a source has the name of the server {taken[0]!r}"
            raise ConfigError(clash, hint="give each a name of its own")
        by_profile = foldings(config)
        self.shared = shared(self.pool, by_profile) if shared else None
        own = Views(self.pool, by_profile)
        self.views = own if self.shared is None else self.shared.views
        self.offers = ResourceCatalog(self.pool, serve.description_limit)
        self.clients = ConnectedClients()
        self.news = Notifications(self.pool, self.views, self.offers, self.clients)
        self.sessions: Sessions = OwnSessions() if sessions is None else sessions
        self.parking = Parking()
        self.requests = OfferedRequests(self)
        self.membership: Membership | None = None
        """What is shared with other replicas; None where there are none."""
        self.roaming: RoamingSessions | None = None
        """The sessions over HTTP that other replicas may go on with; None where there are none."""
        self.doors: list[Door] = []
        """Where clients come in that must know of a changed configuration."""
        self._told_fold: FoldRecord | None = None
        self._telling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Gateway:
        self.news.on_tools = self._tell_fold
        self.news.listen()
        await self.others.__aenter__()
        self.pool.run()
        self._telling = asyncio.create_task(self._tell_unmatched())
        return self

    def adopt(self, config: GatewayConfig, apis: Mapping[str, OpenAPISource] | None = None) -> None:
        """Go on with another configuration; what is the same in it is not touched.

        Args:
            config: The configuration, as `taken_up` makes it of what was read.
            apis: Those of its APIs that are new, or another than before.
        """
        serve = config.serve
        self.config, self._narrowing = config, Narrowing(config, self._scope)
        self._approval.mode = serve.destructive
        self.views.fold_by(foldings(config))
        self.pool.first_start.wait_for(serve.folded_wait)
        self.pool.have_others(
            self.others.have(config.apis, apis or {}, self.pool.room, serve.drain)
        )
        self.pool.have(config.servers, serve.drain)
        self.pool.say_changed()

    async def drain(self) -> None:
        """Refuse new calls, and let those under way end within the time that they have."""
        await self.calls.close(self.config.serve.drain, self.config.serve.notice)

    async def __aexit__(self, *_: object) -> None:
        self.calls.is_closing = self.calls.is_over = True
        if self._telling is not None:
            self._telling.cancel()
        self.parking.close()
        self.news.close()
        if self.shared is not None:
            await self.shared.close()
        await self.pool.stop()
        await self.others.__aexit__()

    def narrowed(self, principal: Principal) -> Principal:
        """Return a principal within its profile, and within what exists for anybody at all."""
        return self._narrowing.of(principal)

    async def view(self, principal: Principal, *, remembers: bool = True) -> View:
        """Return what a principal sees, once the servers have had a moment to start."""
        await self.pool.first_start.awaited()
        return await self.views.of(principal, remembers=remembers)

    def absent(self, principal: Principal, view: View | None = None) -> tuple[AbsentSource, ...]:
        """Return the sources that cannot be asked now, as a principal may know of them."""
        applied = self.views.folding(principal).settings.applied
        found = self.pool.absent(principal.scope, lambda tool: principal.admits(applied(tool)))
        return found if self.shared is None else self.shared.of_tenant(found, view, principal)

    async def _tell_fold(self) -> None:
        view = await self.views.of(self.narrowed(LOCAL))
        record = FoldRecord.of(view.folded.report)
        if record != self._told_fold:
            self._told_fold = record
            self.observers.folded(record)

    async def _tell_unmatched(self) -> None:
        await self.pool.first_start.ended()
        tell_unmatched(self.config, self._scope, self.pool, self.offers)

    # ---- tools

    async def list_tools(
        self, principal: Principal, key: str, *, remembers: bool = True
    ) -> tuple[list[Json], str]:
        """Return what a client lists now, and a digest of what it would list at first.

        Args:
            principal: Who it is.
            key: Names its conversation.
            remembers: Whether there is a conversation, of which something can be kept.
        """
        wait = self.config.serve.plain_wait
        view = await self.views.awaited(principal, wait, remembers=remembers)
        session = await self.sessions.begun(key, principal.tenant) if remembers else Session()
        return await view.listed(session), view.digest

    async def call_tool(
        self,
        caller: Caller,
        principal: Principal,
        params: Mapping[str, Json],
        *,
        remembers: bool = True,
    ) -> dict[str, Json]:
        """Return what a client's call comes to.

        Args:
            caller: The client's request.
            principal: Who it is.
            params: What it sent.
            remembers: Whether there is a conversation, of which something can be kept.

        Raises:
            MCPError: The server refuses, or the request is none.
        """
        try:
            with self.calls.entered():
                result = await self._called(caller, principal, params, remembers)
        except (StoppingError, StoppedError) as error:
            result = text_result(error.message, is_error=True)
        if result.get("isError") is not True:
            return result
        # What cannot be run here now may have run before, here or at another replica.
        return await result_before(caller) or result

    async def _called(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json], remembers: bool
    ) -> dict[str, Json]:
        if is_continuation(params):
            return await self.parking.take_up(caller, params)
        name = params.get("name")
        if not isinstance(name, str):
            raise MCPError(INVALID_PARAMS, "a call needs a `name`")
        if self.calls.is_closing:
            origin = _origin(principal, caller)
            self._dispatch.rejected(name, params.get("arguments"), prompts.STOPPING, origin)
            raise StoppingError
        view = self.views.ready(principal, remembers=remembers)
        view = view or await self.view(principal, remembers=remembers)
        sessions, key = self.sessions, caller.key
        session = await sessions.begun(key, principal.tenant) if remembers else Session()
        resolved = await self._dispatch.resolve(
            view.folded,
            name,
            params.get("arguments"),
            session=session,
            origin=_origin(principal, caller),
            absent=self.absent(principal, view),
        )
        # Another call of this client may have ended meanwhile: what it revealed stays.
        before = after = session
        if remembers:
            before, after = await sessions.joined(key, session, resolved.session, principal.tenant)
        if isinstance(resolved, Invocation):
            return await self._invoke(resolved, caller, principal, view, params)
        if view.reveals and after.revealed != before.revealed:
            self.news.revealed(caller.key)
            if self.roaming is not None:
                self.roaming.has_revealed(caller.key, principal.tenant)
        return text_result(resolved.text, is_error=resolved.is_error)

    async def _invoke(
        self,
        invocation: Invocation,
        caller: Caller,
        principal: Principal,
        view: View,
        params: Mapping[str, Json],
    ) -> dict[str, Json]:
        tool, stock = invocation.tool, view.stock
        try:
            if self.shared is not None:
                invocation = await self.shared.live(invocation, principal)
                tool, stock = invocation.tool, self.pool.stock
            located = self.pool.located(stock, tool.name, caller.key, principal.name)
        except SourceError as error:
            return self._rejected(invocation, caller, principal, error.for_model(tool))
        room = self.pool.room(located.source)
        own = located.tool
        listed = own if own.name == tool.name else served_as(own, tool.name)
        applied = self.views.folding(principal).settings.applied
        if room is not None and applied(listed) != tool:
            # It became another tool since it was listed.
            gone = prompts.not_available(tool.shown_name, ())
            return self._rejected(invocation, caller, principal, gone)
        is_revealed = view.reveals and tool.name in view.folded.bridge.folded
        call = PendingCall(
            tool,
            invocation.arguments,
            "revealed" if is_revealed and invocation.via == "direct" else invocation.via,
            agent=principal.name,
            session=caller.key,
            tenant=principal.tenant,
        )

        async def work(relayed: RelayedCall) -> dict[str, Json]:
            reports = ProgressReports(relayed)
            done = await self._dispatch.run(
                replace(call, client=relayed),
                located,
                scope=principal.scope,
                room=room,
                on_progress=reports,
            )
            await reports.sent()
            if isinstance(done.error, MCPError):
                raise done.error
            raw = done.output.raw
            if raw is not None:
                self.offers.note_links(located.source.name, raw)
            result = output_result(done.output) if raw is None else raw
            return bounded_result(result, limit_of(located.source, self.config.serve), call)

        asks = self._approval.wants(tool)
        conduct = partial(self.conduct, caller, params, located.source, work, asks=asks)
        return await run_once(caller, tool, conduct)

    def _rejected(
        self, invocation: Invocation, caller: Caller, principal: Principal, text: str
    ) -> dict[str, Json]:
        """Answer a call that nobody runs, and have that recorded."""
        origin = _origin(principal, caller)
        self._dispatch.rejected(invocation.tool.name, invocation.arguments, text, origin)
        return text_result(text, is_error=True)

    # ---- on the way

    async def conduct(
        self,
        caller: Caller,
        params: Mapping[str, Json],
        source: Source,
        work: Callable[[RelayedCall], Awaitable[dict[str, Json]]],
        *,
        asks: bool = False,
    ) -> dict[str, Json]:
        """Run a request; where it may have to be parked, in a task of its own."""
        may_park = caller.is_modern and any(
            can(caller.capabilities, what) for what in ("elicitation", "sampling", "roots")
        )
        if may_park and (asks or may_ask(source)):

            async def parkable(call: RelayedCall) -> dict[str, Json]:
                with self.calls.entered():  # it outlives the request that began it
                    return await work(call)

            return await self.parking.conduct(caller, params, parkable)
        call = RelayedCall(caller, params)
        try:
            return await work(call)
        finally:
            await call.settle()

    # ---- clients

    def joined(self, client: ConnectedClient) -> None:
        """A client is connected."""
        self.clients.add(client)
        if self.roaming is not None:
            self.roaming.joined(client)

    async def left(self, client: ConnectedClient) -> None:
        """A client is gone."""
        await self.news.unsubscribe_all(client)
        # A stream of 2026-07-28 may end while its client goes on asking.
        if self.clients.remove(client) and not client.is_modern:
            await self.pool.forget(client.key)

    def keeps(self, key: str) -> bool:
        """Whether anything is kept of a conversation."""
        return key in self.sessions or self.pool.keeps(key)

    async def forget(self, key: str) -> None:
        """Let go of what is kept of a conversation, its own servers with it."""
        self.sessions.forget(key)
        await self.pool.forget(key)


def _origin(principal: Principal, caller: Caller) -> Origin:
    return Origin(principal.name, caller.key, tenant=principal.tenant)
