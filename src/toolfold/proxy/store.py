"""What the proxy remembers between the requests of a conversation, bounded.

A store maps keys to bytes. It may lose anything at any time: whoever asks does without.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Protocol

__all__ = ["HistoryStore", "MemoryStore", "SqliteStore"]


class HistoryStore(Protocol):
    """Keeps bytes under keys. Safe to share between threads; never raises for what is lost."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key, or None."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what was there."""
        ...


class MemoryStore:
    """A store that ends with the process.

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

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what was there."""
        if len(value) > self._room:
            return
        with self._lock:
            self._held += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while len(self._kept) > self._entries or self._held > self._room:
                self._held -= len(self._kept.pop(next(iter(self._kept))))


class SqliteStore:
    """A store in a file, which outlives the process.

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
