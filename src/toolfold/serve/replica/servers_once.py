"""The servers that run once, however many replicas there are: who has which, and what is asked.

A replica that has a server's lease starts it; all others send it their requests. When it is
gone, another takes the lease when that has ended, and starts the server anew.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from toolfold.scope import EVERYTHING, Scope
from toolfold.serve.replica import forwarded_calls as words
from toolfold.serve.replica.forwarded_connection import (
    ForwardedCall,
    ForwardedConnection,
    Holder,
)
from toolfold.serve.replica.server_placement import ServerPlacement
from toolfold.sources.mcp._tasks import heard
from toolfold.store.postgres import leases
from toolfold.store.postgres.leases import RENEWAL, Lease, Leases, Standing
from toolfold.store.postgres.line import Line
from toolfold.store.postgres.replicas import SILENCE, ReplicaGoneError
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.replica.membership import Membership
    from toolfold.sources.mcp.mcp_source import McpSource
    from toolfold.sources.mcp.server import Server

__all__ = ["ServersOnce"]

PATIENCE = 5.0
"""How long another replica waits for a server that is being started here, in seconds."""

_GIVEN_UP_AT_MOST = 1_000

_Result = TypeVar("_Result")


class ServersOnce:
    """The servers of this replica that run once.

    Args:
        membership: This replica among the others.
        scope: The tools that exist for anybody at all here.
        seconds: How long a lease lasts.
    """

    def __init__(
        self,
        membership: Membership,
        scope: Scope = EVERYTHING,
        *,
        seconds: float = leases.SECONDS,
    ) -> None:
        self.replicas = membership.replicas
        self.scope = scope
        self.forwarded: dict[str, ForwardedCall] = {}
        """Requests that other replicas work on."""
        self.connections: dict[str, set[ForwardedConnection]] = {}
        """The connections to servers that run elsewhere, by server."""
        self._leases = Leases(Line(membership.database), self.replicas.id, seconds=seconds)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="toolfold-leases")
        self._newest: dict[str, int] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._posts: set[asyncio.Task[None]] = set()
        self._serving: dict[str, asyncio.Task[dict[str, Json]]] = {}
        self._given_up: dict[str, None] = {}
        self._gateway: Gateway | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        membership.on_channel(leases.CHANNEL, self._lease_free)
        handlers: dict[str, Callable[[Mapping[str, Json]], Awaitable[Json]]] = {
            words.JOIN: self._join,
            words.REQUEST: self._request,
            words.CANCEL: self._cancel,
            words.WATCH: self._watch,
            words.ASK: self._ask,
            words.NOTE: self._note,
            words.TOLD: self._told,
        }
        for verb, handler in handlers.items():
            self.replicas.on(verb, partial(_objects_only, handler))

    def placement(self, server: Server) -> ServerPlacement | None:
        """Return where a server runs, where it is one that runs once."""
        return ServerPlacement(server, self) if server.run == "once" else None

    def serve(self, gateway: Gateway) -> None:
        """Answer other replicas for a gateway's servers."""
        self._gateway = gateway

    # ---- leases

    async def take(self, name: str, *, anew: bool = False) -> Lease | None:
        """Take a server's lease, or take it again; None where another replica has it.

        Args:
            name: The server.
            anew: Whether to begin another tenure, where this replica has it already.

        Raises:
            StoreAwayError: The database is away.
        """
        lease = await self._off_loop(partial(self._leases.take, anew=anew), _lease_name(name))
        if lease is None:
            return None
        self._know(name, lease.token)
        return lease._replace(name=name)

    async def leave(self, lease: Lease) -> None:
        """Let a server's lease go.

        Raises:
            StoreAwayError: The database is away; the lease ends by itself.
        """
        await self._off_loop(self._leases.leave, lease._replace(name=_lease_name(lease.name)))

    async def look(self, name: str) -> Standing:
        """Return who has a server's lease.

        Raises:
            StoreAwayError: The database is away.
        """
        standing = await self._off_loop(self._leases.look, _lease_name(name))
        self._know(name, standing.token)
        return standing

    def newest(self, name: str) -> int:
        """Return the newest token of a server's lease that is known."""
        return self._newest.get(name, 0)

    async def moved_on(self, name: str, token: int) -> Standing:
        """Return when a server's lease is not in a tenure any more, as far as can be told here.

        Whoever was away or paused for so long that the others took it for gone joins anew.
        """
        last = leases.now()
        while True:
            with suppress(StoreAwayError):  # nobody can tell
                standing = await self.look(name)
                was_gone = leases.now() - last > SILENCE
                if standing.holder is None or standing.token != token or was_gone:
                    return standing
                last = leases.now()
            await self.changed(name, RENEWAL)

    async def changed(self, name: str, seconds: float) -> None:
        """Return when a server's lease was let go, or after a while."""
        self._loop = asyncio.get_running_loop()
        event = self._changed.setdefault(name, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    def _know(self, name: str, token: int) -> None:
        self._newest[name] = max(token, self.newest(name))

    def _lease_free(self, payload: str | None) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._wake, payload)

    def _wake(self, payload: str | None) -> None:
        for name in [n for n in self._changed if payload in (None, _lease_name(n))]:
            self._changed.pop(name).set()

    async def _off_loop(self, work: Callable[..., _Result], *values: Any) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *values)

    # ---- towards the replica that runs a server

    async def joined(self, name: str) -> Holder | None:
        """Return who runs a server; None where nobody does who answers.

        Raises:
            StoreAwayError: The database is away.
        """
        standing = await self.look(name)
        if standing.holder in (None, self.replicas.id):
            return None
        assert standing.holder is not None
        content = {"server": name, "from": str(self.replicas.id)}
        try:
            async with asyncio.timeout(2 * PATIENCE):
                answered = words.unwrapped(
                    await self.replicas.ask(standing.holder, words.JOIN, content)
                )
        except (MCPError, ReplicaGoneError, TimeoutError):
            return None
        self._know(name, answered.token)
        return Holder(standing.holder, answered.token, answered.result)

    def post(self, sending: Coroutine[None, None, None]) -> None:
        """Send something without waiting for it."""
        task = asyncio.create_task(sending)
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        task.add_done_callback(heard)

    async def _ask(self, content: Mapping[str, Json]) -> Json:
        forwarded = self.forwarded.get(str(content.get("call")))
        params = content.get("params")
        if forwarded is None or forwarded.call is None or not is_object(params):
            return words.answer_error(0, INVALID_REQUEST, "there is no client to ask")
        try:
            return {"token": 0, "result": await forwarded.call.ask(str(content["method"]), params)}
        except MCPError as error:
            data: Json = error.error.data
            return words.answer_error(0, error.error.code, error.error.message, data)

    async def _note(self, content: Mapping[str, Json]) -> Json:
        forwarded = self.forwarded.get(str(content.get("call")))
        progress, log = content.get("progress"), content.get("log")
        if forwarded is None or forwarded.call is None:
            return None
        if is_array(progress) and len(progress) == 3 and forwarded.on_progress is not None:
            await forwarded.on_progress(*progress)
        elif is_object(log):
            await forwarded.call.log(log)
        return None

    async def _told(self, content: Mapping[str, Json]) -> Json:
        params = content.get("params")
        for connection in tuple(self.connections.get(str(content.get("server")), ())):
            connection.told(str(content.get("method")), params if is_object(params) else {})
        return None

    # ---- as the replica that runs a server

    def _found(self, content: Mapping[str, Json]) -> tuple[McpSource, ServerPlacement] | None:
        assert self._gateway is not None
        source = self._gateway.pool.upstreams.get(str(content.get("server")))
        placement = None if source is None else source.lifecycle.placement
        if source is None or not isinstance(placement, ServerPlacement):
            return None
        return source, placement

    async def _join(self, content: Mapping[str, Json]) -> Json:
        found = self._found(content)
        if found is None or self._is_closing or not found[1].is_here:
            return words.answer_gone(0, "is not served here", unheard=True)
        source, placement = found
        with suppress(Exception):  # why it does not start is said in its own log
            async with asyncio.timeout(PATIENCE):
                await source.lifecycle.ready()
        connection, held = source.connection, placement.held
        if connection is None or held is None or not held.tenure.holds:
            return words.answer_gone(0, "is not running here now", unheard=True)
        return held.join(_replica(content), connection)

    async def _request(self, content: Mapping[str, Json]) -> Json:
        found = self._found(content)
        held = None if found is None else found[1].held
        if found is None or held is None or content.get("token") != held.tenure.token:
            return words.answer_gone(0, "is not running here now", unheard=True)
        if self._is_closing:
            return words.answer_gone(held.tenure.token, "is being stopped", unheard=True)
        number = str(content.get("call"))
        if number in self._given_up:
            return words.answer_gone(held.tenure.token, "was given up", unheard=True)
        assert self._gateway is not None
        calls = self._gateway.calls

        async def work() -> dict[str, Json]:
            try:
                with calls.entered():
                    return await held.answer(found[0], _replica(content), content)
            except MCPError as error:  # this replica is stopped
                token, told = held.tenure.token, error.error
                return words.answer_error(token, told.code, told.message)

        task = self._serving[number] = asyncio.create_task(work())
        try:
            await asyncio.wait({task})
        finally:
            self._serving.pop(number, None)
            task.cancel()
        if task.cancelled():
            return words.answer_gone(held.tenure.token, "was given up", unheard=False)
        return task.result()

    async def _cancel(self, content: Mapping[str, Json]) -> Json:
        number = str(content.get("call"))
        self._given_up[number] = None  # it may come only now
        while len(self._given_up) > _GIVEN_UP_AT_MOST:
            del self._given_up[next(iter(self._given_up))]
        task = self._serving.get(number)
        if task is not None:
            task.cancel()
        return None

    async def _watch(self, content: Mapping[str, Json]) -> Json:
        found = self._found(content)
        if found is not None and found[1].held is not None:
            await found[1].held.watch(found[0], _replica(content), content.get("uris"))
        return None

    @property
    def _is_closing(self) -> bool:
        return self._gateway is None or self._gateway.calls.is_closing


def _lease_name(server: str) -> str:
    return f"server {server}"


def _replica(content: Mapping[str, Json]) -> uuid.UUID:
    return uuid.UUID(str(content.get("from")))


async def _objects_only(
    handler: Callable[[Mapping[str, Json]], Awaitable[Json]], content: Json
) -> Json:
    return await handler(content) if is_object(content) else None
