"""The schema: made once, brought forward, refused where it is of another time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from cluster.postgres import APP
from toolfold.errors import ConfigError
from toolfold.shared import SharedCatalog
from toolfold.store.postgres.migrations import applied, known, migrate


def test_an_empty_database_asks_to_be_migrated(
    empty_database: Callable[[], tuple[str, str]],
) -> None:
    _, app = empty_database()
    with pytest.raises(ConfigError) as raised:
        SharedCatalog(app).__enter__()

    assert raised.value.hint == "run `toolfold store migrate`"


def test_migrating_twice_and_at_once_is_migrating_once(
    empty_database: Callable[[], tuple[str, str]],
) -> None:
    owner, _ = empty_database()

    def migrated(_: int) -> int:
        with psycopg.connect(owner, autocommit=True) as connection:
            return len(migrate(connection, APP))

    with ThreadPoolExecutor(4) as pool:
        steps = list(pool.map(migrated, range(4)))

    assert sorted(steps) == [0, 0, 0, len(known())]
    with psycopg.connect(owner) as connection:
        assert applied(connection) == known()[-1].version


def test_a_database_of_a_later_toolfold_is_not_touched(
    empty_database: Callable[[], tuple[str, str]],
) -> None:
    owner, app = empty_database()
    with psycopg.connect(owner, autocommit=True) as connection:
        migrate(connection, APP)
        connection.execute("insert into toolfold.migrations (version, name) values (99, 'later')")
    with pytest.raises(ConfigError, match="version 99"):
        SharedCatalog(app).__enter__()
