"""The database: a pool of connections, each transaction in the name of one tenant."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Self

from toolfold.errors import ConfigError, MissingExtraError
from toolfold.store.postgres import migrations
from toolfold.store.store import DEFAULT_TENANT, StoreAwayError, check_tenant

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

    from toolfold.store.postgres.bounded_connection import BoundedConnection

__all__ = ["DEFAULT_TENANT", "Database", "owner_connection"]

POOL = 8
"""How many connections a process has at most."""

PATIENCE = 3
"""How long a connection is waited for, and a word on one that was idle, in seconds."""

JUST_BACK = 3.0
"""For how long a database that was away may lack what was to be kept meanwhile, in seconds."""

LOOKS = 0.25
"""How often a database that is away is looked for, in seconds."""

STATEMENT_TIMEOUT = 10.0
"""How long one statement may take, in seconds."""

GRACE = 1.0
"""How much longer than it may take an answer is waited for, in seconds."""

LONGEST_PAUSE = 60.0
"""How long a transaction may lie still at most, in seconds: what it holds others wait for, and
whoever opened it may be paused, or out of reach."""

_KEPT_ALIVE: dict[str, Any] = {
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 3_000,
}
"""A host that went away without a word is noticed within seconds."""

_PASSWORD = re.compile(r"(?i)(password\s*=\s*)('[^']*'|\S+)|(://[^:/@\s]*:)[^@\s]*(?=@)")


class _NobodyThereError(BaseException):
    """No connection can be had now. No `Exception`: on those a pool tries again."""

    def __init__(self, away: StoreAwayError) -> None:
        super().__init__(away.message)
        self.away = away


class Database:
    """A database that several processes share. Open it with `with`.

    Args:
        address: As libpq takes it: `postgresql://user@host/name`, or `host=… dbname=…`.
        tenant: Whose rows are read and written; no others are seen.
        statement_timeout: How long one statement may take, in seconds.

    Raises:
        MissingExtraError: The extra `postgres` is not installed.
        ConfigError: Nobody can be called like this.
    """

    def __init__(
        self,
        address: str,
        *,
        tenant: str = DEFAULT_TENANT,
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        try:
            from psycopg_pool import ConnectionPool
        except ModuleNotFoundError:
            raise MissingExtraError("what is kept in PostgreSQL", "postgres") from None
        check_tenant(tenant)
        self.tenant = tenant
        self._address = address
        self._timeout = statement_timeout
        self._pool_class = ConnectionPool
        self._pool: ConnectionPool[BoundedConnection] | None = None
        self._opening = Lock()
        self._gone: StoreAwayError | None = None
        self._answered = 0.0
        self._returned = -math.inf

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def check(self) -> None:
        """See that it can be reached, and is of this version.

        Raises:
            ConfigError: It is of another version.
            StoreAwayError: It cannot be reached.
        """
        with self.alone() as connection:
            migrations.check(connection)

    def tenants(self) -> list[str]:
        """Return whose entries and lines of the audit there are.

        Raises:
            StoreAwayError: The database is away.
        """
        with self.transaction(reads_only=True) as connection:
            return [row[0] for row in connection.execute("select toolfold.tenants()").fetchall()]

    def is_guarded(self) -> bool:
        """Whether row-level security binds this role: not the owner of the tables.

        Raises:
            StoreAwayError: The database is away.
        """
        with self.alone() as connection:
            found = connection.execute("select row_security_active('toolfold.tools')").fetchone()
        return found == (True,)

    @contextmanager
    def alone(self) -> Generator[Connection[Any]]:
        """Open a connection beside the pool, without a transaction, in nobody's name.

        Raises:
            StoreAwayError: The database is away, or is lost on the way.
        """
        from psycopg import Error

        from toolfold.store.postgres.bounded_connection import BoundedConnection

        try:
            with BoundedConnection.connect(
                self._address, autocommit=True, connect_timeout=PATIENCE, **_KEPT_ALIVE
            ) as connection:
                connection.patience = PATIENCE
                yield connection
        except Error as error:
            raise self._away(error) from None

    def close(self) -> None:
        """Close the connections; the next transaction opens others."""
        self._close()

    def _opened(self) -> ConnectionPool[BoundedConnection]:
        from toolfold.store.postgres.bounded_connection import BoundedConnection

        with self._opening:
            if self._pool is None:
                self._pool = self._pool_class(
                    self._address,
                    connection_class=BoundedConnection,
                    kwargs=dict(_KEPT_ALIVE),
                    min_size=1,
                    max_size=POOL,
                    open=True,
                    timeout=PATIENCE,
                    configure=_configured,
                    check=self._checked,
                )
            return self._pool

    def _checked(self, connection: BoundedConnection) -> None:
        """See that a connection of the pool still works, and where not, that another would."""
        from psycopg import Error

        connection.patience = PATIENCE
        try:
            self._pool_class.check_connection(connection)
        except Error:
            try:
                with self.alone():
                    pass
            except StoreAwayError as away:
                # The pool would go on trying for as long as it is asked to wait.
                raise _NobodyThereError(away) from None
            raise

    def _close(self) -> None:
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    @contextmanager
    def transaction(
        self, *, reads_only: bool = False, tenant: str | None = None, seconds: float | None = None
    ) -> Generator[Connection[Any]]:
        """Open a transaction that sees and writes one tenant's rows alone.

        Args:
            reads_only: Whether all of it is to see one state, and nothing is to change.
            tenant: Whose rows, where they are not this database's tenant's.
            seconds: How long one statement may take, where that is not said of this database.

        Raises:
            StoreAwayError: The database is away.
        """
        from psycopg import InternalError, OperationalError
        from psycopg_pool import PoolTimeout

        if (gone := self._gone) is not None:
            raise _undone(StoreAwayError(gone.message, hint=gone.hint))
        connection = None
        is_whole = False
        longest = self._timeout if seconds is None else seconds
        try:
            with self._opened().connection() as connection, connection.transaction():
                if reads_only:
                    connection.execute("set transaction isolation level repeatable read, read only")
                connection.execute(
                    "select set_config('toolfold.tenant', %s, true),"
                    " set_config('statement_timeout', %s, true),"
                    " set_config('idle_in_transaction_session_timeout', %s, true)",
                    (
                        self.tenant if tenant is None else tenant,
                        f"{longest * 1000:.0f}",
                        f"{min(longest, LONGEST_PAUSE) * 1000:.0f}",
                    ),
                )
                self._answered = time.monotonic()
                connection.patience = longest + GRACE
                yield connection
                is_whole = True
        except PoolTimeout as error:
            # Where others were answered meanwhile it is there, and has too much to do.
            is_busy = time.monotonic() - self._answered < PATIENCE
            raise _undone(self._away(error) if is_busy else self._lost(error)) from None
        except _NobodyThereError as error:
            raise _undone(self._lost(error)) from None
        except (OperationalError, InternalError) as error:
            # One that took too long, or met another, says nothing of the next; nor does one that
            # was to be written where nothing is: at a standby, or where the disk is full.
            is_lost = connection is None or connection.broken
            away = self._lost(error) if is_lost else self._away(error)
            # What was lost on its way to being kept may have been kept.
            raise (away if is_whole else _undone(away)) from None

    @property
    def is_just_back(self) -> bool:
        """Whether it was away a moment ago: what others could not keep is on its way."""
        return time.monotonic() - self._returned < JUST_BACK

    def _lost(self, error: BaseException) -> StoreAwayError:
        """Take it that the database is away until a look of its own finds it back.

        Nobody waits for it meanwhile: a gateway goes on at once with what it knows.
        """
        away = error.away if isinstance(error, _NobodyThereError) else self._away(error)
        with self._opening:
            if self._gone is not None:
                return away
            self._gone = away
        # A pool waits longer after each attempt; a new one asks at once, when it is next asked.
        self._close()
        Thread(target=self._await_return, name="toolfold-database", daemon=True).start()
        return away

    def _await_return(self) -> None:
        while True:
            time.sleep(LOOKS)
            try:
                self.check()
            except StoreAwayError:
                continue
            except ConfigError as error:
                # It is there, and of another version by now: whoever is refused is told that.
                self._gone = StoreAwayError(error.message, hint=error.hint)
                continue
            self._returned = time.monotonic()
            self._gone = None
            return

    def _away(self, error: BaseException) -> StoreAwayError:
        return _away(error, self._address)


@contextmanager
def owner_connection(address: str) -> Generator[Connection[Any]]:
    """Connect as the owner of the schema, to change it.

    Raises:
        MissingExtraError: The extra `postgres` is not installed.
        StoreAwayError: The database cannot be reached, or refuses.
    """
    try:
        import psycopg
    except ModuleNotFoundError:
        raise MissingExtraError("what is kept in PostgreSQL", "postgres") from None
    try:
        with psycopg.connect(address, autocommit=True, connect_timeout=PATIENCE) as connection:
            yield connection
    except psycopg.Error as error:
        raise _away(error, address) from None


def _undone(away: StoreAwayError) -> StoreAwayError:
    away.is_undone = True
    return away


def _away(error: BaseException, address: str) -> StoreAwayError:
    """Return an error without the password that an address may hold."""
    text = str(error).strip().partition("\n")[0]
    text = text.replace(address, "the address") if address else text
    text = _PASSWORD.sub(lambda m: f"{m[1] or m[3]}***", text)
    return StoreAwayError(
        f"the database does not answer as it should: {text}",
        hint="check that PostgreSQL runs, and who may do what there",
    )


def _configured(connection: Connection[Any]) -> None:
    from pgvector.psycopg import register_vector

    register_vector(connection)
    connection.commit()
