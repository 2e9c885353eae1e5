"""What others changed, as PostgreSQL announces it.

One connection listens, in a thread of its own. After it was lost something may have been missed:
whoever listens is told then that anything may have changed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from toolfold.errors import ConfigError
from toolfold.store.postgres import migrations
from toolfold.store.postgres.database import Database
from toolfold.store.store import StoreAwayError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["News", "NewsListener"]

_log = logging.getLogger(__name__)

LOOKS = 0.2
"""How often it is seen whether to stop, in seconds."""

PAUSE = 0.5
"""How long is waited before a lost connection is made again, in seconds."""

NewsListener = Callable[[str | None], None]
"""Told what was announced; None where anything may have been missed. It is called in the thread
of the news, and must not wait."""


class News:
    """Listens on some channels. Open it with `with`.

    Args:
        database: Where.
        listeners: Who is told, by channel.
    """

    def __init__(self, database: Database, listeners: dict[str, NewsListener]) -> None:
        self._database = database
        self._listeners = dict(listeners)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolfold-news", daemon=True)
        self.is_listening = threading.Event()
        """Set while announcements come in."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(5)

    def _run(self) -> None:
        was_told = False
        while not self._stopping.is_set():
            try:
                with self._database.alone() as connection:
                    migrations.check(connection)
                    if was_told:
                        _log.info("the database is back")
                    was_told = False
                    self._listen(connection)
            except (StoreAwayError, ConfigError) as error:
                if not was_told and not self._stopping.is_set():
                    was_told = True
                    _log.warning("%s; what is known goes on until it is back", error)
            finally:
                self.is_listening.clear()
            self._stopping.wait(PAUSE)

    def _listen(self, connection: Connection[Any]) -> None:
        from psycopg import sql

        for channel in self._listeners:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        self.is_listening.set()
        for listener in self._listeners.values():
            self._tell(listener, None)
        while not self._stopping.is_set():
            for notice in connection.notifies(timeout=LOOKS):
                with suppress(KeyError):
                    self._tell(self._listeners[notice.channel], notice.payload)

    def _tell(self, listener: NewsListener, payload: str | None) -> None:
        try:
            listener(payload)
        except Exception:
            _log.exception("an announcement could not be taken up")
