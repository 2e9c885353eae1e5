"""A server that this replica runs for all of them: what the others ask is asked here.

Whether the lease still holds is looked at before each request. What another replica asks is
checked as a client's is: its tool must be served here, by the server's own `allow` and `deny`,
by the gateway's scope and by what people approved.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
)

from toolfold.scope import Scope
from toolfold.serve.replica import forwarded_calls as words
from toolfold.sources.mcp._server_errors import ServerDownError
from toolfold.sources.mcp.connection import Connection, Params, Peer, UnheardError
from toolfold.sources.mcp.relay import InFlight, RelayedCall
from toolfold.store.postgres.replicas import ReplicaGoneError, Replicas
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, Tool, is_array, is_object

if TYPE_CHECKING:
    from toolfold.serve.replica.tenure import Tenure
    from toolfold.sources.mcp.mcp_source import McpSource

__all__ = ["HeldConnection", "HeldServer", "RemoteCaller"]

_log = logging.getLogger(__name__)

_METHODS = ("tools/call", "resources/read", "prompts/get", "completion/complete")
_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_PROGRESS_PAUSE = 0.1
_COALESCE = 0.1
_CHANGES_AT_MOST = 1_000

FORGOTTEN = 60.0
"""How long a replica that is not there is told of changes, in seconds: it may be back, and reads
its mail then."""


class HeldConnection(Connection):
    """A connection to a server of one's own, for as long as this replica has the lease.

    Args:
        streams: What the transport gives to read and to write.
        peer: Who listens to what the server says of itself.
        tenure: The time during which the server may run here.
    """

    def __init__(self, streams: Any, peer: Peer, tenure: Tenure) -> None:
        super().__init__(streams, peer, knows_calls=False)
        self._tenure = tenure

    async def run(self) -> None:
        """Read what the server sends until it sends no more, or the lease is over."""
        reading = asyncio.create_task(super().run())
        over = asyncio.create_task(self._tenure.over.wait())
        try:
            await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
            self.has_moved = self._tenure.over.is_set()
        finally:
            self.is_closed = True
            over.cancel()
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def request(self, method: str, params: dict[str, Json], **how: Any) -> dict[str, Json]:
        """Ask the server, where this replica has the lease at this moment."""
        if not self._tenure.holds:
            raise UnheardError(CONNECTION_CLOSED, "another replica may run the server by now")
        return await super().request(method, params, **how)


class RemoteCaller:
    """A request of a client of another replica, and the way back there."""

    log_level: str | None = None
    """What is wanted of a request stands in the request itself."""

    def __init__(self, replicas: Replicas, replica: uuid.UUID, number: str, said: Params) -> None:
        self._replicas = replicas
        self._replica = replica
        self._number = number
        self._last = 0.0
        offered = said.get("capabilities")
        self.capabilities: Mapping[str, Json] = offered if is_object(offered) else {}
        self.key = self.origin = self.owner = f"{replica}/{said.get('origin')}"
        self.is_modern = said.get("modern") is True
        self.wants_progress = said.get("progress") is True

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Ask the client, where it is."""
        content = {"call": self._number, "method": method, "params": dict(params)}
        try:
            answer = await self._replicas.ask(self._replica, words.ASK, content)
        except (ReplicaGoneError, StoreAwayError) as error:
            _log.debug("a client of another replica cannot be asked: %s", error)
            raise MCPError(INVALID_REQUEST, "the client cannot be reached now") from None
        return words.unwrapped(answer).result

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report progress; of what comes too quickly, not all of it."""
        if time.monotonic() - self._last >= _PROGRESS_PAUSE or done == total:
            self._last = time.monotonic()
            await self._tell({"progress": [done, total, message]})

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass a log message on."""
        await self._tell({"log": dict(params)})

    async def close_stream(self) -> None:
        """Pass over: there is none."""

    async def _tell(self, content: dict[str, Json]) -> None:
        with suppress(StoreAwayError):
            note = {"call": self._number, **content}
            await self._replicas.tell(self._replica, words.NOTE, note)


@dataclass(slots=True)
class _Joined:
    """Another replica that is told of the server's changes."""

    uris: set[str] = field(default_factory=set[str])
    """The resources whose changes it wants to hear of."""

    seen: float = field(default_factory=time.monotonic)
    """When it was there last, by the monotonic clock."""


