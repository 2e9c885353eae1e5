"""What a client of a session wants to be told, at every replica that holds the session.

From which level on it wants log messages, and of which resources it wants to know when they
change: it says so once, at one replica, and listens at one, perhaps another.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from toolfold._json_values import compact_bytes, parse
from toolfold.store.postgres.client_sessions import ClientSessions
from toolfold.store.store import StoreAwayError
from toolfold.tool import is_object

if TYPE_CHECKING:
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.mcp.connected_clients import ConnectedClient
    from toolfold.serve.replica.session_mail import SessionMail

__all__ = ["SessionWishes"]

_log = logging.getLogger(__name__)

LARGEST = 256 * 1024
"""How many bytes the wishes of one client may have."""


class SessionWishes:
    """The wishes of clients, kept for all replicas.

    Args:
        gateway: The gateway.
        rows: The sessions that there are.
        mail: How others are told.
    """

    def __init__(self, gateway: Gateway, rows: ClientSessions, mail: SessionMail) -> None:
        self._gateway = gateway
        self._rows = rows
        self._mail = mail

    async def keep(self, client: ConnectedClient) -> bytes:
        """Keep what a client has wished for, and have the others take it up."""
        wishes = compact_bytes({"level": client.level, "resources": sorted(client.subscriptions)})
        if len(wishes) > LARGEST:
            _log.warning("what a client wants to be told is too much to be kept for others")
            return wishes
        try:
            await asyncio.to_thread(self._rows.wish, client.key, wishes)
        except StoreAwayError as error:
            _log.warning("what a client wants to be told is known here alone: %s", error)
        else:
            self._mail.wishes_changed(client.key)
        return wishes

    async def joined(self, client: ConnectedClient, known: bytes | None) -> None:
        """Have a client that is new here be told what it wished for elsewhere, just now perhaps.

        Args:
            client: The client.
            known: What is known here of that, while the database is away.
        """
        wishes = known
        with suppress(StoreAwayError):
            wishes = await asyncio.to_thread(self._rows.wishes, client.key) or known
        if wishes is not None:
            await self.apply(client, wishes)

    async def changed(self, session: str) -> None:
        """Take up what was wished for elsewhere."""
        clients = [client for client in self._gateway.clients if client.key == session]
        if not clients:
            return
        with suppress(StoreAwayError):
            wishes = await asyncio.to_thread(self._rows.wishes, session)
            for client in clients:
                if wishes is not None:
                    await self.apply(client, wishes)

    async def apply(self, client: ConnectedClient, wishes: bytes) -> None:
        """Have a client be told what it wished for."""
        wanted = parse(wishes)
        if not is_object(wanted):
            return
        if wanted["level"] is not None and wanted["level"] != client.level:
            self._gateway.news.set_level(client, wanted["level"])
        resources = set(wanted["resources"])
        for uri in resources - client.subscriptions:
            await self._gateway.news.subscribe(client, uri)
        for uri in client.subscriptions - resources:
            await self._gateway.news.unsubscribe(client, uri)
