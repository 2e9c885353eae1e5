"""Connections over HTTP: how many there may be, and how long one may say nothing of use.

Whoever connects and sends no whole request is let go after a while. When there are as many
connections as there may be, a new one takes the place of the oldest that no request is under
way on. So strangers who hold connections open without a token hold nobody else off.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

__all__ = ["Connections"]

BACKLOG = 128
"""How many connections are taken at once, and how many may wait to be."""

_LEAST = 16


class Connections:
    """The connections that there are, oldest first.

    Args:
        limit: How many there may be.
        patience: Seconds in which the headers of a request must have come.
    """

    def __init__(self, limit: int, patience: float) -> None:
        self.limit = min(limit, _affordable())
        self.patience = patience
        self._all: dict[_Connection, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return what speaks HTTP on every connection, for the server's library."""
        from uvicorn.protocols.http.auto import AutoHTTPProtocol

        speaks: Any = AutoHTTPProtocol
        connections = self

        class Connection(_Connection):
            def __init__(self, **given: Any) -> None:
                super().__init__(speaks(**given), connections)

        return Connection

    def add(self, connection: _Connection) -> None:
        """Take a new connection, in the place of another where there is no room."""
        self._all[connection] = None
        if len(self._all) > self.limit:
            next(each for each in self._all if each is connection or each.is_idle).abort()

    def remove(self, connection: _Connection) -> None:
        """A connection is no more."""
        self._all.pop(connection, None)


class _Connection(asyncio.Protocol):
    """One connection; what is said on it goes to the library's own protocol."""

    def __init__(self, inner: Any, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way on it."""
        cycle = self._inner.cycle
        return cycle is None or bool(cycle.response_complete)

    def abort(self) -> None:
        """Let go of it."""
        self._connections.remove(self)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inner.connection_made(transport)
        self._expect()
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)
        if self.is_idle:
            self._expect()
        else:
            self._expect_nothing()

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        self._connections.remove(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _expect(self) -> None:
        """Wait for a whole request, from the first byte of it on."""
        if self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._connections.patience, self._late)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if self.is_idle:
            self.abort()


def _affordable() -> int:
    """Return how many connections the process can have: the other half is for servers."""
    if sys.platform == "win32":  # it has no such limit
        return 1_000_000
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else max(soft // 2, _LEAST)
