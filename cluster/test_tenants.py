"""Tenants: whatever one of them asks for, by whatever key, it is never another's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from cluster.postgres import APP
from support.memories import opaque_tools
from toolfold import Session
from toolfold.memory import Memory, MemoryRecord, PostgresMemory, Use
from toolfold.serve.replica.shared_sessions import SharedSessions
from toolfold.store.postgres.audit import AuditLine, PostgresAudit
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.documents import PostgresDocuments
from toolfold.store.postgres.entries import SESSIONS, TURNS, PostgresEntries
from toolfold.store.postgres.migrations import migrate

VICTIM = "acme"
KEYS = ("k", "5f2e", "trust.json")
ATTACKERS = st.one_of(
    st.sampled_from(
        ["default", "ACME", "acme ", " acme", "acme\u200b", "acm\u0435", "%", "_cme", "*", "acme%",
         "acme'--", "' or tenant = 'acme", "acme\\", "a\u0301cme", "toolfold", "null", "acme,x"]
    ),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1),
).filter(lambda name: name != VICTIM and name.strip() != "")  # fmt: skip
GUESSES = st.one_of(
    st.sampled_from([*KEYS, "acme:k", "4:acme:k", "acme\x1fk", "%", "k' or '1'='1", "../acme/k"]),
    st.text(max_size=40),
)


class Shared:
    """A database with something of the victim's in every place."""

    def __init__(self, address: str, database: Database) -> None:
        self.address = address
        self.database = database
        self.fill()

    def fill(self) -> None:
        """Keep something of the victim's in every place."""
        database, tool = self.database, opaque_tools()[0]
        self.turns = PostgresEntries(database, TURNS)
        self.audit = PostgresAudit(database)
        for key in KEYS:
            self.turns.of(VICTIM).put(key, b"secret")
            asyncio.run(self.sessions().joined(key, Session(), Session(("secret",)), VICTIM))
        self.audit.add(VICTIM, [AuditLine(time.time() - 9e5, '{"tool":"secret"}')])
        memory = Memory(PostgresMemory(database, VICTIM))
        memory.learn(Use("book a secret flight", tool.name, tool.digest, principal="ada"))
        memory.together("ada", (tool.name, "1"), (tool.name, "2"))
        memory.close()

    def sessions(self) -> SharedSessions:
        """Return the sessions as a replica that has just started sees them."""
        return SharedSessions(PostgresEntries(self.database, SESSIONS))

    def secrets(self) -> list[object]:
        """Return all that the victim has."""
        return [
            PostgresEntries(self.database, TURNS).of(VICTIM).get_all(KEYS),
            [asyncio.run(self.sessions().begun(key, VICTIM)) for key in KEYS],
            list(self.audit.lines(VICTIM)),
            [record.line() for record in _closed(Memory(PostgresMemory(self.database, VICTIM)))],
            PostgresMemory(self.database, VICTIM).pairs(),
        ]


@pytest.fixture(scope="module")
def shared(empty_database: Callable[[], tuple[str, str]]) -> Iterator[Shared]:
    """What all tests here attack."""
    owner, app = empty_database()
    with psycopg.connect(owner, autocommit=True) as connection:
        migrate(connection, APP)
    with Database(app) as database:
        yield Shared(app, database)


@settings(max_examples=40, deadline=None)
@given(attacker=ATTACKERS, guess=GUESSES)
def test_whatever_a_tenant_tries_it_meets_nothing_of_anothers(
    shared: Shared, attacker: str, guess: str
) -> None:
    before = shared.secrets()
    turns = shared.turns.of(attacker)
    keys = [guess, *KEYS]
    turns.forget(guess)
    assert b"secret" not in turns.get_all(keys).values()
    turns.put(guess, b"mine")
    turns.prune()
    sessions = shared.sessions()
    asyncio.run(sessions.end(guess, attacker))
    assert asyncio.run(sessions.begun(guess, attacker)).revealed == ()
    asyncio.run(sessions.joined(guess, Session(), Session(("mine",)), attacker))
    assert asyncio.run(shared.sessions().begun(guess, attacker)).revealed == ("mine",)
    assert list(shared.audit.lines(attacker)) == []
    assert shared.audit.prune(attacker, 0) == 0
    memory = PostgresMemory(shared.database, attacker)
    assert list(memory.requests()) == list(memory.pairs()) == []
    assert memory.tools() == {}
    assert all(memory.text(number) is None for number in range(9))
    memory.forget_tools(name="svc_01", unseen=time.time() + 1e6, ids=range(9))
    assert memory.forget(before=time.time() + 1e6) == memory.clear() == 0
    with shared.database.transaction(tenant=attacker) as connection:
        documents = connection.execute("select count(*) from toolfold.documents").fetchone()
    assert documents == (0,)
    assert shared.secrets() == before


@settings(max_examples=25, deadline=None)
@given(attacker=st.none() | st.just("") | ATTACKERS)
def test_a_connection_of_the_processes_role_sees_and_changes_no_others_rows(
    shared: Shared, attacker: str | None
) -> None:
    PostgresDocuments(shared.database).put("trust.json", b"{}")
    with psycopg.connect(shared.address) as connection:
        tables = _tables(connection)
        assert {"entries", "memory_requests", "memory_uses", "audit", "documents"} <= set(tables)
        if attacker is not None:
            connection.execute("select set_config('toolfold.tenant', %s, false)", (attacker,))
        for table in tables:
            name = sql.Identifier("toolfold", table)
            attacks = [
                sql.SQL("select * from {} where tenant = 'acme'"),
                sql.SQL("update {} set tenant = tenant where tenant = 'acme'"),
                sql.SQL("delete from {} where tenant = 'acme'"),
                sql.SQL("delete from {} where tenant <> current_setting('toolfold.tenant', true)"),
            ]
            for attack in attacks:
                assert connection.execute(attack.format(name)).rowcount == 0, table
            connection.commit()
            for whose in (VICTIM, "default" if attacker != "default" else "other"):
                with pytest.raises(InsufficientPrivilege, match="row-level security"):
                    connection.execute(
                        sql.SQL("insert into {} (tenant) values (%s)").format(name), (whose,)
                    )
                connection.rollback()
                if attacker is not None:
                    connection.execute(
                        "select set_config('toolfold.tenant', %s, false)", (attacker,)
                    )
                    connection.commit()


def test_a_tenant_cannot_give_its_rows_to_another(shared: Shared) -> None:
    shared.turns.of("giver").put("k", b"poison")
    with psycopg.connect(shared.address) as connection:
        connection.execute("select set_config('toolfold.tenant', 'giver', false)")
        with pytest.raises(InsufficientPrivilege, match="row-level security"):
            connection.execute("update toolfold.entries set tenant = 'acme'")


def test_every_table_with_a_tenant_is_guarded(shared: Shared) -> None:
    with psycopg.connect(shared.address) as connection:
        unguarded = connection.execute(
            "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid"
            " where c.relnamespace = 'toolfold'::regnamespace and c.relkind = 'r'"
            " and a.attname = 'tenant' and not c.relrowsecurity"
        ).fetchall()
    assert unguarded == []


def _tables(connection: psycopg.Connection) -> list[str]:
    rows = connection.execute(
        "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid"
        " where c.relnamespace = 'toolfold'::regnamespace and c.relkind = 'r'"
        " and a.attname = 'tenant' order by 1"
    ).fetchall()
    return [row[0] for row in rows]


def _closed(memory: Memory) -> list[MemoryRecord]:
    try:
        return list(memory.records())
    finally:
        memory.close()
