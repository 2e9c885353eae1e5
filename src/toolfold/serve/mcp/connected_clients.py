"""Who is connected now, and what each was last told.

A client of an older revision is one connection; one of 2026-07-28 is a stream that it
listens on. Each hears only of changes in what its principal can see: what it was told last
is remembered as a digest, and the same news is not told twice. Telling never waits: news
for a slow client are kept as flags, however many they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol

from toolfold.serve.principals import Principal
from toolfold.tool import Json

__all__ = ["LEVELS", "Channel", "ConnectedClient", "ConnectedClients", "ListKind"]

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of log messages, mildest first."""

ListKind = Literal["tools", "prompts", "resources"]

_LOGS_AT_MOST = 256


class Channel(Protocol):
    """How a client is reached outside its requests."""

    async def list_changed(self, kind: ListKind) -> None:
        """Say that a list changed."""
        ...

    async def updated(self, uri: str) -> None:
        """Say that a resource changed."""
        ...

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass a log message on."""
        ...

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json] | None:
        """Ask the client something, where it can be asked now."""
        ...


class ConnectedClient:
    """One connected client.

    Args:
        key: Names it, for what is kept of its conversation.
        principal: Who it is.
        channel: How it is reached.
        is_modern: Whether it is a stream of 2026-07-28.
        admitted: Who it is by its door alone, where what exists for it is less.
    """

    def __init__(
        self,
        key: str,
        principal: Principal,
        channel: Channel,
        *,
        is_modern: bool,
        admitted: Principal | None = None,
    ) -> None:
        self.key = key
        self.principal = principal
        self.admitted = admitted or principal
        """Who it is by its door, before that was narrowed to what exists for it."""
        self.is_modern = is_modern
        self.capabilities: Mapping[str, Json] = {}
        self.level: str | None = None
        self.known: dict[ListKind, str] = {}
        """Digests of the lists that it knows, or knows to be old."""
        self.subscriptions: set[str] = set()
        self._channel = channel
        self._news: dict[ListKind, None] = {}
        self._updates: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._logs = 0

    def tell(self, kind: ListKind) -> None:
        """Tell it, soon, that a list changed."""
        self._news[kind] = None
        self._send()

    def updated(self, uri: str) -> None:
        """Tell it, soon, that a resource changed."""
        self._updates[uri] = None
        self._send()

    def _send(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        while self._news or self._updates:
            if self._news:
                kind = next(iter(self._news))
                del self._news[kind]
                await self._channel.list_changed(kind)
            else:
                uri = next(iter(self._updates))
                del self._updates[uri]
                await self._channel.updated(uri)

    def wants_log(self, params: Mapping[str, Json]) -> bool:
        """Whether a log message is of a level that the client wants."""
        return reaches(params.get("level"), self.level or "debug")

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass a log message on that belongs to no call."""
        if self._logs < _LOGS_AT_MOST and self.wants_log(params):
            self._logs += 1
            try:
                await self._channel.log(params)
            finally:
                self._logs -= 1

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json] | None:
        """Ask it something outside of all calls, where that can be done."""
        return await self._channel.ask(method, params)

    def close(self) -> None:
        """Tell it no more."""
        if self._task is not None:
            self._task.cancel()


def reaches(level: Json, least: str) -> bool:
    """Whether a message's level is at least another; an unknown one counts as `info`."""
    place = LEVELS.index(level) if level in LEVELS else 1
    return place >= (LEVELS.index(least) if least in LEVELS else 0)


class ConnectedClients:
    """The clients that are connected now."""

    def __init__(self) -> None:
        self._clients: dict[int, ConnectedClient] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[ConnectedClient]:
        return iter(list(self._clients.values()))

    def add(self, client: ConnectedClient) -> None:
        """A client has come."""
        self._clients[id(client)] = client

    def remove(self, client: ConnectedClient) -> bool:
        """A client has gone; say whether it was the last with its key."""
        self._clients.pop(id(client), None)
        client.close()
        return all(other.key != client.key for other in self._clients.values())

    def only(self, key: str | None = None) -> ConnectedClient | None:
        """Return the client with a key, or the only one there is, where it can be asked."""
        there = [c for c in self._clients.values() if key is None or c.key == key]
        return there[0] if len(there) == 1 and not there[0].is_modern else None

    @property
    def mildest_level(self) -> str | None:
        """The mildest level of log messages that any of them wants."""
        levels = [client.level for client in self._clients.values() if client.level in LEVELS]
        return min(levels, key=LEVELS.index) if levels else None
