"""Requests on their way to one server: each waits for its turn, has its time, and is counted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError

from toolfold.sources.mcp._clocks import TimeoutClock
from toolfold.sources.mcp.connection import Connection, Params
from toolfold.sources.mcp.relay import CURRENT, InFlight, RelayedCall
from toolfold.tool import Json

if TYPE_CHECKING:
    from toolfold.sources.calls import CallClock
    from toolfold.sources.mcp.server import Server

__all__ = ["ServerRequests"]


class ServerRequests:
    """The requests to one server.

    Args:
        server: The server; its `call_timeout` holds where a request has no clock of its own.
        parallel: How many run at once.
    """

    def __init__(self, server: Server, parallel: int) -> None:
        self._server = server
        self._parallel = parallel
        self._under_way = 0
        self.in_flight = InFlight()
        self.begin()

    def begin(self) -> None:
        """Begin anew: a semaphore and an event belong to the loop on which they were waited for."""
        self._turns = asyncio.Semaphore(self._parallel)
        self._changed = asyncio.Event()

    async def ended(self, seconds: float) -> None:
        """Return when none is under way any more, or when that has taken too long."""
        try:
            async with asyncio.timeout(seconds):
                while self._under_way:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass

    async def send(
        self,
        connection: Connection,
        method: str,
        params: Params,
        call: RelayedCall | None,
        schema: Params | None,
        clock: CallClock | None,
    ) -> dict[str, Json]:
        """Send a request, and return its result as it came.

        Args:
            connection: Where it goes.
            method: What to ask.
            params: With what.
            call: The client's call that it is for.
            schema: The tool's own, where its parameters may travel as headers.
            clock: The time that it has; by default the server's `call_timeout`, from now.

        Raises:
            MCPError: The server refuses, or is gone.
            TimeoutError: It took too long.
        """
        self._under_way += 1
        try:
            return await self._timed(connection, method, params, call, schema, clock)
        finally:
            self._under_way -= 1
            self._changed.set()

    async def _timed(
        self,
        connection: Connection,
        method: str,
        params: Params,
        call: RelayedCall | None,
        schema: Params | None,
        clock: CallClock | None,
    ) -> dict[str, Json]:
        patience = self._server.call_timeout
        if call is None:
            async with self._turns:
                return await connection.request(method, dict(params), timeout=patience)
        if clock is not None:
            return await self._sent(connection, method, params, call, schema)
        # The wait for its turn counts: a client is not kept for longer than it was told.
        async with asyncio.timeout(patience) as deadline:
            call.clock = TimeoutClock(deadline, patience)
            try:
                return await self._sent(connection, method, params, call, schema)
            finally:
                call.clock = None

    async def _sent(
        self,
        connection: Connection,
        method: str,
        params: Params,
        call: RelayedCall,
        schema: Params | None,
    ) -> dict[str, Json]:
        is_answered = False
        before = CURRENT.set(call)
        try:
            await self._turns.acquire()
            call.turn = self._turns
            self.in_flight.add(call)
            try:
                result = await connection.request(
                    method,
                    dict(params),
                    timeout=None,
                    on_progress=call.progress if call.caller.wants_progress else None,
                    on_closed=call.close_stream,
                    capabilities=call.caller.capabilities,
                    schema=schema,
                )
                is_answered = True
                return result
            except MCPError:
                is_answered = True
                raise
            finally:
                call.give_turn_back()
                self.in_flight.remove(call, is_answered=is_answered)
        finally:
            CURRENT.reset(before)
