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


def test_what_only_an_administrator_can_make_is_asked_for_by_the_statement(
    empty_database: Callable[[], tuple[str, str]],
) -> None:
    owner, app = empty_database()

    with psycopg.connect(app, autocommit=True) as connection, pytest.raises(ConfigError) as refused:
        migrate(connection)
    with psycopg.connect(owner, autocommit=True) as connection, pytest.raises(ConfigError) as none:
        migrate(connection, "nobodys")

    assert refused.value.hint == "have an administrator run `CREATE EXTENSION vector` in it"
    assert (
        str(none.value) == "there is no role 'nobodys'; have it made: `CREATE ROLE nobodys LOGIN`"
    )
    with psycopg.connect(owner) as connection:
        assert applied(connection) == 0


def test_a_database_of_a_later_toolfold_is_not_touched(
    empty_database: Callable[[], tuple[str, str]],
) -> None:
    owner, app = empty_database()
    with psycopg.connect(owner, autocommit=True) as connection:
        migrate(connection, APP)
        connection.execute("insert into toolfold.migrations (version, name) values (99, 'later')")
    with pytest.raises(ConfigError, match="version 99"):
        SharedCatalog(app).__enter__()


def copy_as_of(version: int, source: str, target: str) -> None:
    """Copy a catalog to an earlier schema, as the release of then wrote it."""
    with psycopg.connect(source) as now, psycopg.connect(target) as then:
        for table in ("catalogs", "sources", "tools", "terms"):
            columns = ", ".join(
                row[0]
                for row in then.execute(
                    "select column_name::text from information_schema.columns where table_schema ="
                    " 'toolfold' and table_name = %s and is_generated = 'NEVER'"
                    " and is_identity = 'NO' order by 1",
                    (table,),
                )
            )
            out = f"copy (select {columns} from toolfold.{table}) to stdout"
            into = f"copy toolfold.{table} ({columns}) from stdin"
            with now.cursor().copy(out) as read, then.cursor().copy(into) as write:
                for data in read:
                    write.write(data)
        if version < 5:
            rows = now.execute(
                "select tenant, source, held.* from toolfold.sources,"
                " unnest(terms, holders) as held (term, n)"
            )
            then.cursor().executemany(
                "insert into toolfold.source_terms (tenant, source, term, holders)"
                " values (%s, %s, %s, %s)",
                rows.fetchall(),
            )


@pytest.mark.parametrize("version", range(1, known()[-1].version))
def test_a_database_of_an_earlier_toolfold_keeps_everything(
    version: int,
    empty_database: Callable[[], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, app = empty_database()
    whole, now = empty_database()
    with psycopg.connect(whole, autocommit=True) as connection:
        migrate(connection, APP)
    tools = [
        Tool(f"s__{name}", f"{name} a letter.", {"type": "object"}, source="s")
        for name in ("Send", "Read", "Burn")
    ]
    with SharedCatalog(now) as shared:
        shared.push(tools)
    with monkeypatch.context() as earlier:
        steps = [step for step in known() if step.version <= version]
        earlier.setattr(migrations, "known", lambda: steps)  # as the earlier release had it
        with psycopg.connect(owner, autocommit=True) as connection:
            assert [step.version for step in migrate(connection, APP)] == [*range(1, version + 1)]
        copy_as_of(version, whole, owner)
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
