"""A memory's file, opened: ours, whole and for its owner alone, or put aside or refused."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

from toolfold.memory._kept import StoreError

__all__ = ["DAMAGED", "connected", "opened"]

_log = logging.getLogger(__name__)

DAMAGED = ".damaged"
"""What is put behind the name of a file that cannot be read."""

BUSY = 2.0
"""Seconds that another process may hold the file."""

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tools (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, digest TEXT NOT NULL,
    seen REAL NOT NULL,
    UNIQUE (name, digest)
);
CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, principal TEXT NOT NULL, text TEXT NOT NULL,
    at REAL NOT NULL, vector BLOB NOT NULL, ranked TEXT NOT NULL, UNIQUE (principal, text)
);
CREATE INDEX IF NOT EXISTS requests_seq ON requests (seq);
CREATE INDEX IF NOT EXISTS requests_at ON requests (at);
CREATE TABLE IF NOT EXISTS uses (
    request INTEGER NOT NULL, tool INTEGER NOT NULL, worked INTEGER NOT NULL,
    failed INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (request, tool)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uses_tool ON uses (tool);
CREATE TABLE IF NOT EXISTS pairs (
    principal TEXT NOT NULL, tool INTEGER NOT NULL, other INTEGER NOT NULL,
    times INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (principal, tool, other)
) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('version', 1), ('generation', 0), ('seq', 0),
    ('pairs', 0);
"""


def opened(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that is ours; one that is damaged is put aside."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(path)
    try:
        return connected(str(path))
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        aside = path.with_name(path.name + DAMAGED)
        path.replace(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(OSError):
                path.with_name(path.name + suffix).unlink()
        _log.warning(
            "the memory in %s is damaged (%s): it was put aside as %s, and a new one begins",
            path,
            error,
            aside.name,
        )
        _check(path)
        return connected(str(path))


def _check(path: Path) -> None:
    """Make the file, or refuse one that somebody else chose."""
    folder = path.parent.stat()
    if os.name == "posix" and folder.st_mode & stat.S_IWOTH and folder.st_uid != os.geteuid():
        raise StoreError("others may write to its folder")
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError("it is no file")
        if os.name == "posix":
            if found.st_uid != os.geteuid():
                raise StoreError("it belongs to somebody else")
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def connected(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(place, timeout=BUSY, check_same_thread=False, isolation_level=None)
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute("PRAGMA secure_delete = ON")
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = NORMAL")
            cursor.execute("PRAGMA trusted_schema = OFF")
            cursor.executescript(_SCHEMA)
            ((version,),) = cursor.execute(
                "SELECT value FROM meta WHERE key = 'version'"
            ).fetchall()
            # A file that was cut off is found out here, and not in the midst of a search.
            cursor.execute("SELECT count(*), max(length(vector)) FROM requests").fetchall()
        if version > _VERSION:
            raise StoreError("a newer release of toolfold wrote it")
    except BaseException:
        connection.close()
        raise
    return connection
