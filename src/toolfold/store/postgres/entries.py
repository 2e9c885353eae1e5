"""Entries as rows: what one replica kept, any other has, bounded for each tenant.

A database that is away loses what is put meanwhile for all others; what this process put or read
lately is answered from its own memory then.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolfold.store.entries import MemoryEntries
from toolfold.store.postgres.database import Database
from toolfold.store.store import Entries, Rewrite, StoreAwayError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["SESSIONS", "TURNS", "EntryKind", "PostgresEntries", "VersionedEntry"]

_log = logging.getLogger(__name__)

_DAY = 86_400
_MEBIBYTE = 1024 * 1024
_OVERHEAD = 128
"""What an entry takes beside its value, roughly."""

_KNOWN = 16 * _MEBIBYTE
_PRUNE_EVERY = 512
_SWEEP_EVERY = 3_600.0
"""How often what is too old is taken out for all tenants, in seconds."""

_VERSION = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
"""Rises with time, so that an entry that was lost and is kept anew has another."""

T = TypeVar("T")


class EntryKind(NamedTuple):
    """What sort of entries they are, and how many of them a tenant may have."""

    name: str
    age: float
    """For how many seconds one is kept that nobody asks for."""

    room: int
    """How many bytes they may have together."""

    number: int = 100_000
    """How many there may be; those not used for the longest time leave first."""


TURNS = EntryKind("turns", 30 * _DAY, 256 * _MEBIBYTE)
"""The hidden turns of conversations through the proxy."""

SESSIONS = EntryKind("sessions", 2 * _DAY, 256 * _MEBIBYTE)
"""What a gateway's conversations have done so far."""


class VersionedEntry(NamedTuple):
    """An entry, and the number of its version."""

    version: int
    value: bytes | None
    """None where it is the version that was known."""


class _Away:
    """Says once that the database is away, and once that it is back."""

    def __init__(self) -> None:
        self._is_away = False

    def __call__(self, error: StoreAwayError | None) -> None:
        if error is not None and not self._is_away:
            _log.warning("%s; conversations go on with what this process knows of them", error)
        self._is_away = error is not None


