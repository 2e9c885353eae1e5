"""The store that a process uses: files of its own, or a PostgreSQL that others use as well."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import NamedTuple

from toolfold.store.files import FileDocuments
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.documents import PostgresDocuments
from toolfold.store.store import Documents

__all__ = ["Store", "open_store"]


class Store(NamedTuple):
    """What outlives a process or is shared."""

    documents: Documents
    """Approvals, tokens, and what servers listed."""

    database: Database | None = None
    """The PostgreSQL that several processes share; None where each has its files."""


def open_store(address: str | None, folder: Path) -> Store:
    """Return a store. A process has one pool of connections for an address.

    Args:
        address: That of a PostgreSQL, as libpq takes it; None for files.
        folder: The folder of the files.

    Raises:
        MissingExtraError: The extra `postgres` is not installed.
        ConfigError: The database is of another version.
        StoreAwayError: It cannot be reached.
    """
    if address is None:
        return Store(FileDocuments(folder))
    database = _database(address)
    return Store(PostgresDocuments(database), database)


@cache
def _database(address: str) -> Database:
    database = Database(address)
    database.check()
    atexit.register(database.close)
    return database
