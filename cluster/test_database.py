"""The connections: a database that stands still, one that has no room, and who is paused on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster.postgres import Postgres
from cluster.serving import Replica, soon
from toolfold.store.postgres.database import POOL, Database
from toolfold.store.postgres.documents import PostgresDocuments
from toolfold.store.store import StoreAwayError

_SERVERS = Path(__file__).resolve().parent / "servers"

_HOLDER = """
import sys, threading
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.documents import PostgresDocuments

def held(old):
    print("held", flush=True)
    threading.Event().wait()

with Database(sys.argv[1], statement_timeout=float(sys.argv[2])) as database:
    PostgresDocuments(database).update("a", held)
"""


def test_a_database_that_stands_still_is_away_within_seconds_and_back_when_it_goes_on(
    postgres_alone: tuple[Postgres, str], open_database: Callable[..., Database]
) -> None:
    server, address = postgres_alone
    documents = PostgresDocuments(open_database(address))
    documents.put("a", b"1")
    with server.standing_still():
        began = time.monotonic()
        with pytest.raises(StoreAwayError):
            documents.read("a")
        assert time.monotonic() - began < 8
        began = time.monotonic()
        with pytest.raises(StoreAwayError):
            documents.read("a")
        assert time.monotonic() - began < 0.1  # nobody else waits

    soon(lambda: _read(documents, "a") == b"1", 10)


def test_a_statement_that_is_under_way_when_the_database_stands_still_is_given_up(
    postgres_alone: tuple[Postgres, str], open_database: Callable[..., Database]
) -> None:
    server, address = postgres_alone
    database = open_database(address, statement_timeout=0.5)
    with (
        pytest.raises(StoreAwayError, match="no answer came in"),
        database.transaction() as connection,
        server.standing_still(),
    ):
        began = time.monotonic()
        connection.execute("select 1")

    assert 1 < time.monotonic() - began < 4


def test_a_database_that_has_too_much_to_do_is_not_away(
    address: str, open_database: Callable[..., Database]
) -> None:
    database = open_database(address)

    def answered(_: int) -> bool:
        try:
            with database.transaction() as connection:
                connection.execute("select pg_sleep(0.5)")
        except StoreAwayError:
            assert PostgresDocuments(database).read("a") is None  # whoever comes later is answered
            return False
        return True

    with ThreadPoolExecutor(8 * POOL) as threads:
        found = list(threads.map(answered, range(8 * POOL)))

    assert 5 * POOL <= sum(found) < 8 * POOL  # who waited too long was refused, and nobody else


def test_whoever_is_paused_while_it_changes_a_document_is_not_waited_for_for_ever(
    address: str, open_database: Callable[..., Database]
) -> None:
    documents = PostgresDocuments(open_database(address))
    command = [sys.executable, "-c", _HOLDER, address, "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            os.kill(holder.pid, signal.SIGSTOP)
            assert documents.update("a", lambda _: b"mine") == 1
        finally:
            holder.kill()


def test_calls_go_on_while_the_database_stands_still(
    postgres_alone: tuple[Postgres, str], tmp_path: Path
) -> None:
    server, address = postgres_alone
    arguments = ["-S", "-E", str(_SERVERS / "ledger.py"), "stock", str(tmp_path / "ledger.jsonl")]
    servers = {"stock": {"command": sys.executable, "args": arguments}}
    with Replica(tmp_path, "one", address, servers) as replica:
        session = replica.session()
        assert session.call("stock__write_0", mark="before", who="me") == (
            "stock write_0 me before"
        )
        with server.standing_still():
            began = time.monotonic()
            session.call("stock__write_0", mark="first", who="me")  # run, or to be tried again
            assert time.monotonic() - began < 8
            began = time.monotonic()
            for number in range(5):
                said = session.call("stock__write_0", mark=str(number), who="me")
                assert said == f"stock write_0 me {number}"
            assert time.monotonic() - began < 2
            assert replica.said("may run twice")


def test_nobody_waits_for_a_changed_list_to_be_judged_while_the_database_stands_still(
    postgres_alone: tuple[Postgres, str], tmp_path: Path
) -> None:
    server, address = postgres_alone
    arguments = ["-S", "-E", str(_SERVERS / "fickle.py")]
    servers = {"fickle": {"command": sys.executable, "args": arguments}}
    with Replica(tmp_path, "one", address, servers, trust="changes") as replica:
        session = replica.session()
        longest = 0.0
        with server.standing_still():
            end = time.monotonic() + 20
            while not replica.said("new and changed tools wait"):
                began = time.monotonic()
                assert began < end
                session.ask("ping")
                longest = max(longest, time.monotonic() - began)

    assert longest < 1.5


def _read(documents: PostgresDocuments, name: str) -> bytes | None:
    try:
        return documents.read(name)
    except StoreAwayError:
        return None
