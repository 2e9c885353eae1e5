"""The rows of sessions and of calls: whose they are, and how long they last."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from toolfold.store.postgres.client_sessions import ClientSession, ClientSessions
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.journal import JournalRows

Opener = Callable[..., Database]

ID = "0" * 32
OPENED = ClientSession(ID, "ann", b"{}")


def test_a_session_is_found_by_whoever_opened_it_and_by_no_other(
    address: str, open_database: Opener
) -> None:
    rows = ClientSessions(open_database(address), 60)
    rows.open(OPENED)
    rows.open(OPENED._replace(owner="bob"))  # an id is taken once
    assert rows.find(ID, "ann") == OPENED
    assert rows.find(ID, "bob") is None
    assert rows.find("1" * 32, "ann") is None
    elsewhere = ClientSessions(open_database(address, tenant="other"), 60)
    assert elsewhere.find(ID, "ann") is None
    assert elsewhere.touch([ID]) == {}
    elsewhere.end(ID)
    assert rows.find(ID, "ann") == OPENED


def test_one_that_was_ended_stays_so_and_one_that_was_lost_is_not_taken_for_it(
    address: str, open_database: Opener
) -> None:
    rows = ClientSessions(open_database(address), 60)
    rows.open(OPENED)
    lost = "1" * 32
    assert rows.touch([ID, lost]) == {ID: False}
    rows.end(ID)
    assert rows.touch([ID, lost]) == {ID: True}
    rows.open(OPENED)
    assert rows.find(ID, "ann") is None
    rows.open(ClientSession(lost, "bob", b"{}"))
    rows.end_of(["bob"])
    assert rows.find(lost, "bob") is None


def test_one_that_nobody_uses_is_over(address: str, open_database: Opener) -> None:
    rows = ClientSessions(open_database(address), 0)
    rows.open(OPENED)
    assert rows.find(ID, "ann") is None
    rows.sweep()
    assert rows.touch([ID]) == {}


def test_where_a_client_listens_is_where_it_listened_last(
    address: str, open_database: Opener
) -> None:
    rows = ClientSessions(open_database(address), 60)
    here, there = uuid.uuid4(), uuid.uuid4()
    rows.open(OPENED)
    assert rows.listener(ID) is None
    rows.listens(ID, here)
    rows.listens(ID, there)
    rows.listens_no_more(ID, here)
    assert rows.listener(ID) == there
    rows.listens_no_more(ID, there)
    assert rows.listener(ID) is None


def test_a_call_is_begun_once_and_keeps_what_it_came_to(
    address: str, open_database: Opener
) -> None:
    rows = JournalRows(open_database(address))
    here, there = uuid.uuid4(), uuid.uuid4()
    assert rows.begin("s", b"1", b"asked", here) is None
    assert rows.begin("s", b"1", b"asked", there) == (here, None)
    rows.end("s", b"1", there, b"of another")
    assert rows.find("s", b"1") == (here, None)
    rows.end("s", b"1", here, b"done")
    assert rows.begin("s", b"1", b"asked", there) == (here, b"done")
    assert rows.begin("s", b"1", b"asked otherwise", there) is None
    assert rows.find("s", b"1") == (there, None)
    assert rows.find("t", b"1") is None
    rows.sweep()
    assert rows.find("s", b"1") == (there, None)
