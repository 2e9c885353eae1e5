"""Documents as rows that every replica reads, each change announced to the others."""

from __future__ import annotations

from toolfold.store.postgres.database import Database
from toolfold.store.store import Rewrite, Signature

__all__ = ["CHANNEL", "PostgresDocuments"]

CHANNEL = "toolfold_documents"
"""Where changes are announced; the payload is the document's name."""


class PostgresDocuments:
    """The documents of one tenant.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def where(self, name: str) -> str:
        """Return what a person calls a document."""
        return f"{name} in PostgreSQL"

    def signature(self, name: str) -> Signature:
        """Return the number of a document's version; None where there is none."""
        with self._database.transaction(reads_only=True) as connection:
            row = connection.execute(
                "select version from toolfold.documents where tenant = %s and name = %s"
                " and content is not null",
                (self._database.tenant, name),
            ).fetchone()
        return None if row is None else row[0]

    def read(self, name: str) -> bytes | None:
        """Return a document's content; None where there is none."""
        with self._database.transaction(reads_only=True) as connection:
            row = connection.execute(
                "select content from toolfold.documents where tenant = %s and name = %s",
                (self._database.tenant, name),
            ).fetchone()
        return None if row is None or row[0] is None else bytes(row[0])

    def update(self, name: str, change: Rewrite) -> Signature:
        """Replace a document by what `change` makes of it, while its row is held."""
        key = (self._database.tenant, name)
        with self._database.transaction() as connection:
            connection.execute(
                "insert into toolfold.documents (tenant, name, version) values (%s, %s, 0)"
                " on conflict do nothing",
                key,
            )
            row = connection.execute(
                "select version, content from toolfold.documents"
                " where tenant = %s and name = %s for update",
                key,
            ).fetchone()
            assert row is not None
            version, old = row
            content = change(None if old is None else bytes(old))
            if content is None:
                return None if old is None else version
            connection.execute(
                "update toolfold.documents set version = version + 1, content = %s,"
                " changed = now() where tenant = %s and name = %s",
                (content, *key),
            )
            connection.execute("select pg_notify(%s, %s)", (CHANNEL, name))
            return version + 1

    def put(self, name: str, content: bytes) -> None:
        """Replace a document, whatever it holds."""
        with self._database.transaction() as connection:
            connection.execute(
                "insert into toolfold.documents (tenant, name, version, content)"
                " values (%s, %s, 1, %s) on conflict (tenant, name) do update"
                " set version = documents.version + 1, content = excluded.content, changed = now()",
                (self._database.tenant, name, content),
            )
            connection.execute("select pg_notify(%s, %s)", (CHANNEL, name))
