"""The schema, step by step: forward only, each step in a transaction of its own."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, LiteralString, NamedTuple, cast

from toolfold.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import SQL

__all__ = ["Migration", "applied", "check", "known", "migrate"]

_LOCK = 7_366_013
"""The advisory lock that one migration holds: two that start together run one after the other."""


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    script: str


def known() -> list[Migration]:
    """Return the steps that this version of toolfold knows, in order."""
    files = (f for f in resources.files(__name__).iterdir() if f.name.endswith(".sql"))
    steps = sorted(files, key=lambda file: file.name)
    return [
        Migration(int(file.name[:4]), file.name[5:-4], file.read_text(encoding="utf-8"))
        for file in steps
    ]


def applied(connection: Connection) -> int:
    """Return the version of the database; 0 where there is nothing of ours."""
    found = connection.execute("select to_regclass('toolfold.migrations')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("select max(version) from toolfold.migrations").fetchone()
    return int(row[0] or 0) if row else 0


def migrate(connection: Connection, role: str | None = None) -> list[Migration]:
    """Bring a database to this version and return the steps that were made.

    Args:
        connection: To the database, as the owner of the schema.
        role: Who may read and write from then on, where that is not the owner.

    Raises:
        ConfigError: The extension `vector` or the role is not there, and cannot be made here.
    """
    from psycopg import sql

    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        _create_extension(connection)
        connection.execute("create schema if not exists toolfold")
        connection.execute(
            "create table if not exists toolfold.migrations "
            "(version integer primary key, name text not null, at timestamptz default now())"
        )
        done = applied(connection)
        steps = [step for step in known() if step.version > done]
        for step in steps:
            connection.execute(cast("LiteralString", step.script))
            connection.execute(
                "insert into toolfold.migrations (version, name) values (%s, %s)",
                (step.version, step.name),
            )
        if role is not None:
            for grant in (
                "grant usage on schema toolfold to {}",
                "grant select, insert, update, delete on all tables in schema toolfold to {}",
                "grant execute on all functions in schema toolfold to {}",
            ):
                _grant(connection, sql.SQL(grant), role)
    return steps


def _create_extension(connection: Connection) -> None:
    from psycopg import errors

    try:
        connection.execute("create extension if not exists vector")
    except errors.InsufficientPrivilege:
        raise ConfigError(
            "the extension `vector` is not in the database, and this role may not create it",
            hint="have an administrator run `CREATE EXTENSION vector` in it",
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise ConfigError(
            "the server does not have the extension `vector`",
            hint="install pgvector on the server",
        ) from None


def _grant(connection: Connection, grant: SQL, role: str) -> None:
    from psycopg import errors, sql

    try:
        connection.execute(grant.format(sql.Identifier(role)))
    except errors.UndefinedObject:
        raise ConfigError(
            f"there is no role {role!r}", hint=f"have it made: `CREATE ROLE {role} LOGIN`"
        ) from None


def check(connection: Connection) -> None:
    """Raise `ConfigError` where the database is of another version than this toolfold."""
    newest = known()[-1].version
    found = applied(connection)
    if found < newest:
        raise ConfigError(
            f"the database has version {found} of the store, and this toolfold needs {newest}",
            hint="run `toolfold store migrate`",
        )
    if found > newest:
        raise ConfigError(
            f"the database has version {found} of the store, and this toolfold knows {newest}",
            hint="install the toolfold that made it, or a newer one",
        )
