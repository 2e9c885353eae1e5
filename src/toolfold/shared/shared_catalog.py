"""The catalog that many share: filled by some, searched by any number, held by none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from toolfold._memo import Memo
from toolfold.errors import ConfigError
from toolfold.scope import EVERYTHING, Scope
from toolfold.shared._proposals import Statistics, reach, statistics
from toolfold.shared._push import CatalogChanges, changes, push_batch, remove
from toolfold.shared._rows import is_storable, tool_of
from toolfold.shared.reading import CatalogReading, CountedSources, Reach, SharedHit
from toolfold.store.postgres.database import DEFAULT_TENANT, STATEMENT_TIMEOUT, Database
from toolfold.tool import Tool

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Pushed", "SharedCatalog", "SharedHit", "SharedSource"]

BATCH = 500
"""How many tools are written in one transaction."""

PUSH_TIMEOUT = 600.0
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
        if not tenant.strip():
            raise ConfigError("a tenant has no name", hint="leave it out, or give it one")
        self._database = database
        self._tenant = tenant
        self._statistics: Statistics | None = None
        self._counted: Memo[tuple[int, Reach], CountedSources] = Memo(_COUNTS_AT_MOST)

    @classmethod
    def over(cls, database: Database, tenant: str = DEFAULT_TENANT) -> Self:
        """Return the catalog of a tenant in a database that is open, and stays its owner's.

        Raises:
            ConfigError: The tenant has no name.
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
        progress: Callable[[int, int], None] = lambda done, all: None,
    ) -> Pushed:
        """Write tools: what is new or has another digest; the rest is not touched.

        Args:
            tools: The tools.
            prune: Whether tools of the same sources that are not among them are taken out.
            sources: Sources to prune that may have none of them left.
            waiting: The names of those that nobody finds until they are pushed again without
                being named here: they wait for a person to look at them.
            progress: Told how many of how many are written.
        """
        given = list(tools)
        refused = tuple(tool.name for tool in given if not is_storable(tool))
        storable = (tool for tool in given if is_storable(tool))
        found = self.diff(storable, sources=sources, waiting=waiting)
        wanted = [*found.added, *found.changed]
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            with self._changing() as connection:
                push_batch(connection, self._tenant, batch, waiting)
            progress(start + len(batch), len(wanted))
        removed = self.remove(found.gone) if prune and found.gone else 0
        return Pushed(len(found.added), len(found.changed), found.same, removed, refused)

    def remove(self, names: Sequence[str]) -> int:
        """Take tools out by name, and return how many there were."""
        with self._changing() as connection:
            return remove(connection, self._tenant, names)

    @contextmanager
    def _changing(self) -> Generator[Connection[Any]]:
        """Open a transaction that changes the catalog, and tell the others when it is done."""
        with self._transaction() as connection:
            connection.execute(
                "select set_config('statement_timeout', %s, true)", (f"{PUSH_TIMEOUT * 1000:.0f}",)
            )
            yield connection
            connection.execute("select pg_notify(%s, %s)", (CHANNEL, self._tenant))

    def _transaction(self, *, reads_only: bool = False) -> AbstractContextManager[Connection[Any]]:
        return self._database.transaction(reads_only=reads_only, tenant=self._tenant)
