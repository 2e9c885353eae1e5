"""The journal of calls: what was begun, at which replica, and what became of it."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from toolfold.store.postgres.database import Database

__all__ = ["KEPT_SECONDS", "JournalEntry", "JournalRows"]

KEPT_SECONDS = 600.0
"""For how long what a call came to is kept."""

LONGEST_CALL = 86_400.0
"""After what time a call that was begun is no longer asked about, in seconds."""


class JournalEntry(NamedTuple):
    """A call that was begun before."""

    replica: uuid.UUID
    """Who began it."""

    outcome: bytes | None
    """What it came to, as JSON; None where that is not known, or not yet."""


class JournalRows:
    """The journal of one deployment. Every method may raise `StoreAwayError`.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tenant = database.tenant

    def begin(
        self, session: str, request: bytes, digest: bytes, replica: uuid.UUID
    ) -> JournalEntry | None:
        """Write down that a call begins; where it was begun before, return what is known of it.

        An id that a client uses once more for another call names that one from then on.

        Args:
            session: The client's session.
            request: Names the client's request in it.
            digest: Names what was asked.
            replica: Who begins it.
        """
        key = (self._tenant, session, request)
        with self._database.transaction() as connection:
            begun = connection.execute(
                "insert into toolfold.journal as old (tenant, session, request, digest, replica)"
                " values (%s, %s, %s, %s, %s) on conflict (tenant, session, request) do update"
                " set digest = excluded.digest, replica = excluded.replica, outcome = null,"
                " began = now(), ended = null where old.digest <> excluded.digest"
                " or old.ended < now() - make_interval(secs => %s) returning 1",
                (*key, digest, replica, KEPT_SECONDS),
            ).fetchone()
            if begun is not None:
                return None
            row = connection.execute(
                "select replica, outcome from toolfold.journal"
                " where tenant = %s and session = %s and request = %s",
                key,
            ).fetchone()
        return None if row is None else _entry(row)

    def end(self, session: str, request: bytes, replica: uuid.UUID, outcome: bytes) -> None:
        """Write down what a call came to."""
        with self._database.transaction() as connection:
            # Lost with the power, it is a call of which nothing is known: it does not run again.
            connection.execute("set local synchronous_commit = off")
            connection.execute(
                "update toolfold.journal set outcome = %s, ended = now()"
                " where tenant = %s and session = %s and request = %s and replica = %s",
                (outcome, self._tenant, session, request, replica),
            )

    def find(
        self, session: str, request: bytes, digest: bytes | None = None
    ) -> JournalEntry | None:
        """Return what is known of a call.

        Args:
            session: The client's session.
            request: Names the client's request in it.
            digest: Names what was asked; None takes whatever it was.
        """
        with self._database.transaction(reads_only=True) as connection:
            row = connection.execute(
                "select replica, outcome from toolfold.journal"
                " where tenant = %s and session = %s and request = %s"
                " and digest = coalesce(%s, digest)",
                (self._tenant, session, request, digest),
            ).fetchone()
        return None if row is None else _entry(row)

    def sweep(self) -> None:
        """Delete what was kept for long enough."""
        with self._database.transaction() as connection:
            connection.execute(
                "delete from toolfold.journal where tenant = %s"
                " and (ended < now() - make_interval(secs => %s)"
                " or began < now() - make_interval(secs => %s))",
                (self._tenant, KEPT_SECONDS, LONGEST_CALL),
            )


def _entry(row: tuple[uuid.UUID, bytes | None]) -> JournalEntry:
    return JournalEntry(row[0], None if row[1] is None else bytes(row[1]))
