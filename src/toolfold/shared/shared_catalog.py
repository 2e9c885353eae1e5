"""The catalog that many share: filled by some, searched by any number, held by none."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from toolfold._memo import Memo
from toolfold.scope import EVERYTHING, Scope
from toolfold.shared._proposals import Statistics, lacks_indexes, reach, statistics
from toolfold.shared._push import (
    BATCH,
    CatalogChanges,
    PushBatch,
    changes,
    known_lengths,
    new_or_changed,
    prepared_ahead,
    remove,
    write,
)
from toolfold.shared._rows import is_storable, tool_of
from toolfold.shared.reading import CatalogReading, CountedSources, Reach, SharedHit
from toolfold.store.postgres.database import DEFAULT_TENANT, STATEMENT_TIMEOUT, Database
from toolfold.store.store import check_tenant
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = ["Pushed", "SharedCatalog", "SharedHit", "SharedSource"]

PUSH_TIMEOUT = 3_600.0
"""How long one statement of a push may take, in seconds: an index over a million takes its time."""

CHANNEL = "toolfold_catalog"
"""Where changes are announced; the payload is the tenant."""

_COUNTS_AT_MOST = 128


class Pushed(NamedTuple):
    """What a push did."""

    added: int
    changed: int
    same: int
    removed: int
    refused: tuple[str, ...] = ()
    """The names of tools that the database cannot hold: a zero stands in their name or source."""


class SharedSource(NamedTuple):
    """A source of the catalog."""

    name: str
    tools: int


class _Tally:
    """What a push has seen.

    Args:
        all: How many tools there are; 0 where that is not known.
        keeps_names: Whether names and sources are kept.
    """

    def __init__(self, all: int, *, keeps_names: bool) -> None:
        self.all = all
        self.seen = 0
        self.refused: list[str] = []
        self.names: set[str] = set()
        self.sources: set[str] = set()
        self._keeps_names = keeps_names

    def storable(self, tools: Sequence[Tool]) -> list[Tool]:
        """Count tools, and return those that the database can hold."""
        self.seen += len(tools)
        found = [tool for tool in tools if is_storable(tool)]
        if len(found) < len(tools):
            self.refused += [tool.name for tool in tools if not is_storable(tool)]
        if self._keeps_names:
            self.names.update(tool.name for tool in found)
            self.sources.update(tool.source or "" for tool in found)
        return found


class SharedCatalog:
    """A catalog in PostgreSQL. Open it with `with`; safe to share between threads.

        with SharedCatalog("postgresql://gateway@db/tools", tenant="acme") as catalog:
            catalog.push(tools)
            hits = catalog.search("open a pull request", 5)

    Args:
        address: As libpq takes it.
        tenant: Whose catalog it is.
        statement_timeout: How long one statement of a search may take, in seconds.
    """

    def __init__(
        self,
        address: str,
        *,
        tenant: str = DEFAULT_TENANT,
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        database = Database(address, tenant=tenant, statement_timeout=statement_timeout)
        self._begin(database, tenant)

    def _begin(self, database: Database, tenant: str) -> None:
        check_tenant(tenant)
        self._database = database
        self._tenant = tenant
        self._statistics: Statistics | None = None
        self._counted: Memo[tuple[int, Reach], CountedSources] = Memo(_COUNTS_AT_MOST)

    @classmethod
    def over(cls, database: Database, tenant: str = DEFAULT_TENANT) -> Self:
        """Return the catalog of a tenant in a database that is open, and stays its owner's.

        Raises:
            ConfigError: Nobody can be called like this.
        """
        made = cls.__new__(cls)
        made._begin(database, tenant)
        return made

    def __enter__(self) -> Self:
        self._database.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.__exit__(*exception)

    def search(self, query: str, limit: int = 5, *, scope: Scope = EVERYTHING) -> list[SharedHit]:
        """Return the tools that answer a query, best first.

        They and their scores are those of the embedded search over the tools of the scope.

        Args:
            query: What is asked for.
            limit: How many at most.
            scope: What the caller may know of.

        Raises:
            StoreAwayError: The database is away.
        """
        with self.reading(Reach(scope)) as reading:
            return reading.search(query, limit)

    def find(self, name: str, *, scope: Scope = EVERYTHING) -> Tool | None:
        """Return the tool of a name, if there is one in the scope."""
        with self.reading(Reach(scope)) as reading:
            return reading.find(name)

    @contextmanager
    def reading(self, own: Reach = Reach()) -> Generator[CatalogReading]:  # noqa: B008
        """Read one state of the catalog: several questions in one transaction.

        Args:
            own: What of it there is for the caller.

        Raises:
            StoreAwayError: The database is away.
        """
        with self._transaction(reads_only=True) as connection:
            known = self._statistics = statistics(connection, self._tenant, self._statistics)
            left = reach(connection, self._tenant, own.scope, own.sources, read_only=own.read_only)
            yield CatalogReading(connection, self._tenant, own, left, known, self._counted)

    def of(self, tenant: str) -> SharedCatalog:
        """Return another tenant's catalog in the same database, over the same connections.

        It is open as long as this one is.
        """
        return SharedCatalog.over(self._database, tenant)

    @property
    def tenant(self) -> str:
        """Whose catalog it is."""
        return self._tenant

    def sources(self) -> list[SharedSource]:
        """Return the sources, by name."""
        with self._transaction(reads_only=True) as connection:
            rows = connection.execute(
                "select source, size from toolfold.sources where tenant = %s order by source",
                (self._tenant,),
            ).fetchall()
        return [SharedSource(*row) for row in rows]

    def tools(self, source: str | None = None, *, waiting: bool = False) -> Iterator[Tool]:
        """Yield the tools, by name; those of one source where it is named.

        Args:
            source: The source.
            waiting: Whether those are wanted that wait for a person, in place of the others.
        """
        after = ""
        while True:
            with self._transaction(reads_only=True) as connection:
                rows = connection.execute(
                    "select name, definition from toolfold.tools where tenant = %s and name > %s"
                    " and (%s::text is null or source = %s) and trusted <> %s"
                    " order by name limit %s",
                    (self._tenant, after, source, source, waiting, BATCH),
                ).fetchall()
            yield from (tool_of(row[1]) for row in rows)
            if len(rows) < BATCH:
                return
            after = rows[-1][0]

    def diff(
        self, tools: Iterable[Tool], *, sources: Collection[str] = (), waiting: Collection[str] = ()
    ) -> CatalogChanges:
        """Return what a push of these tools would change; see `push`."""
        with self._transaction(reads_only=True) as connection:
            return changes(connection, self._tenant, list(tools), sources, waiting)

    def push(
        self,
        tools: Iterable[Tool],
        *,
        prune: bool = False,
        sources: Collection[str] = (),
        waiting: Collection[str] = (),
        workers: int = 1,
        progress: Callable[[int, int], None] = lambda done, all: None,
    ) -> Pushed:
        """Write tools: what is new or has another digest; the rest is not touched.

        They are taken one by one and written some thousands at a time, so that a million need not
        be held. Where one batch fails, those before it are written and nothing of it is.

        Args:
            tools: The tools.
            prune: Whether tools of the same sources that are not among them are taken out.
            sources: Sources to prune that may have none of them left.
            waiting: The names of those that nobody finds until they are pushed again without
                being named here: they wait for a person to look at them.
            workers: How many processes prepare what is written; with one, a thread of this one.
            progress: Told how many of how many are done; where their number is not known, of how
                many so far.
        """
        tally = _Tally(len(tools) if isinstance(tools, Sized) else 0, keeps_names=prune)
        tally.sources.update(sources)
        batches = self._batches(tools, tally, frozenset(waiting))
        written = added = 0
        with prepared_ahead(self._tenant, batches, workers) as prepared:
            for batch in prepared:
                with self._changing() as connection:
                    added += write(connection, self._tenant, batch)
                written += len(batch.names)
                progress(batch.seen, max(tally.all, tally.seen))
        progress(tally.seen, max(tally.all, tally.seen))
        self._index_if_large()
        removed = self._prune(tally) if prune else 0
        same = tally.seen - len(tally.refused) - written
        return Pushed(added, written - added, same, removed, tuple(tally.refused))

    def _batches(
        self, tools: Iterable[Tool], tally: _Tally, waiting: frozenset[str]
    ) -> Iterator[PushBatch]:
        """Yield those of some tools that are new or changed, some thousands at a time."""
        wanted: list[Tool] = []
        given = iter(tools)
        lengths = None
        while some := list(islice(given, BATCH)):
            storable = tally.storable(some)
            with self._transaction(reads_only=True) as connection:
                wanted += new_or_changed(connection, self._tenant, storable, waiting)
                lengths = known_lengths(connection, self._tenant)
            if len(wanted) >= BATCH:
                yield _batch(wanted, waiting, lengths, tally.seen)
                wanted = []
        if wanted:
            yield _batch(wanted, waiting, lengths, tally.seen)

    def _prune(self, tally: _Tally) -> int:
        """Take out the tools of the pushed sources that were not among those pushed."""
        with self._transaction(reads_only=True) as connection:
            rows = connection.execute(
                "select name from toolfold.tools where tenant = %s and source = any(%s)",
                (self._tenant, sorted(tally.sources)),
            ).fetchall()
        gone = sorted({row[0] for row in rows} - tally.names)
        parts = [gone[i : i + BATCH] for i in range(0, len(gone), BATCH)]
        return sum(self.remove(part) for part in parts)

    def _index_if_large(self) -> None:
        """Build the indexes that large catalogs are searched by, once one is large."""
        with self._transaction(reads_only=True) as connection:
            is_missing = lacks_indexes(connection, self._tenant)
        if is_missing:
            with self._changing() as connection:
                connection.execute("select toolfold.build_large_indexes()")

    def remove(self, names: Sequence[str]) -> int:
        """Take tools out by name, and return how many there were."""
        with self._changing() as connection:
            return remove(connection, self._tenant, names)

    @contextmanager
    def _changing(self) -> Generator[Connection[Any]]:
        """Open a transaction that changes the catalog, and tell the others when it is done."""
        with self._transaction(seconds=PUSH_TIMEOUT) as connection:
            yield connection
            connection.execute("select pg_notify(%s, %s)", (CHANNEL, self._tenant))

    def _transaction(self, **how: Any) -> AbstractContextManager[Connection[Any]]:
        return self._database.transaction(tenant=self._tenant, **how)


def _batch(
    tools: Sequence[Tool], waiting: frozenset[str], lengths: NDArray[np.float64] | None, seen: int
) -> PushBatch:
    return PushBatch(tools, waiting.intersection(tool.name for tool in tools), lengths, seen)
