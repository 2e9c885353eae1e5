"""The schema: made once, brought forward, refused where it is of another time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from cluster.postgres import APP
from toolfold import Tool
from toolfold.errors import ConfigError
from toolfold.shared import SharedCatalog
from toolfold.store.postgres import migrations
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.documents import PostgresDocuments
from toolfold.store.postgres.entries import TURNS, PostgresEntries
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


@pytest.mark.parametrize("version", range(1, known()[-1].version))
def test_a_database_of_an_earlier_toolfold_keeps_everything(
    version: int,
    empty_database: Callable[[], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, app = empty_database()
    tools = [
        Tool(f"s__{name}", f"{name} a letter.", {"type": "object"}, source="s")
        for name in ("Send", "Read", "Burn")
    ]
    with monkeypatch.context() as earlier:
        steps = [step for step in known() if step.version <= version]
        earlier.setattr(migrations, "known", lambda: steps)  # as the earlier release had it
        with psycopg.connect(owner, autocommit=True) as connection:
            assert [step.version for step in migrate(connection, APP)] == [*range(1, version + 1)]
        with SharedCatalog(app) as shared:
            shared.push(tools)
        if version >= 2:
            with Database(app, tenant="acme") as database:
                PostgresDocuments(database).put("trust.json", b"approved")

    with pytest.raises(ConfigError, match=f"version {version} of the store"):
        SharedCatalog(app).__enter__()
    with psycopg.connect(owner, autocommit=True) as connection:
        made = migrate(connection, APP)
        assert [step.version for step in made] == [*range(version + 1, known()[-1].version + 1)]

    with SharedCatalog(app) as shared:
        hits = shared.search("burn a letter", 1)
        assert [hit.tool.name for hit in hits] == ["s__Burn"]
    with Database(app, tenant="acme") as database:
        kept = PostgresDocuments(database).read("trust.json")
        assert kept == (b"approved" if version >= 2 else None)
        PostgresEntries(database, TURNS).put("k", b"new")
        assert PostgresEntries(database, TURNS).get("k") == b"new"
