"""Being one replica of several: hearing what the others decide, and being heard.

Approvals and tokens are read again as soon as another replica, or a person at a command line,
has changed them. Where nothing is shared there is no membership.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from os import getpid

from toolfold.store.postgres import documents, replicas
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.documents import PostgresDocuments
from toolfold.store.postgres.news import News, NewsListener
from toolfold.store.postgres.replicas import Replicas

__all__ = ["Membership"]

_log = logging.getLogger(__name__)

SECRET = "conversations.key"
"""The document with what conversations' cookies are signed with."""


class Membership:
    """This replica, and what it hears.

    Args:
        database: What the replicas share.
        name: What people call this one.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.replicas = Replicas(database, name)
        self._listeners: dict[str, NewsListener] = {
            documents.CHANNEL: self._document_changed,
            replicas.CHANNEL: self.replicas.mail_has_come,
        }
        self._watchers: dict[str, Callable[[], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def of(cls, database: Database) -> Membership:
        """Return the membership of a process."""
        return cls(database, f"{socket.gethostname()}:{getpid()}")

    def secret(self) -> bytes:
        """Return what all replicas sign with; the first makes it.

        Raises:
            StoreAwayError: It is not known, and cannot be asked for.
        """
        shared = PostgresDocuments(self.database)
        shared.update(SECRET, lambda old: None if old else secrets.token_bytes(32))
        found = shared.read(SECRET)
        assert found
        return found

    def on_document(self, name: str, changed: Callable[[], None]) -> None:
        """Have something done, in the event loop, when a document may have changed."""
        self._watchers[name] = changed

    def on_channel(self, channel: str, listener: NewsListener) -> None:
        """Listen on another channel of the database; to be said before it is opened."""
        self._listeners[channel] = listener

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Membership]:
        """Be there, and listen, as long as the block lasts."""
        self._loop = asyncio.get_running_loop()
        if not await asyncio.to_thread(self.database.is_guarded):
            _log.warning(
                "row-level security does not bind the role that the database is used as: give "
                "the gateway one that owns nothing (`toolfold store migrate --role NAME`)"
            )
        async with self.replicas:
            news = News(self.database, self._listeners)
            with news:
                yield self

    def _document_changed(self, name: str | None) -> None:
        assert self._loop is not None
        for watched, changed in list(self._watchers.items()):
            if name in (None, watched):
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(changed)
