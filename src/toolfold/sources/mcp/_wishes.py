"""What clients want of a server: log levels, news of resources and lists, folders.

It is told the server on every new connection, so that a restart loses none of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from mcp.shared.exceptions import MCPError

from toolfold.sources.mcp._tasks import heard
from toolfold.sources.mcp.connection import Connection
from toolfold.sources.mcp.lifecycle import REFRESH_PAUSE, Lifecycle
from toolfold.tool import Json, is_object

__all__ = ["Wishes"]

_log = logging.getLogger(__name__)


class Wishes:
    """What clients want of one server.

    Args:
        lifecycle: The server.
    """

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._level: str | None = None
        self._subscribed: dict[str, set[str]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()

    def take_over(self, other: Wishes) -> None:
        """Want what was wanted of the server that was there before."""
        self._level = other._level
        for uri, whose in other._subscribed.items():
            self._subscribed.setdefault(uri, set()).update(whose)

    def connected(self, connection: Connection) -> None:
        """Tell the server all that is wanted, on a connection that has just been made."""
        if self._level is not None:
            self.post(_send_level(connection, self._level))
        if self._subscribed and not connection.is_modern:
            self.post(self._subscribe_all(connection))
        self._listen(connection)

    def disconnected(self) -> None:
        """The connection is over."""
        if self._listening is not None:
            self._listening.cancel()

    def close(self) -> None:
        """Tell the server nothing more."""
        for task in self._posts:
            task.cancel()

    def set_level(self, level: str) -> None:
        """From now on, have log messages of this level on."""
        self._level = level
        connection = self._lifecycle.connection
        if connection is not None:
            self.post(_send_level(connection, level))

    def roots_changed(self) -> None:
        """Tell the server that the client's folders changed."""
        connection = self._lifecycle.connection
        if connection is not None and not connection.is_modern:
            self.post(connection.notify("notifications/roots/list_changed"))

    async def subscribe(self, uri: str, who: str = "") -> None:
        """Have changes of a resource told.

        Args:
            uri: The resource.
            who: Which replica's clients want it, where that is another.
        """
        known = uri in self._subscribed
        self._subscribed.setdefault(uri, set()).add(who)
        if known:
            return
        connection = await self._lifecycle.ready()
        if connection.is_modern:
            self._listen(connection)
        else:
            await connection.request("resources/subscribe", {"uri": uri}, timeout=30)

    async def unsubscribe(self, uri: str, who: str = "") -> None:
        """Have changes of a resource told no more, where nobody else wants them."""
        whose = self._subscribed.get(uri, set())
        whose.discard(who)
        if whose:
            return
        self._subscribed.pop(uri, None)
        connection = self._lifecycle.connection
        if connection is not None and connection.is_modern:
            self._listen(connection)
        elif connection is not None:
            await connection.request("resources/unsubscribe", {"uri": uri}, timeout=30)

    def post(self, sending: Awaitable[None]) -> None:
        """Send something without waiting for it."""
        task = asyncio.ensure_future(sending)
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        task.add_done_callback(heard)

    async def _subscribe_all(self, connection: Connection) -> None:
        for uri in sorted(self._subscribed):
            await connection.request("resources/subscribe", {"uri": uri}, timeout=30)

    def _listen(self, connection: Connection) -> None:
        """Ask a server of 2026-07-28 to tell of changes; older ones do so by themselves."""
        if not connection.is_modern:
            return
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._keep_listening(connection))
        self._listening.add_done_callback(heard)

    async def _keep_listening(self, connection: Connection) -> None:
        while not connection.is_closed:
            wanted: dict[str, Json] = {
                "toolsListChanged": True,
                "promptsListChanged": True,
                "resourcesListChanged": True,
            }
            if self._subscribed:
                wanted["resourceSubscriptions"] = sorted(self._subscribed)
            try:
                await connection.request(
                    "subscriptions/listen", {"notifications": wanted}, timeout=None
                )
            except MCPError as error:
                name = self._lifecycle.name
                _log.debug("server %s does not tell of changes: %s", name, error)
                return
            await asyncio.sleep(REFRESH_PAUSE)
            self._lifecycle.tools_changed()


async def _send_level(connection: Connection, level: str) -> None:
    if not connection.is_modern and is_object(connection.capabilities.get("logging")):
        await connection.request("logging/setLevel", {"level": level}, timeout=10)
