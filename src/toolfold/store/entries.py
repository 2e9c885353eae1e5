"""Entries of one process, or of one file: bytes under keys, bounded.

Tenants are told apart by their keys; the bounds are for all of them together.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from toolfold.store.store import DEFAULT_TENANT, Entries

__all__ = ["MemoryEntries", "SqliteEntries"]

_ASKED_AT_ONCE = 500
"""How many keys one statement may name: SQLite's bound is 999 where it is old."""


@dataclass(frozen=True, slots=True)
class _TenantEntries:
    """The part of some entries that one tenant sees."""

    entries: MemoryEntries | SqliteEntries
    tenant: str

    def get(self, key: str) -> bytes | None:
        return self.entries.get(self._own(key))

    def get_all(self, keys: Collection[str]) -> Mapping[str, bytes]:
        own = {self._own(key): key for key in keys}
        return {own[key]: value for key, value in self.entries.get_all(own).items()}

    def put(self, key: str, value: bytes) -> None:
        self.entries.put(self._own(key), value)

    def forget(self, key: str) -> None:
        self.entries.forget(self._own(key))

    def of(self, tenant: str) -> Entries:
        return self.entries.of(tenant)

    def _own(self, key: str) -> str:
        # The length is said, so that no other tenant and key give the same.
        return f"{len(self.tenant)}:{self.tenant}:{key}"


class MemoryEntries:
    """Entries that end with the process.

    Args:
        entries: How many entries stay; the one not used for the longest time leaves first.
        room: How many bytes they may have together.
    """

    def __init__(self, entries: int = 100_000, room: int = 32 * 1024 * 1024) -> None:
        self._entries = entries
        self._room = room
        self._kept: dict[str, bytes] = {}
        self._held = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def held(self) -> int:
        """How many bytes are kept."""
        return self._held

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key, or None."""
        with self._lock:
            value = self._kept.pop(key, None)
            if value is not None:
                self._kept[key] = value
            return value

    def get_all(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Return what is kept under some keys, as far as anything is."""
        found = ((key, self.get(key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what was there."""
        if len(value) > self._room:
            return
        with self._lock:
            self._held += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while len(self._kept) > self._entries or self._held > self._room:
                self._held -= len(self._kept.pop(next(iter(self._kept))))

    def forget(self, key: str) -> None:
        """Let go of what is kept under a key."""
        with self._lock:
            self._held -= len(self._kept.pop(key, b""))

    def of(self, tenant: str) -> Entries:
        """Return the entries of a tenant, who sees no others."""
        return self if tenant == DEFAULT_TENANT else _TenantEntries(self, tenant)


class SqliteEntries:
    """Entries in a file, which outlives the process.

    Once it is open, a file that is locked, full or broken loses what it is given and raises
    nothing.

    Args:
        path: The file.
        entries: How many entries stay, or a few more; the oldest leave first.
        room: How many bytes they may have together, or a little more.

    Raises:
        OSError: The file cannot be made.
        sqlite3.Error: It is there and no store, or another process holds it.
    """

    def __init__(self, path: Path, entries: int = 100_000, room: int = 256 * 1024 * 1024) -> None:
        self._path = path
        self._entries = entries
        self._room = room
        self._lock = threading.Lock()
        self._puts = 0
        self._put_bytes = 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Conversations are nobody else's business; what stands beside the file is as open as it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        self._connection = sqlite3.connect(path, check_same_thread=False, timeout=1.0)
        with self._lock, closing(self._connection.cursor()) as cursor:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=NORMAL")
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS history "
                "(key TEXT PRIMARY KEY, value BLOB NOT NULL, at INTEGER NOT NULL)"
            )
            cursor.execute("CREATE INDEX IF NOT EXISTS history_at ON history (at)")
            self._connection.commit()

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key, or None."""
        try:
            with self._lock, closing(self._connection.cursor()) as cursor:
                row = cursor.execute("SELECT value FROM history WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None else bytes(row[0])

    def get_all(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Return what is kept under some keys, as far as anything is."""
        found: dict[str, bytes] = {}
        try:
            with self._lock, closing(self._connection.cursor()) as cursor:
                for some in _parts(list(keys)):
                    marks = ", ".join("?" * len(some))
                    statement = f"SELECT key, value FROM history WHERE key IN ({marks})"
                    found.update((k, bytes(v)) for k, v in cursor.execute(statement, some))
        except sqlite3.Error:
            return found
        return found

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what was there."""
        if len(value) > self._room:
            return
        try:
            with self._lock, closing(self._connection.cursor()) as cursor:
                cursor.execute(
                    "INSERT OR REPLACE INTO history (key, value, at) VALUES "
                    "(?, ?, (SELECT COALESCE(MAX(at), 0) + 1 FROM history))",
                    (key, value),
                )
                self._prune(cursor, len(value))
                self._connection.commit()
        except sqlite3.Error:
            return

    def forget(self, key: str) -> None:
        """Let go of what is kept under a key."""
        try:
            with self._lock, closing(self._connection.cursor()) as cursor:
                cursor.execute("DELETE FROM history WHERE key = ?", (key,))
                self._connection.commit()
        except sqlite3.Error:
            return

    def of(self, tenant: str) -> Entries:
        """Return the entries of a tenant, who sees no others."""
        return self if tenant == DEFAULT_TENANT else _TenantEntries(self, tenant)

    def _prune(self, cursor: sqlite3.Cursor, added: int) -> None:
        """Take the oldest out, now and then."""
        is_first = self._puts == 0
        self._puts += 1
        self._put_bytes += added
        if not is_first and self._puts % 256 and self._put_bytes < self._room // 16:
            return
        self._put_bytes = 0
        cursor.execute(
            "DELETE FROM history WHERE at <= (SELECT MAX(at) FROM history) - ?", (self._entries,)
        )
        while (used := self._used(cursor)) > self._room:
            (count,) = cursor.execute("SELECT COUNT(*) FROM history").fetchone()
            # As many of the oldest as would leave a tenth of the room, were all of one size.
            gone = int(count * (1 - 0.9 * self._room / used))
            cursor.execute(
                "DELETE FROM history WHERE at <= "
                "(SELECT at FROM history ORDER BY at LIMIT 1 OFFSET ?)",
                (gone,),
            )
            if gone + 1 >= count:
                return

    def _used(self, cursor: sqlite3.Cursor) -> int:
        """Return how many bytes of the file are in use, without reading them."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        return (pages - free) * size

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def _parts(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _ASKED_AT_ONCE):
        yield keys[start : start + _ASKED_AT_ONCE]
