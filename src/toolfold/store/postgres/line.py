"""A connection of one's own, on which every statement is a transaction by itself.

A process that is paused at whatever moment holds no row that others need: between two
statements there is no transaction. It waits for no pool, and is asked by one thread at a time.
"""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING, Any, LiteralString

from toolfold.store.postgres.database import Database

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Line"]

STATEMENT_TIMEOUT = 2.0
"""How long one statement may take, in seconds."""


class Line:
    """A connection, made when it is first asked for something, and anew after it was lost.

    Args:
        database: Where to, and in whose name.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stack = ExitStack()
        self._connection: Connection[Any] | None = None
        self._asking = Lock()

    def ask(self, statement: LiteralString, values: dict[str, Any]) -> tuple[Any, ...] | None:
        """Run a statement and return its first row, if any; `tenant` is given to it.

        Raises:
            StoreAwayError: The database is away, or did not answer in time.
        """
        import psycopg

        with self._asking:
            try:
                connection = self._opened()
                found = connection.execute(statement, {"tenant": self._database.tenant, **values})
                return found.fetchone() if found.description is not None else None
            except psycopg.Error:
                self._connection = None
                with self._stack.pop_all():  # closed; what is raised says why, as everywhere
                    raise

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        with self._asking:
            self._connection = None
            self._stack.pop_all().close()

    def _opened(self) -> Connection[Any]:
        if self._connection is None:
            connection = self._stack.enter_context(self._database.alone())
            connection.execute(
                "select set_config('toolfold.tenant', %s, false),"
                " set_config('statement_timeout', %s, false)",
                (self._database.tenant, f"{STATEMENT_TIMEOUT * 1000:.0f}"),
            )
            self._connection = connection
        return self._connection