class HeldServer:
    """A server that runs here for other replicas, too. It is also who listens to it.

    Args:
        replicas: The replicas.
        tenure: The time during which it may run here.
        peer: Who listens to it for this replica's own clients.
        scope: The tools that exist for anybody at all here.
    """

    def __init__(self, replicas: Replicas, tenure: Tenure, peer: Peer, scope: Scope) -> None:
        self._replicas = replicas
        self._scope = scope
        self._peer = peer
        self.tenure = tenure
        self._joined: dict[uuid.UUID, _Joined] = {}
        self._changes: dict[tuple[str, str], Params] = {}
        self._telling: asyncio.Task[None] | None = None
        self._served: tuple[tuple[Tool, ...], frozenset[str]] = ((), frozenset())
        self.last_answer = 0.0
        """When another replica was last answered."""

    # ---- what the server says

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        """Answer a server's request."""
        if self._joined and not len(self._in_flight):
            raise MCPError(INVALID_REQUEST, "it is not certain which client this is meant for")
        return await self._peer.asked(method, params)

    def told(self, method: str, params: Params) -> None:
        """Take a notification, and pass it on to the other replicas."""
        self._peer.told(method, params)
        if not self._joined or len(self._changes) >= _CHANGES_AT_MOST:
            return
        self._changes[method, str(params.get("uri"))] = params
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    def logged(self, params: Params) -> None:
        """Take a log message; one that belongs to no call is nobody's for certain."""
        if len(self._in_flight) or not self._joined:
            self._peer.logged(params)

    @property
    def _in_flight(self) -> InFlight:
        found = getattr(self._peer, "in_flight", None)
        return found if isinstance(found, InFlight) else InFlight()

    async def _tell(self) -> None:
        # More may come while others are told; and after the lease everybody lists anew.
        while self._changes and self.tenure.holds:
            await asyncio.sleep(_COALESCE)
            changes, self._changes = self._changes, {}
            try:
                await self._tell_all(changes)
            except StoreAwayError:
                self._changes = {**changes, **self._changes}

    async def _tell_all(self, changes: Mapping[tuple[str, str], Params]) -> None:
        present = {each.id for each in await self._replicas.others()}
        for replica, joined in list(self._joined.items()):
            if replica in present:
                joined.seen = time.monotonic()
            elif time.monotonic() - joined.seen > FORGOTTEN:
                del self._joined[replica]
        for (method, _), params in changes.items():
            content = {"server": getattr(self._peer, "name", ""), "method": method}
            for replica in list(self._joined):
                told = {**content, "params": dict(params)}
                await self._replicas.tell(replica, words.TOLD, told)

    async def farewell(self, seconds: float) -> None:
        """Wait until what was answered last has arrived."""
        left = self.last_answer + seconds - time.monotonic()
        if self.last_answer and left > 0:
            await asyncio.sleep(left)

    # ---- what other replicas ask

    def join(self, replica: uuid.UUID, connection: Connection) -> dict[str, Json]:
        """Return what another replica must know of the server."""
        self._joined.setdefault(replica, _Joined()).seen = time.monotonic()
        return {
            "token": self.tenure.token,
            "result": {
                "version": connection.version,
                "modern": connection.is_modern,
                "capabilities": dict(connection.capabilities),
                "server_info": dict(connection.server_info),
                "instructions": connection.instructions,
            },
        }

    async def watch(self, source: McpSource, replica: uuid.UUID, uris: Json) -> None:
        """Have a replica told of the changes of these resources, and of no others."""
        wanted = {uri for uri in uris if isinstance(uri, str)} if is_array(uris) else set[str]()
        joined = self._joined.setdefault(replica, _Joined())
        before, joined.uris = joined.uris, wanted
        with suppress(MCPError, ServerDownError):
            for uri in sorted(wanted - before):
                await source.wishes.subscribe(uri, str(replica))
            for uri in sorted(before - wanted):
                await source.wishes.unsubscribe(uri, str(replica))

    async def answer(
        self, source: McpSource, replica: uuid.UUID, content: Params
    ) -> dict[str, Json]:
        """Ask the server for another replica, and return what to answer.

        Args:
            source: The server.
            replica: Who asks.
            content: What it asks.
        """
        token = self.tenure.token
        connection = source.connection
        if connection is None or connection.is_closed or not self.tenure.holds:
            return words.answer_gone(token, "is not running here now", unheard=True)
        try:
            result = await self._asked(source, connection, replica, content)
            return words.answer_result(token, result)
        except ServerDownError as error:
            return words.answer_gone(token, error.reason, unheard=not error.lost)
        except UnheardError as error:
            return words.answer_gone(token, error.error.message, unheard=True)
        except MCPError as error:
            data: Json = error.error.data
            return words.answer_error(token, error.error.code, error.error.message, data)
        except TimeoutError:
            return words.answer_error(token, REQUEST_TIMEOUT, "the server took too long")
        finally:
            self.last_answer = time.monotonic()

    async def _asked(
        self, source: McpSource, connection: Connection, replica: uuid.UUID, content: Params
    ) -> dict[str, Json]:
        method, key = str(content.get("method")), content.get("list")
        if isinstance(key, str) and method in _LISTS:
            items = await connection.list_all(method, key, source.server.start_timeout)
            return {"items": items}
        params = content.get("params")
        if method not in _METHODS or not is_object(params):
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        if method == "tools/call" and params.get("name") not in self._tools(source):
            raise MCPError(INVALID_PARAMS, "the replica that runs the server does not serve it")
        said = content.get("caller")
        call = None
        if is_object(said):
            caller = RemoteCaller(self._replicas, replica, str(content.get("call")), said)
            call = RelayedCall(caller)
        try:
            return await source.request(method, params, call)
        finally:
            if call is not None:
                await call.settle()

    def _tools(self, source: McpSource) -> frozenset[str]:
        """Return the server's own names of the tools that are served here."""
        tools = source.tools()
        if self._served[0] is not tools:
            admitted = (tool for tool in tools if tool in self._scope)
            names = frozenset(source.route(tool.name).name for tool in admitted)
            self._served = tools, names
        return self._served[1]
