"""What clients are told of by themselves: changed lists, changed resources, stray log lines.

News goes to a client only where what it can see has changed. A principal never learns
from a notification that something outside its scope came, went or changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress

from toolfold.serve.catalog.pool import Pool
from toolfold.serve.catalog.views import Views
from toolfold.serve.mcp.connected_clients import ConnectedClient, ConnectedClients, ListKind
from toolfold.serve.mcp.resources import ResourceCatalog, ResourceRoute
from toolfold.serve.principals import Principal
from toolfold.sources.mcp.mcp_source import ListedKind, McpSource, ServerDownError
from toolfold.tool import Json

__all__ = ["Notifications"]

_SUBSCRIPTIONS_AT_MOST = 1000
_LISTS: Mapping[ListKind, frozenset[ListedKind]] = {
    "tools": frozenset({"tools"}),
    "resources": frozenset({"resources", "templates"}),
    "prompts": frozenset({"prompts"}),
}
_log = logging.getLogger(__name__)


async def _nothing() -> None:
    """Do nothing, until somebody listens."""


class Notifications:
    """Brings what happens at the servers to the clients that may know.

    Args:
        pool: The servers.
        views: What principals see of the tools.
        offers: What they see of the rest.
        clients: Who is connected.
    """

    def __init__(
        self, pool: Pool, views: Views, offers: ResourceCatalog, clients: ConnectedClients
    ) -> None:
        self._pool = pool
        self._views = views
        self._offers = offers
        self._clients = clients
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscribers: dict[ResourceRoute, dict[ConnectedClient, str]] = {}
        self.on_tools: Callable[[], Awaitable[None]] = _nothing

    def listen(self) -> None:
        """Begin to listen to the servers."""
        self._pool.on_change = self._changed
        self._pool.on_update = self._updated
        self._pool.on_ask = self._ask
        self._pool.on_log = self._logged

    def close(self) -> None:
        """Tell nobody any more."""
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.warning("news could not be told: %r", task.exception())

    # ---- lists

    def _changed(self, kinds: frozenset[ListedKind], servers: frozenset[str]) -> None:
        self._start(self._tell(kinds))

    async def _tell(self, kinds: frozenset[ListedKind]) -> None:
        if "tools" in kinds:
            await self.on_tools()
        for kind, lists in _LISTS.items():
            for client in self._clients if kinds & lists else ():
                await self._tell_list(client, kind)

    async def _tell_list(self, client: ConnectedClient, kind: ListKind) -> None:
        digest = await self.digest(client.principal, kind)
        if client.known.get(kind, digest) != digest:
            client.known[kind] = digest
            client.tell(kind)

    def judged_anew(self, client: ConnectedClient) -> None:
        """A client may see something else by now, because of who it is."""
        for kind in _LISTS:
            self._start(self._tell_list(client, kind))

    async def digest(self, principal: Principal, kind: ListKind) -> str:
        """Name the content of a list as a principal sees it."""
        if kind == "tools":
            return (await self._views.of(principal)).digest
        return await self._offers.digest(principal, kind)

    def revealed(self, key: str) -> None:
        """A conversation's own list of tools has grown."""
        for client in self._clients:
            if client.key == key:
                client.tell("tools")

    # ---- resources

    async def subscribe(self, client: ConnectedClient, uri: str) -> bool:
        """Tell a client when a resource changes; say whether there is such a one for it."""
        place = await self._offers.resource(client.principal, uri)
        if place is None or len(client.subscriptions) >= _SUBSCRIPTIONS_AT_MOST:
            return False
        client.subscriptions.add(uri)
        self._subscribers.setdefault(place, {})[client] = uri
        try:
            await self._upstream(place.server, client).wishes.subscribe(place.name)
        except ServerDownError:
            _log.debug("subscribed to %s of a server that is away", place.name)
        return True

    async def unsubscribe(self, client: ConnectedClient, uri: str) -> None:
        """Tell a client no more when a resource changes."""
        client.subscriptions.discard(uri)
        for place in [p for p, who in self._subscribers.items() if who.get(client) == uri]:
            del self._subscribers[place][client]
            if not self._subscribers[place]:
                del self._subscribers[place]
                with suppress(ServerDownError):  # it has been taken out meanwhile
                    await self._upstream(place.server, client).wishes.unsubscribe(place.name)

    def _upstream(self, server: str, client: ConnectedClient) -> McpSource:
        return self._pool.upstream(server, client.key, client.principal.name)

    async def unsubscribe_all(self, client: ConnectedClient) -> None:
        """A client is gone: nothing is told it any more."""
        for uri in list(client.subscriptions):
            try:
                await self.unsubscribe(client, uri)
            except Exception as error:
                _log.debug("could not unsubscribe from %s: %s", uri, error)

    def _updated(self, server: str, uri: str, key: str | None) -> None:
        for client, shown in self._subscribers.get(ResourceRoute(server, uri), {}).items():
            # What one client's own server says is for that client.
            if key is None or client.key == key:
                client.updated(shown)

    # ---- what belongs to no call

    async def _ask(
        self, server: str, method: str, params: Mapping[str, Json], key: str | None
    ) -> dict[str, Json] | None:
        client = self._clients.only(key)
        if client is None or not self._sees(client, server):
            return None
        return await client.ask(method, params)

    def _sees(self, client: ConnectedClient, server: str) -> bool:
        view = self._views.ready(client.principal)
        in_view = view is not None and server in view.servers
        return in_view or self._offers.sees(client.principal, server)

    def _logged(self, server: str, key: str | None, params: Mapping[str, Json]) -> None:
        client = self._clients.only(key)
        if client is not None and self._sees(client, server):
            self._start(client.log(params))

    # ---- what clients want of servers

    def set_level(self, client: ConnectedClient, level: str) -> None:
        """From now on, a client wants log messages of this level on."""
        client.level = level
        mildest = self._clients.mildest_level
        if mildest is not None:
            for upstream in self._pool.all:
                upstream.wishes.set_level(mildest)

    def roots_changed(self, client: ConnectedClient) -> None:
        """A client's folders changed, or became known."""
        for upstream in self._pool.all:
            # Folders of one among several clients are no business of a server that all share.
            if upstream.client == client.key or (
                upstream.client is None and len(self._clients) == 1
            ):
                upstream.wishes.roots_changed()