class _Puts:
    """Says when it is time to look for what is too old or too much."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter()
        self._swept = -_SWEEP_EVERY

    def is_turn(self, tenant: str) -> bool:
        """Count what a tenant puts; say whether its entries should be looked through."""
        with self._lock:
            self._numbers[tenant] += 1
            return self._numbers[tenant] % _PRUNE_EVERY == 1

    def is_time(self) -> bool:
        """Say whether those of all tenants should be."""
        with self._lock:
            is_so = time.monotonic() >= self._swept + _SWEEP_EVERY
            self._swept = time.monotonic() if is_so else self._swept
            return is_so


class PostgresEntries:
    """Entries of one kind. `of` gives those of another tenant, with the same bounds.

    Args:
        database: Where they are.
        kind: What they are.
    """

    def __init__(self, database: Database, kind: EntryKind) -> None:
        self.kind = kind
        self.tenant = database.tenant
        self._database = database
        self._tell = _Away()
        self._all_known = MemoryEntries(room=_KNOWN)
        self._known: Entries = self._all_known.of(self.tenant)
        self._puts = _Puts()

    def of(self, tenant: str) -> PostgresEntries:
        """Return the entries of a tenant, who sees no others."""
        if tenant == self.tenant:
            return self
        other = PostgresEntries(self._database, self.kind)
        other.tenant = tenant
        other._tell, other._puts = self._tell, self._puts
        other._all_known, other._known = self._all_known, self._all_known.of(tenant)
        return other

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key, or None."""
        return self.get_all((key,)).get(key)

    def get_all(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Return what is kept under some keys, as far as anything is."""
        if not keys:
            return {}
        found = self._tried(lambda: self._read(list(keys)))
        if found is None:
            return self._known.get_all(keys)
        for key, value in found.items():
            self._known.put(key, value)
        return found

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what was there."""
        if len(value) + _OVERHEAD > self.kind.room:
            return
        self._known.put(key, value)
        if self._tried(lambda: self._write(key, value)):
            self._prune_soon()

    def forget(self, key: str) -> None:
        """Let go of what is kept under a key."""
        self._known.forget(key)
        self._tried(lambda: self._delete(key))

    def newer(self, key: str, version: int = 0) -> VersionedEntry | None:
        """Return an entry, without its value where it is of a version; None where there is none.

        Raises:
            StoreAwayError: The database is away, or does not take such a key.
        """
        with self._asking() as connection:
            row = connection.execute(
                "select version, case when version <> %s then value end,"
                " used < now() - interval '1 hour' from toolfold.entries"
                " where tenant = %s and kind = %s and key = %s",
                (version, self.tenant, self.kind.name, key),
            ).fetchone()
            if row is not None and row[2]:
                self._touch(connection, [key])
        if row is None:
            return None
        return VersionedEntry(row[0], None if row[1] is None else bytes(row[1]))

    def update(self, key: str, change: Rewrite) -> VersionedEntry | None:
        """Replace an entry by what `change` makes of it, while nobody else does.

        Return it as it is then; None where there was none and `change` made none.

        Raises:
            StoreAwayError: The database is away, or does not take it.
        """
        place = (self.tenant, self.kind.name, key)
        with self._asking() as connection:
            # Whoever makes one is waited for, as whoever changes it is.
            connection.execute(
                "select pg_advisory_xact_lock(hashtextextended(%s, 7366))", ("\x1f".join(place),)
            )
            row = connection.execute(
                "select version, value from toolfold.entries"
                " where tenant = %s and kind = %s and key = %s",
                place,
            ).fetchone()
            old = None if row is None else bytes(row[1])
            new = change(old)
            if new is None:
                return None if row is None else VersionedEntry(row[0], old)
            written = connection.execute(_PUT, (*place, new)).fetchone()
            assert written is not None
        self._prune_soon()
        return VersionedEntry(written[0], new)

    def prune(self) -> int:
        """Take out what is too old or too much; return how many entries that were.

        Raises:
            StoreAwayError: The database is away.
        """
        place = (self.tenant, self.kind.name)
        with self._database.transaction(tenant=self.tenant) as connection:
            return connection.execute(
                "delete from toolfold.entries e using ("
                " select key, used, row_number() over newest as place,"
                " sum(octet_length(value) + %s) over newest as total from toolfold.entries"
                " where tenant = %s and kind = %s"
                " window newest as (order by used desc, key rows unbounded preceding)) o"
                " where e.tenant = %s and e.kind = %s and e.key = o.key and e.used = o.used"
                " and (o.place > %s or o.total > %s or o.used < now() - %s * interval '1 second')",
                (_OVERHEAD, *place, *place, self.kind.number, self.kind.room, self.kind.age),
            ).rowcount

    def sweep(self) -> int:
        """Take out what is too old or too much for all tenants, those that never come again too.

        Raises:
            StoreAwayError: The database is away.
        """
        return sum(self.of(tenant).prune() for tenant in self._database.tenants())

    # ---- in the database

    @contextmanager
    def _asking(self) -> Generator[Connection[Any]]:
        from psycopg import Error

        try:
            with self._database.transaction(tenant=self.tenant) as connection:
                yield connection
        except (Error, UnicodeError) as error:
            raise StoreAwayError(f"the database refuses: {type(error).__name__}") from None

    def _read(self, keys: list[str]) -> dict[str, bytes]:
        with self._database.transaction(tenant=self.tenant) as connection:
            rows = connection.execute(
                "select key, value, used < now() - interval '1 hour' from toolfold.entries"
                " where tenant = %s and kind = %s and key = any(%s)",
                (self.tenant, self.kind.name, keys),
            ).fetchall()
            if stale := [row[0] for row in rows if row[2]]:
                self._touch(connection, stale)
        return {row[0]: bytes(row[1]) for row in rows}

    def _touch(self, connection: Connection[Any], keys: list[str]) -> None:
        """Note that entries are in use; those that others hold just now are left out."""
        connection.execute(
            "update toolfold.entries set used = now() where (tenant, kind, key) in ("
            " select tenant, kind, key from toolfold.entries"
            " where tenant = %s and kind = %s and key = any(%s) for update skip locked)",
            (self.tenant, self.kind.name, keys),
        )

    def _write(self, key: str, value: bytes) -> bool:
        with self._database.transaction(tenant=self.tenant) as connection:
            connection.execute(_PUT, (self.tenant, self.kind.name, key, value))
        return True

    def _delete(self, key: str) -> None:
        with self._database.transaction(tenant=self.tenant) as connection:
            connection.execute(
                "delete from toolfold.entries where tenant = %s and kind = %s and key = %s",
                (self.tenant, self.kind.name, key),
            )

    def _tried(self, work: Callable[[], T]) -> T | None:
        """Do something in the database; None where it is away, or cannot hold such a thing."""
        from psycopg import Error

        try:
            done = work()
        except StoreAwayError as error:
            self._tell(error)
            return None
        except (Error, UnicodeError) as error:
            _log.debug("an entry is passed over: %r", error)
            return None
        self._tell(None)
        return done

    def _prune_soon(self) -> None:
        """Take out what is too much, now and then, beside whoever puts."""
        is_turn, is_time = self._puts.is_turn(self.tenant), self._puts.is_time()
        if not (is_turn or is_time):
            return
        work = self.sweep if is_time else self.prune
        thread = threading.Thread(
            target=lambda: self._tried(work), name="toolfold-prune", daemon=True
        )
        thread.start()


_PUT = (
    "insert into toolfold.entries (tenant, kind, key, version, value)"
    f" values (%s, %s, %s, {_VERSION}, %s) on conflict (tenant, kind, key) do update"
    f" set version = greatest(entries.version + 1, {_VERSION}),"
    " value = excluded.value, used = now() returning version"
)
