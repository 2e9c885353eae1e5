"""The audit's lines as rows: written in batches, read by time, deleted when they are old."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from toolfold.store.postgres.database import Database

__all__ = ["AuditLine", "PostgresAudit"]

PRUNING = 300.0
"""How long it may take to delete a tenant's old lines, in seconds."""

_READ_AT_ONCE = 1_000


class AuditLine(NamedTuple):
    """One line."""

    at: float
    """When, in seconds since 1970."""

    line: str
    """What, as JSON."""


class PostgresAudit:
    """The lines of all tenants, each of whom has its own.

    Args:
        database: Where they are.
        replica: What people call the process that writes.
    """

    def __init__(self, database: Database, replica: str = "") -> None:
        self.tenant = database.tenant
        self._database = database
        self._replica = replica

    def add(self, tenant: str, lines: Sequence[AuditLine]) -> None:
        """Write lines down, all or none.

        Raises:
            StoreAwayError: The database is away.
            psycopg.Error: It does not take them.
        """
        with self._database.transaction(tenant=tenant) as connection:
            connection.execute(
                "insert into toolfold.audit (tenant, at, replica, line)"
                " select %s, to_timestamp(each.at), %s, each.line::json"
                " from unnest(%s::double precision[], %s::text[]) as each (at, line)",
                (
                    tenant,
                    self._replica,
                    [line.at for line in lines],
                    [line.line for line in lines],
                ),
            )

    def lines(
        self, tenant: str | None = None, *, since: float = 0.0, until: float | None = None
    ) -> Iterator[str]:
        """Yield a tenant's lines, the oldest first.

        Args:
            tenant: Whose; by default those of the database's tenant.
            since: From when on, in seconds since 1970.
            until: Up to when; None is up to now.

        Raises:
            StoreAwayError: The database is away.
        """
        whose = self.tenant if tenant is None else tenant
        last, last_id = datetime.fromtimestamp(since, UTC), -1
        end = None if until is None else datetime.fromtimestamp(until, UTC)
        while True:
            with self._database.transaction(reads_only=True, tenant=whose) as connection:
                rows = connection.execute(
                    "select at, id, line::text from toolfold.audit where tenant = %s"
                    " and (at, id) > (%s, %s) and (%s::timestamptz is null or at < %s)"
                    " order by at, id limit %s",
                    (whose, last, last_id, end, end, _READ_AT_ONCE),
                ).fetchall()
            yield from (row[2] for row in rows)
            if len(rows) < _READ_AT_ONCE:
                return
            last, last_id = rows[-1][0], rows[-1][1]

    def prune_all(self, days: float) -> int:
        """Delete old lines of all tenants, those that never come again too; see `prune`."""
        return sum(self.prune(tenant, days) for tenant in self._database.tenants())

    def prune(self, tenant: str, days: float) -> int:
        """Delete a tenant's lines of more than some days ago; return how many that were.

        Lines of the last day are never deleted.

        Raises:
            StoreAwayError: The database is away.
        """
        with self._database.transaction(tenant=tenant, seconds=PRUNING) as connection:
            return connection.execute(
                "delete from toolfold.audit"
                " where tenant = %s and at < now() - %s * interval '1 day'",
                (tenant, days),
            ).rowcount
