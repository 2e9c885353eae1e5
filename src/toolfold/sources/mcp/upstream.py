"""One server behind the gateway: asked, listened to, told what clients want of it.

Everybody goes through `request`. Calls on a server that dies end with `ServerDownError`,
or run once more where the caller says that this is safe. What the server asks goes to the
client of the call that it belongs to, and to nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import time

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from toolfold.sources.mcp.connection import Connection, Params, is_gone, is_session_lost
from toolfold.sources.mcp.lifecycle import Hub, Kind, ServerDownError, Supervised
from toolfold.sources.mcp.relay import CURRENT, RelayedCall
from toolfold.tool import Json, is_object

__all__ = ["Hub", "Kind", "ServerDownError", "Upstream"]

_NEXT_LIFE = 10.0
_SOON = 2.0
"""A call waits for a server that is tried again within so many seconds."""

_log = logging.getLogger(__name__)


class Upstream(Supervised):
    """One server behind the gateway."""

    # ---- asking it

    async def ready(self) -> Connection:
        """Return the connection, once it stands.

        Raises:
            ServerDownError: The server cannot be reached now.
        """
        self._wanted.set()
        while self.connection is None or self.connection.is_closed:
            soon = self.state == "failed" and self._next_try - time.monotonic() < _SOON
            if self.state in ("failed", "stopped") and not soon:
                raise ServerDownError(
                    self.name, f"is not running: {self.error or self.state}", lost=False
                )
            await self._moved.wait()
        return self.connection

    async def request(
        self,
        method: str,
        params: Params,
        call: RelayedCall | None = None,
        *,
        again: bool = False,
        schema: Params | None = None,
    ) -> dict[str, Json]:
        """Ask the server, and return its result as it came.

        Args:
            method: What to ask.
            params: With what.
            call: The client's call that this is for.
            again: Whether to ask once more where the server dies over it.
            schema: The tool's own, where its parameters may travel as headers.

        Raises:
            ServerDownError: It cannot be reached, or died.
            MCPError: It refuses.
            TimeoutError: It took too long.
        """
        connection = await self.ready()
        try:
            return await self._send(connection, method, params, call, schema)
        except MCPError as error:
            if not is_gone(error):
                raise
            self._lost(connection)
            # A session that the server does not know has run nothing.
            unheard = is_session_lost(error)
            if not again and not unheard:
                raise ServerDownError(self.name, "died over it", lost=True) from None
        _log.info("server %s: %s is asked once more", self.name, method)
        connection = await self._ready_again(connection)
        try:
            return await self._send(connection, method, params, call, schema)
        except MCPError as error:
            if not is_gone(error):
                raise
            raise ServerDownError(self.name, "died over it twice", lost=not unheard) from None

    def _lost(self, connection: Connection) -> None:
        """A connection is no more, though its transport may not know it yet."""
        if self.connection is connection:
            self.connection = None
            self._over.set()

    async def _ready_again(self, dead: Connection) -> Connection:
        """Wait for the next life of a server that has just died."""
        try:
            async with asyncio.timeout(_NEXT_LIFE):
                while (
                    self.connection is None or self.connection is dead or self.connection.is_closed
                ):
                    await self._moved.wait()
                return self.connection
        except TimeoutError:
            raise ServerDownError(
                self.name, f"is not running: {self.error or self.state}", lost=True
            ) from None

    async def _send(
        self,
        connection: Connection,
        method: str,
        params: Params,
        call: RelayedCall | None,
        schema: Params | None,
    ) -> dict[str, Json]:
        sent = dict(params)
        patience = self.server.call_timeout
        if call is None:
            async with self._turns:
                return await connection.request(method, sent, timeout=patience)
        is_answered = False
        before = CURRENT.set(call)
        try:
            # The wait for its turn counts: a client is not kept for longer than it was told.
            async with asyncio.timeout(patience) as deadline:
                await self._turns.acquire()
                call.turn = self._turns
                call.deadline, call.patience = deadline, patience
                self.in_flight.add(call)
                try:
                    result = await connection.request(
                        method,
                        sent,
                        timeout=None,
                        on_progress=call.progress if call.caller.wants_progress else None,
                        capabilities=call.caller.capabilities,
                        schema=schema,
                    )
                    is_answered = True
                    return result
                except MCPError:
                    is_answered = True
                    raise
                finally:
                    call.deadline = None
                    call.give_turn_back()
                    self.in_flight.remove(call, is_answered=is_answered)
        finally:
            CURRENT.reset(before)

    async def listing(self, kind: Kind) -> list[Json]:
        """Return one of its lists, read where it is not known; empty where it is not there."""
        known = self.lists.get(kind)
        if known is not None or self.connection is None:
            return known or []
        connection = self.connection
        try:
            found = await self._read(connection, kind)
        except MCPError as error:
            _log.warning("server %s: its %s cannot be listed: %s", self.name, kind, error)
            return []
        if self.connection is connection:
            self.lists[kind] = found
        return found

    def can(self, capability: str) -> bool:
        """Whether the server, as far as it is there, has a capability."""
        return self.connection is not None and is_object(
            self.connection.capabilities.get(capability)
        )

    # ---- what it says by itself

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        """Pass a question on to the client that it belongs to, or refuse it."""
        call = self.in_flight.owner()
        if call is not None:
            return await call.ask(method, params)
        answer = None
        origins = self.in_flight.origins
        if not len(self.in_flight) and len(origins) <= 1:
            answer = await self._hub.ask_anyone(self, method, params, next(iter(origins), None))
        if answer is None:
            raise MCPError(INVALID_REQUEST, "it is not certain which client this is meant for")
        return answer

    def told(self, method: str, params: Params) -> None:
        """Take a notification."""
        if method == "notifications/tools/list_changed":
            self._dirty.set()
        elif method == "notifications/prompts/list_changed":
            self.lists.pop("prompts", None)
            self._hub.list_changed(self, "prompts")
        elif method == "notifications/resources/list_changed":
            self.lists.pop("resources", None)
            self.lists.pop("templates", None)
            self._hub.list_changed(self, "resources")
        elif method == "notifications/resources/updated" and isinstance(params.get("uri"), str):
            self._hub.resource_updated(self, params["uri"])

    def logged(self, params: Params) -> None:
        """Pass a log message on to the client of its call."""
        call = self.in_flight.owner()
        if call is None:
            if not self.in_flight.origins:
                self._hub.stray_log(self, params)
        elif call.has_room:
            self._post(call.log(params))

    # ---- what clients want of it

    def set_level(self, level: str) -> None:
        """From now on, have log messages of this level on."""
        self._level = level
        if self.connection is not None:
            self._post(self._send_level(self.connection, level))

    def roots_changed(self) -> None:
        """Tell the server that the client's folders changed."""
        if self.connection is not None and not self.connection.is_modern:
            self._post(self.connection.notify("notifications/roots/list_changed"))

    async def subscribe(self, uri: str) -> None:
        """Have changes of a resource told."""
        if uri in self._subscribed:
            return
        self._subscribed.add(uri)
        connection = await self.ready()
        if connection.is_modern:
            self._listen(connection)
        else:
            await connection.request("resources/subscribe", {"uri": uri}, timeout=30)

    async def unsubscribe(self, uri: str) -> None:
        """Have changes of a resource told no more."""
        self._subscribed.discard(uri)
        connection = self.connection
        if connection is not None and connection.is_modern:
            self._listen(connection)
        elif connection is not None:
            await connection.request("resources/unsubscribe", {"uri": uri}, timeout=30)
