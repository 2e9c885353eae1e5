"""Sessions of clients, as rows that any replica may go on with.

A row says whose a session is and how it was opened, so that another replica can open it once
more. It lives as long as somebody uses the session anywhere: replicas touch the rows of those
that they serve, and what nobody touched for as long as a session may be idle is over. One that
was ended stays there as such for as long: a row that is missing was lost, and is written again.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import NamedTuple

from toolfold.store.postgres.database import Database
from toolfold.store.store import StoreAwayError

__all__ = ["ClientSession", "ClientSessions"]


class ClientSession(NamedTuple):
    """A session, as every replica knows it."""

    id: str
    owner: str
    """Who opened it; for others there is none."""

    opening: bytes
    """The parameters of the request that opened it, as JSON."""

    wishes: bytes | None = None
    """What the client wants to be told, as JSON."""


class ClientSessions:
    """The sessions of one deployment. Every method may raise `StoreAwayError`.

    Args:
        database: Where they are.
        idle: Seconds after which a session that nobody touched is over.
    """

    def __init__(self, database: Database, idle: float) -> None:
        self._database = database
        self._tenant = database.tenant
        self._idle = idle

    def open(self, session: ClientSession) -> None:
        """Write a new session down."""
        with self._database.transaction() as connection:
            connection.execute(
                "insert into toolfold.client_sessions (tenant, id, owner, opening, wishes)"
                " values (%s, %s, %s, %s, %s) on conflict do nothing",
                (self._tenant, *session),
            )

    def find(self, session: str, owner: str) -> ClientSession | None:
        """Return a session of somebody's, and touch it; None where they have no such one.

        Raises:
            StoreAwayError: The database cannot be asked, or was away a moment ago and does not
                know of it yet.
        """
        with self._database.transaction() as connection:
            row = connection.execute(
                "update toolfold.client_sessions set touched = now()"
                " where tenant = %s and id = %s and owner = %s and ended is null"
                " and touched >= now() - make_interval(secs => %s)"
                " returning id, owner, opening, wishes",
                (self._tenant, session, owner, self._idle),
            ).fetchone()
        if row is None and self._database.is_just_back:
            raise StoreAwayError("sessions that were opened meanwhile are not all written down yet")
        if row is None:
            return None
        wishes = None if row[3] is None else bytes(row[3])
        return ClientSession(row[0], row[1], bytes(row[2]), wishes)

    def touch(self, sessions: Collection[str]) -> dict[str, bool]:
        """Say that sessions are in use; return those that are known, and whether each is over."""
        key = (self._tenant, list(sessions))
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set touched = now()"
                " where tenant = %s and id = any(%s) and ended is null",
                key,
            )
            rows = connection.execute(
                "select id, ended is not null from toolfold.client_sessions"
                " where tenant = %s and id = any(%s)",
                key,
            ).fetchall()
        return dict(rows)

    def wish(self, session: str, wishes: bytes) -> None:
        """Keep what a client wants to be told."""
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set wishes = %s where tenant = %s and id = %s",
                (wishes, self._tenant, session),
            )

    def wishes(self, session: str) -> bytes | None:
        """Return what a client wants to be told."""
        with self._database.transaction(reads_only=True) as connection:
            row = connection.execute(
                "select wishes from toolfold.client_sessions where tenant = %s and id = %s",
                (self._tenant, session),
            ).fetchone()
        return None if row is None or row[0] is None else bytes(row[0])

    def listens(self, session: str, replica: uuid.UUID) -> None:
        """A client listens at a replica for what belongs to none of its requests."""
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set listener = %s where tenant = %s and id = %s",
                (replica, self._tenant, session),
            )

    def listen_still(self, sessions: Collection[str], replica: uuid.UUID) -> None:
        """Clients listen at a replica, as far as nobody knows of another."""
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set listener = %s"
                " where tenant = %s and id = any(%s) and listener is null",
                (replica, self._tenant, list(sessions)),
            )

    def listens_no_more(self, session: str, replica: uuid.UUID) -> None:
        """It does not listen there any more; perhaps it does elsewhere."""
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set listener = null"
                " where tenant = %s and id = %s and listener = %s",
                (self._tenant, session, replica),
            )

    def listener(self, session: str) -> uuid.UUID | None:
        """Return the replica that a client listens at, if any."""
        with self._database.transaction(reads_only=True) as connection:
            row = connection.execute(
                "select listener from toolfold.client_sessions where tenant = %s and id = %s",
                (self._tenant, session),
            ).fetchone()
        return None if row is None else row[0]

    def end(self, session: str) -> None:
        """A session is over."""
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set ended = now(), touched = now()"
                " where tenant = %s and id = %s",
                (self._tenant, session),
            )

    def owners(self) -> list[str]:
        """Return whose the sessions are that are not over."""
        with self._database.transaction(reads_only=True) as connection:
            rows = connection.execute(
                "select distinct owner from toolfold.client_sessions"
                " where tenant = %s and ended is null",
                (self._tenant,),
            ).fetchall()
        return [row[0] for row in rows]

    def end_of(self, owners: Collection[str]) -> None:
        """All sessions of some callers are over."""
        with self._database.transaction() as connection:
            connection.execute(
                "update toolfold.client_sessions set ended = now(), touched = now()"
                " where tenant = %s and owner = any(%s) and ended is null",
                (self._tenant, list(owners)),
            )

    def sweep(self) -> None:
        """Delete what was idle for too long."""
        with self._database.transaction() as connection:
            connection.execute(
                "delete from toolfold.client_sessions where tenant = %s"
                " and touched < now() - make_interval(secs => %s)",
                (self._tenant, self._idle),
            )
