"""The file that a memory is kept in: SQLite, for its owner alone.

A file that cannot be opened, is not ours or is damaged is said once and done without: what is
learnt then lasts as long as the process. What is deleted is overwritten, in the file and in
what stands beside it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolfold._json_values import compact, parse
from toolfold.errors import ToolfoldError

__all__ = ["DAMAGED", "KeptRequest", "MemoryFile", "Ranked", "StoreError", "ToolKey"]

_log = logging.getLogger(__name__)

ToolKey = tuple[str, str]
"""A tool's name and its digest."""

Ranked = tuple[tuple[ToolKey, float], ...]
"""How a search without memory ranked tools: the logarithms of their shares of the belief."""

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


class StoreError(ToolfoldError):
    """The file could not be read or written; what it held is as it was."""


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """One request that is kept, and what it led to."""

    id: int
    seq: int
    principal: str
    text: str
    at: float
    vector: bytes
    ranked: Ranked
    uses: tuple[tuple[ToolKey, int, int], ...]
    """The tools, and how often each worked and did not; the newest first."""


class MemoryFile:
    """A file of what searches led to. Safe to share between threads and processes.

    Args:
        path: The file; None keeps everything in this process.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self.path = path
        self.problem = ""
        """Why the file is not used, if it is not."""
        if path is not None:
            try:
                self._connection = _opened(path)
                # Who reads does not wait for who writes, in this process or another.
                self._reader = _connected(str(path))
            except (OSError, sqlite3.Error, StoreError) as error:
                self._do_without(path, error)
            else:
                return
        self._connection = self._reader = _connected(":memory:")
        self._reading = self._lock

    @property
    def is_lasting(self) -> bool:
        """Whether what is kept outlives the process."""
        return self.path is not None and not self.problem

    def _do_without(self, path: Path, error: Exception) -> None:
        self.problem = str(error)
        _log.warning(
            "what searches lead to cannot be kept in %s (%s): it is remembered until this "
            "process ends; give another `memory.path`, or set `memory.enabled` to off",
            path,
            error,
        )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
        with self._reading:
            self._reader.close()

    # ---- reading

    def changes(self) -> tuple[int, int, int]:
        """Return what deletions raise, what new and changed requests raise, and what pairs do."""
        rows = dict(self._rows("SELECT key, value FROM meta"))
        return int(rows["generation"]), int(rows["seq"]), int(rows["pairs"])

    def writes(self) -> int:
        """Return a number that changes when anybody has written."""
        if self._reader is self._connection:
            return self._connection.total_changes
        return int(self._rows("PRAGMA data_version")[0][0])

    def requests(self, *, after: int = 0) -> Iterator[KeptRequest]:
        """Yield the requests that were kept or changed after a sequence number, in that order."""
        names = self.tools()
        rows = self._rows(
            "SELECT id, seq, principal, text, at, vector, ranked FROM requests "
            "WHERE seq > ? ORDER BY seq",
            (after,),
        )
        used: dict[int, list[tuple[ToolKey, int, int]]] = {}
        for request, tool, worked, failed in self._rows(
            "SELECT request, tool, worked, failed FROM uses "
            "WHERE request IN (SELECT id FROM requests WHERE seq > ?) ORDER BY at DESC, tool",
            (after,),
        ):
            if tool in names:
                used.setdefault(request, []).append((names[tool], worked, failed))
        for id_, seq, principal, text, at, vector, ranked in rows:
            uses = tuple(used.get(id_, ()))
            yield KeptRequest(
                id_, seq, principal, text, at, bytes(vector), _read_ranked(ranked, names), uses
            )

    def tools(self) -> Mapping[int, ToolKey]:
        """Return the tools that anything is kept of."""
        return {id_: (name, digest) for id_, name, digest in self._rows(_TOOLS)}

    def text(self, request: int) -> str | None:
        """Return the text of a request."""
        rows = self._rows("SELECT text FROM requests WHERE id = ?", (request,))
        return str(rows[0][0]) if rows else None

    def ranked(self, requests: Sequence[int]) -> dict[int, Ranked]:
        """Return how search ranked tools for requests, by their ids."""
        names = self.tools()
        marks = ", ".join("?" * len(requests))
        rows = self._rows(f"SELECT id, ranked FROM requests WHERE id IN ({marks})", requests)
        return {id_: _read_ranked(text, names) for id_, text in rows}

    def pairs(self) -> Sequence[tuple[str, ToolKey, ToolKey, int]]:
        """Return which tools were used in one task, for whom, and how often."""
        names = self.tools()
        return [
            (principal, names[tool], names[other], times)
            for principal, tool, other, times in self._rows(
                "SELECT principal, tool, other, times FROM pairs ORDER BY principal, tool, other"
            )
            if tool in names and other in names
        ]

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._reading, closing(self._reader.cursor()) as cursor:
                return cursor.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the memory cannot be read: {error}") from None

    # ---- writing

    def put(
        self,
        principal: str,
        text: str,
        vector: bytes,
        ranked: Ranked | None,
        uses: Iterable[tuple[ToolKey, int, int]],
        at: float,
    ) -> int:
        """Keep that a request led to tools; what was kept of it is added to.

        Args:
            principal: Whose request it was.
            text: The request, redacted.
            vector: Its vector.
            ranked: How search ranked tools for it; None keeps what is known of that.
            uses: Tools, and how often each worked and did not.
            at: When.
        """
        with self._writing() as cursor:
            seq = _next(cursor)
            places = None if ranked is None else _written_ranked(cursor, ranked)
            row = cursor.execute(
                "INSERT INTO requests (seq, principal, text, at, vector, ranked) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (principal, text) DO UPDATE SET "
                "seq = excluded.seq, at = max(at, excluded.at), vector = excluded.vector, "
                "ranked = CASE WHEN ? THEN excluded.ranked ELSE ranked END RETURNING id",
                (seq, principal, text, at, vector, places or "[]", places is not None),
            ).fetchone()
            for key, worked, failed in uses:
                tool = _tool(cursor, key)
                cursor.execute(
                    "INSERT INTO uses VALUES (?, ?, ?, ?, ?) ON CONFLICT (request, tool) "
                    "DO UPDATE SET worked = min(worked + excluded.worked, 1000000000), "
                    "failed = min(failed + excluded.failed, 1000000000), "
                    "at = max(at, excluded.at)",
                    (row[0], tool, worked, failed, at),
                )
            return int(row[0])

    def pair(self, principal: str, one: ToolKey, other: ToolKey, times: int, at: float) -> None:
        """Keep that two tools were used in one task."""
        with self._writing() as cursor:
            _next(cursor, "pairs")
            first, second = _tool(cursor, one), _tool(cursor, other)
            for tool, beside in ((first, second), (second, first)):
                cursor.execute(
                    "INSERT INTO pairs VALUES (?, ?, ?, ?, ?) ON CONFLICT "
                    "(principal, tool, other) DO UPDATE SET "
                    "times = min(times + excluded.times, 1000000000), at = max(at, excluded.at)",
                    (principal, tool, beside, times, at),
                )

    def seen(self, tools: Iterable[ToolKey], at: float) -> None:
        """Keep that tools are still there, so that they are not taken for gone."""
        with self._writing() as cursor:
            cursor.executemany(
                "UPDATE tools SET seen = ? WHERE name = ? AND digest = ? AND seen < ?",
                [(at, name, digest, at) for name, digest in tools],
            )

    def renew_vectors(self, version: str, made: Callable[[str], bytes]) -> None:
        """Make the vectors anew where another table made them.

        Args:
            version: Names the table.
            made: Returns the vector of a text.
        """
        mark = zlib.crc32(version.encode())
        if dict(self._rows("SELECT key, value FROM meta")).get("table") == mark:
            return
        rows = self._rows("SELECT id, text FROM requests")
        with self._writing() as cursor:
            cursor.executemany(
                "UPDATE requests SET vector = ? WHERE id = ?",
                [(made(text), id_) for id_, text in rows],
            )
            cursor.execute("INSERT OR REPLACE INTO meta VALUES ('table', ?)", (mark,))

    # ---- forgetting

    def forget(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Delete uses, and what leads nowhere without them; return how many uses went.

        Args:
            statement: A condition, as `t.name = ?`; `u`, `r` and `t` are the tables.
            values: What stands for its question marks.
        """
        with self._writing() as cursor:
            cursor.execute(
                "DELETE FROM uses WHERE (request, tool) IN (SELECT u.request, u.tool FROM uses u "
                "JOIN requests r ON r.id = u.request JOIN tools t ON t.id = u.tool "
                f"WHERE {statement})",
                values,
            )
            gone = cursor.rowcount
            if gone:
                _tidy(cursor)
        if gone:
            self._scrub()
        return gone

    def forget_tools(self, condition: str, values: Sequence[Any] = ()) -> int:
        """Delete all that is kept of the tools that a condition over `tools` names."""
        with self._writing() as cursor:
            tools = [
                row[0] for row in cursor.execute(f"SELECT id FROM tools WHERE {condition}", values)
            ]
            for tool in tools:
                cursor.execute("DELETE FROM uses WHERE tool = ?", (tool,))
                cursor.execute("DELETE FROM pairs WHERE tool = ? OR other = ?", (tool, tool))
                cursor.execute("DELETE FROM tools WHERE id = ?", (tool,))
            if tools:
                _tidy(cursor)
        if tools:
            self._scrub()
        return len(tools)

    def forget_pairs(self, condition: str, values: Sequence[Any] = ()) -> int:
        """Delete what a condition over `pairs` names, and tools of which nothing is kept then."""
        with self._writing() as cursor:
            cursor.execute(f"DELETE FROM pairs WHERE {condition}", values)
            gone = cursor.rowcount
            if gone:
                _tidy(cursor)
        if gone:
            self._scrub()
        return gone

    def forget_oldest(self, bound: int) -> int:
        """Delete the oldest requests beyond a bound, and a few more, so that it is seldom done."""
        ((count,),) = self._rows("SELECT count(*) FROM requests")
        if count <= bound:
            return 0
        leave = count - bound + bound // 20
        return self.forget("r.id IN (SELECT id FROM requests ORDER BY at, id LIMIT ?)", (leave,))

    def clear(self) -> int:
        """Delete everything; return how many uses went."""
        with self._writing() as cursor:
            ((gone,),) = cursor.execute("SELECT count(*) FROM uses").fetchall()
            for table in ("uses", "pairs", "requests", "tools"):
                cursor.execute(f"DELETE FROM {table}")
            _next(cursor, "generation")
            _next(cursor, "pairs")
        self._scrub(whole=True)
        if self.path is not None:
            with suppress(OSError):
                self.path.with_name(self.path.name + DAMAGED).unlink()
        return int(gone)

    def scrub(self) -> None:
        """Leave nothing of what was deleted in the file, nor in what stands beside it."""
        self._scrub(whole=True)

    def _scrub(self, *, whole: bool = False) -> None:
        """Overwrite what deletions left: pages are zeroed as they are freed, the log is emptied."""
        try:
            with self._lock, closing(self._connection.cursor()) as cursor:
                if whole:
                    cursor.execute("VACUUM")
                ((is_busy, *_),) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the memory cannot be emptied: {error}") from None
        if is_busy and whole:
            what = "what was forgotten is still in the file: another process reads it"
            raise StoreError(what, hint="do it again when that has ended")

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Cursor]:
        """One transaction: kept whole, or not at all."""
        with self._lock:
            try:
                with closing(self._connection.cursor()) as cursor:
                    cursor.execute("BEGIN IMMEDIATE")
                    try:
                        yield cursor
                        cursor.execute("COMMIT")
                    except BaseException:
                        with suppress(sqlite3.Error):
                            cursor.execute("ROLLBACK")
                        raise
            except sqlite3.Error as error:
                raise StoreError(f"the memory cannot be written: {error}") from None


