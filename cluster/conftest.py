"""One server for all tests, and an empty database for each that asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

import psycopg
import pytest

from cluster.postgres import APP, OWNER, Postgres, why_not
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.migrations import migrate

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL; without one, everything here is skipped."""
    if reason := why_not():
        pytest.skip(reason)
    with Postgres() as server:
        with psycopg.connect(server.address(OWNER), autocommit=True) as connection:
            connection.execute("create role app login")
        yield server


@pytest.fixture(scope="session")
def empty_database(postgres: Postgres) -> Callable[[], tuple[str, str]]:
    """Makes databases with nothing in them: the owner's address, and the one for all others."""

    def made() -> tuple[str, str]:
        name = f"tools{next(_NUMBERS)}"
        with psycopg.connect(postgres.address(OWNER), autocommit=True) as connection:
            connection.execute(f"create database {name}")  # pyright: ignore[reportArgumentType]
        return postgres.address(OWNER, name), postgres.address(APP, name)

    return made


@pytest.fixture
def address(empty_database: Callable[[], tuple[str, str]]) -> str:
    """A database that is ready."""
    owner, app = empty_database()
    with psycopg.connect(owner, autocommit=True) as connection:
        migrate(connection, APP)
    return app


@pytest.fixture
def postgres_alone() -> Iterator[tuple[Postgres, str]]:
    """A PostgreSQL of a test's own, which it may stop and kill, and its address."""
    if reason := why_not():
        pytest.skip(reason)
    with Postgres() as server:
        with psycopg.connect(server.address(OWNER), autocommit=True) as connection:
            connection.execute("create role app login")
            migrate(connection, APP)
        yield server, server.address(APP)


@pytest.fixture
def open_database() -> Iterator[Callable[..., Database]]:
    """Opens databases, and closes them in the end."""
    with ExitStack() as stack:
        yield lambda address, **more: stack.enter_context(Database(address, **more))
