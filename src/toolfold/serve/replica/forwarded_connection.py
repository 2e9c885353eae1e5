"""A connection to a server that another replica runs: what is asked goes there and comes back.

It ends when that replica has the lease no more. An answer that was given in an earlier tenure
than the newest that is known of is turned away: what it says may not be so any more.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from toolfold.serve.replica import forwarded_calls as words
from toolfold.sources.mcp.connection import (
    Connection,
    GoneError,
    Params,
    Peer,
    UnheardError,
)
from toolfold.sources.mcp.relay import CURRENT, RelayedCall
from toolfold.store.postgres.replicas import HEARTBEAT, ReplicaGoneError, Replicas
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from toolfold.serve.replica.servers_once import ServersOnce

__all__ = ["ForwardedCall", "ForwardedConnection", "Holder"]


class Holder(NamedTuple):
    """The replica that runs a server, and what it says of it."""

    replica: uuid.UUID
    token: int
    server: Params


class ForwardedCall(NamedTuple):
    """A request that another replica works on."""

    call: RelayedCall | None
    on_progress: ProgressFnT | None


class ForwardedConnection(Connection):
    """A connection to a server, by way of the replica that runs it.

    Args:
        name: The server.
        holder: Who runs it.
        once: What knows where servers run.
        peer: Who listens to what the server says of itself.
    """

    def __init__(self, name: str, holder: Holder, once: ServersOnce, peer: Peer) -> None:
        self._stand(peer)
        self._name = name
        self._holder = holder
        self._once = once
        self._replicas: Replicas = once.replicas
        self._uris: set[str] = set()
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Return when the replica that runs the server has it no more."""
        self._once.connections.setdefault(self._name, set()).add(self)
        self.started.set()
        try:
            await self._once.moved_on(self._name, self._holder.token)
        finally:
            self.has_moved = self.is_closed = True
            self._over.set()
            self._once.connections[self._name].discard(self)

    def told(self, method: str, params: Params) -> None:
        """Take a notification of the server."""
        self._peer.told(method, params)

    # ---- as any connection

    async def negotiate(self, *, handshake: bool = False, older_first: bool = False) -> None:
        """Take over what the other replica has found out; how it speaks is settled there."""
        said = self._holder.server
        self.version = str(said.get("version"))
        self.is_modern = said.get("modern") is True
        for key in ("capabilities", "server_info"):
            setattr(self, key, said[key] if is_object(said.get(key)) else {})
        instructions = said.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else None

    async def request(
        self,
        method: str,
        params: dict[str, Json],
        *,
        timeout: float | None,  # noqa: ASYNC109
        on_progress: ProgressFnT | None = None,
        on_closed: Callable[[], Awaitable[None]] | None = None,
        capabilities: Params | None = None,
        schema: Params | None = None,
    ) -> dict[str, Json]:
        """Ask the server, and return its result as it came.

        Raises:
            MCPError: The server refuses, is gone, or took too long.
        """
        if method == "subscriptions/listen":
            await self._listen(params)
        if method in ("resources/subscribe", "resources/unsubscribe"):
            (self._uris.add if method.endswith("/subscribe") else self._uris.discard)(params["uri"])
            await self._watch()
            return {}
        if method == "logging/setLevel":
            return {}  # the level is that of the clients where it runs
        call = CURRENT.get()
        content: dict[str, Json] = {"method": method, "params": params}
        if call is not None:
            offered = call.caller.capabilities if capabilities is None else capabilities
            content["caller"] = {
                "origin": call.caller.origin,
                "modern": call.caller.is_modern,
                "capabilities": dict(offered),
                "progress": on_progress is not None,
            }
        try:
            async with asyncio.timeout(timeout):
                return await self._forwarded(content, ForwardedCall(call, on_progress))
        except TimeoutError:
            raise MCPError(REQUEST_TIMEOUT, f"Request {method!r} timed out") from None

    async def notify(self, method: str, params: Params | None = None) -> None:
        """Tell the server nothing: it is not this replica's clients' alone."""

    async def list_all(self, method: str, key: str, patience: float | None) -> list[Json]:
        """Return all pages of a list, as records."""
        async with asyncio.timeout(patience):
            content: dict[str, Json] = {"method": method, "list": key}
            found = await self._forwarded(content, ForwardedCall(None, None))
        items = found.get("items")
        return items if is_array(items) else []

    # ---- to the other replica

    async def _listen(self, params: Params) -> None:
        """Hear of changes, as long as the connection lasts."""
        wanted = params.get("notifications")
        uris = wanted.get("resourceSubscriptions") if is_object(wanted) else None
        self._uris = {uri for uri in uris if isinstance(uri, str)} if is_array(uris) else set()
        await self._watch()
        await self._over.wait()
        raise GoneError(CONNECTION_CLOSED, "the server runs elsewhere")

    async def _watch(self) -> None:
        """Say of which resources changes are wanted; what cannot be said now is said later."""
        try:
            await self._say_watched()
        except StoreAwayError:
            self._once.post(self._watch_later())

    async def _watch_later(self) -> None:
        while not self._over.is_set():
            await asyncio.sleep(HEARTBEAT)
            with suppress(StoreAwayError):
                await self._say_watched()
                return

    async def _say_watched(self) -> None:
        content = {**self._address(), "uris": sorted(self._uris)}
        await self._replicas.tell(self._holder.replica, words.WATCH, content)

    def _address(self) -> dict[str, Json]:
        return {
            "server": self._name,
            "token": self._holder.token,
            "from": str(self._replicas.id),
        }

    async def _forwarded(self, content: dict[str, Json], call: ForwardedCall) -> dict[str, Json]:
        if self._over.is_set():
            raise UnheardError(CONNECTION_CLOSED, "the server runs elsewhere")
        number = uuid.uuid4().hex
        content = {**self._address(), "call": number, **content}
        self._once.forwarded[number] = call
        try:
            # What is under way is waited for though the server has moved on: it may be answered.
            answer = await self._replicas.ask(self._holder.replica, words.REQUEST, content)
        except ReplicaGoneError as error:
            kind = UnheardError if error.is_unheard else GoneError
            raise kind(CONNECTION_CLOSED, error.message) from None
        except StoreAwayError as error:
            kind = UnheardError if error.is_undone else GoneError
            raise kind(CONNECTION_CLOSED, "the replica that runs it is out of reach") from None
        except asyncio.CancelledError:
            self._once.post(self._given_up(number))
            raise
        finally:
            self._once.forwarded.pop(number, None)
        answered = words.unwrapped(answer)
        if answered.token < self._once.newest(self._name):
            raise GoneError(CONNECTION_CLOSED, "the answer is of a replica that runs it no more")
        return answered.result

    async def _given_up(self, number: str) -> None:
        with suppress(StoreAwayError):
            await self._replicas.tell(self._holder.replica, words.CANCEL, {"call": number})