_TOOLS = "SELECT id, name, digest FROM tools"


def _next(cursor: sqlite3.Cursor, key: str = "seq") -> int:
    row = cursor.execute(
        "UPDATE meta SET value = value + 1 WHERE key = ? RETURNING value", (key,)
    ).fetchone()
    return int(row[0])


def _tool(cursor: sqlite3.Cursor, key: ToolKey) -> int:
    # What is told of a tool now, be it old, is no reason to take it for gone.
    row = cursor.execute(
        "INSERT INTO tools (name, digest, seen) VALUES (?, ?, ?) ON CONFLICT (name, digest) "
        "DO UPDATE SET seen = max(seen, excluded.seen) RETURNING id",
        (*key, time.time()),
    ).fetchone()
    return int(row[0])


def _tidy(cursor: sqlite3.Cursor) -> None:
    """Delete requests that lead nowhere any more, and tools of which nothing is kept."""
    cursor.execute("DELETE FROM requests WHERE id NOT IN (SELECT request FROM uses)")
    # What a search ranked beside the tool that was used is a number there, and no name.
    cursor.execute(
        "DELETE FROM tools WHERE id NOT IN (SELECT tool FROM uses) AND id NOT IN "
        "(SELECT tool FROM pairs) AND id NOT IN "
        "(SELECT json_extract(j.value, '$[0]') FROM requests, json_each(requests.ranked) j)"
    )
    _next(cursor, "generation")
    _next(cursor, "pairs")


def _written_ranked(cursor: sqlite3.Cursor, ranked: Ranked) -> str:
    return compact([[_tool(cursor, key), round(value, 3)] for key, value in ranked])


def _read_ranked(text: str, names: Mapping[int, ToolKey]) -> Ranked:
    try:
        return tuple((names[tool], float(value)) for tool, value in parse(text) if tool in names)
    except (ValueError, TypeError):
        return ()


def _opened(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that is ours; one that is damaged is put aside."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(path)
    try:
        return _connected(str(path))
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
        return _connected(str(path))


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


def _connected(place: str) -> sqlite3.Connection:
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
