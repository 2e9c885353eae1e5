"""What may be lost: entries of every kind, conversations that move, tenants, a database away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster.postgres import Postgres
from cluster.serving import soon
from toolfold import Session, Settings
from toolfold.proxy.exchange import Again, Finished
from toolfold.proxy.opening import open_exchange
from toolfold.serve.replica.shared_sessions import SharedSessions
from toolfold.session import SentArray
from toolfold.store.entries import MemoryEntries, SqliteEntries
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.entries import SESSIONS, TURNS, EntryKind, PostgresEntries
from toolfold.store.store import Entries, StoreAwayError

Opener = Callable[..., Database]


@pytest.fixture(params=["memory", "file", "postgres"])
def entries(request: pytest.FixtureRequest, tmp_path: Path) -> Entries:
    """Entries of each kind: what is said of them here holds for all."""
    if request.param == "memory":
        return MemoryEntries()
    if request.param == "file":
        return SqliteEntries(tmp_path / "entries.sqlite")
    open_database = request.getfixturevalue("open_database")
    return PostgresEntries(open_database(request.getfixturevalue("address")), TURNS)


def test_an_entry_is_what_was_put_last(entries: Entries) -> None:
    assert entries.get("a") is None
    entries.put("a", b"one")
    entries.put("a", b"two")
    entries.put("b", b"\x00\xff")
    assert entries.get("a") == b"two"
    many = [f"unknown {i}" for i in range(1200)]
    assert entries.get_all(["b", *many, "a"]) == {"a": b"two", "b": b"\x00\xff"}
    assert entries.get_all([]) == {}
    entries.forget("a")
    entries.forget("never there")
    assert entries.get("a") is None


def test_a_tenant_sees_no_others_entries(entries: Entries) -> None:
    one, two = entries.of("one"), entries.of("two")
    entries.put("k", b"nobody's")
    one.put("k", b"of one")
    assert (entries.get("k"), one.get("k"), two.get("k")) == (b"nobody's", b"of one", None)
    assert two.get_all(["k", "3:one:k", "one", ""]) == {}
    two.forget("k")
    two.of("one").of("two").put("k", b"of two")
    assert (one.get("k"), two.get("k")) == (b"of one", b"of two")
    assert entries.of("default").get("k") == b"nobody's"


def test_what_the_database_cannot_hold_is_lost_and_raises_nothing(
    address: str, open_database: Opener
) -> None:
    entries = PostgresEntries(open_database(address), TURNS)
    for key in ("\x00", "\ud800", "k" * 100_000):
        entries.put(key, b"1")
        entries.get(key)
        entries.forget(key)
    entries.of("x\x00y").put("a", b"1")
    entries.put("a", b"1")
    assert entries.get("a") == b"1"


def test_a_tenants_entries_are_bounded_by_number_size_and_age(
    address: str, open_database: Opener
) -> None:
    database = open_database(address)
    few = PostgresEntries(database, EntryKind("few", 3600, 10**6, 3))
    small = PostgresEntries(database, EntryKind("small", 3600, 1000))
    brief = PostgresEntries(database, EntryKind("brief", 0, 1000))
    for kind in (few, small, brief):
        for i in range(6):
            kind.put(str(i), b"x" * 200)
            kind.of("other").put(str(i), b"x")
    small.put("too large", b"x" * 2000)
    for kind in (few, small, brief):
        kind.prune()
    fresh = [PostgresEntries(database, kind.kind) for kind in (few, small, brief)]
    keys = [*map(str, range(6)), "too large"]
    assert [sorted(kind.get_all(keys)) for kind in fresh] == [["3", "4", "5"], ["3", "4", "5"], []]
    assert len(fresh[1].of("other").get_all(keys)) == 6


def test_what_a_tenant_left_behind_goes_when_it_is_too_old_though_it_never_comes_again(
    address: str, open_database: Opener
) -> None:
    lasting, brief = EntryKind("some", 3600, 1000), EntryKind("some", 0, 1000)
    PostgresEntries(open_database(address), lasting).of("gone").put("a", b"x")
    assert PostgresEntries(open_database(address), lasting).of("gone").get("a") == b"x"

    PostgresEntries(open_database(address), brief).of("here").put("b", b"x")
    soon(lambda: PostgresEntries(open_database(address), lasting).of("gone").get("a") is None)


def test_a_conversation_begun_at_one_proxy_goes_on_at_another(
    address: str, open_database: Opener
) -> None:
    here, there = (PostgresEntries(open_database(address), TURNS) for _ in range(2))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "send a letter"}]
    body, call = _asked(messages, here.of("acme"))
    assert b"tool_search" in body
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "sent"},
    ]
    restored = [
        open_exchange(
            "openai-chat", _body(messages), {}, settings=FOLDING, store=store, owner="ada"
        )
        for store in (there.of("acme"), there.of("other"), there)
    ]
    assert [b"a letter please" in each.body for each in restored] == [True, False, False]


def test_with_the_database_away_a_process_goes_on_with_what_it_knows(
    postgres_alone: tuple[Postgres, str], open_database: Opener
) -> None:
    server, address = postgres_alone
    here, there = (PostgresEntries(open_database(address), TURNS) for _ in range(2))
    here.put("a", b"1")
    assert there.get("b") is None
    server.stop("immediate")
    here.put("b", b"2")
    assert here.get_all(["a", "b"]) == {"a": b"1", "b": b"2"}
    assert here.of("other").get("a") is None
    assert there.get("a") is None
    here.forget("a")
    assert here.get("a") is None


# ---- a gateway's conversations

FULL = Session(
    revealed=("a", "b"),
    fruitless=2,
    sent=SentArray("chat", "native", "d", (("a", "{}"),), frozenset({"b"}), "use it"),
    defined=(("a", '{"name":"a"}'),),
    bridged=True,
    breaks=1,
    refused=("x",),
)


def test_a_gateways_conversation_that_moves_has_what_it_had(
    address: str, open_database: Opener
) -> None:
    async def main() -> None:
        here, there = (
            SharedSessions(PostgresEntries(open_database(address), SESSIONS)) for _ in range(2)
        )
        assert await here.begun("k", "acme") == Session()
        assert await here.joined("k", Session(), FULL, "acme") == (Session(), FULL)
        began = await there.begun("k", "acme")
        assert began == FULL
        after = FULL.reveal(["c"])
        assert await there.joined("k", began, after, "acme") == (FULL, after)
        assert await here.begun("k", "acme") == after  # known here, and changed there
        here.forget("k")
        assert "k" not in here
        assert await here.begun("k", "acme") == after

        eve = SharedSessions(PostgresEntries(open_database(address), SESSIONS))
        assert await eve.begun("k", "other") == await eve.begun("k") == Session()

        await there.end("k", "acme")
        third = SharedSessions(PostgresEntries(open_database(address), SESSIONS))
        assert await third.begun("k", "acme") == Session()

    asyncio.run(main())


def test_steps_that_end_together_at_several_replicas_lose_nothing(
    address: str, open_database: Opener
) -> None:
    replicas = [SharedSessions(PostgresEntries(open_database(address), SESSIONS)) for _ in range(4)]

    async def steps(number: int) -> None:
        for i in range(5):
            began = await replicas[number].begun("k")
            await replicas[number].joined("k", began, began.reveal([f"{number}.{i}"]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(asyncio.run, map(steps, range(4))))
    found = asyncio.run(replicas[0].begun("k"))
    assert set(found.revealed) == {f"{n}.{i}" for n in range(4) for i in range(5)}


def test_with_the_database_away_a_conversation_goes_on_where_it_is(
    postgres_alone: tuple[Postgres, str], open_database: Opener
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        sessions = SharedSessions(PostgresEntries(open_database(address), SESSIONS))
        await sessions.joined("k", Session(), FULL)
        server.stop("immediate")
        assert await sessions.begun("k") == FULL
        after = FULL.reveal(["c"])
        assert await sessions.joined("k", FULL, after) == (FULL, after)
        assert await sessions.begun("k") == after
        assert await sessions.begun("never seen") == Session()

    asyncio.run(main())


def test_what_a_conversation_did_while_the_database_was_away_is_known_to_all_afterwards(
    postgres_alone: tuple[Postgres, str], open_database: Opener
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        databases = [open_database(address) for _ in range(2)]
        here, there = (SharedSessions(PostgresEntries(each, SESSIONS)) for each in databases)
        await here.joined("k", Session(), Session(revealed=("a",)))
        began = await here.begun("k")
        server.stop("immediate")
        await here.joined("k", began, began.reveal(["b"]))
        at_last = await here.begun("k")
        await here.joined("k", at_last, at_last.reveal(["c"]))
        server.start()
        await asyncio.to_thread(soon, lambda: all(map(_answers, databases)))
        # A step that began before all that, and one that ended elsewhere meanwhile.
        await there.joined("k", began, began.reveal(["d"]))
        before, after = await here.joined("k", began, began.reveal(["e"]))
        assert set(before.revealed) == {"a", "d"}
        assert set(after.revealed) == {*"abcde"}
        for replica in (here, there):
            assert await replica.begun("k") == after

        server.stop("immediate")
        await here.joined("k", after, after.searched_in_vain())
        server.start()
        await asyncio.to_thread(soon, lambda: all(map(_answers, databases)))
        found = await here.begun("k")  # nothing else is done
        assert found.fruitless == after.fruitless + 1
        assert await there.begun("k") == found

    asyncio.run(main())


def _answers(database: Database) -> bool:
    try:
        with database.transaction():
            return True
    except StoreAwayError:
        return False


FOLDING = Settings(enabled="on", prefetch="off")
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": text,
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
        },
    }
    for name, text in (("send_letter", "Send a letter."), ("buy_stamps", "Buy stamps."))
]


def _body(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "tools": _TOOLS}).encode()


def _asked(messages: list[dict[str, Any]], store: Entries) -> tuple[bytes, dict[str, Any]]:
    """Have the model search, and then call; return what it was sent last, and the call."""
    opened: Any = open_exchange(
        "openai-chat", _body(messages), {}, settings=FOLDING, store=store, owner="ada"
    )
    again = opened.end(_reply("call_search1234567", "tool_search", {"query": "a letter please"}))
    assert isinstance(again, Again)
    call = {"name": "send_letter", "arguments": {"to": "Ada"}}
    finished = opened.end(_reply("call_letter1234567", "tool_call", call))
    assert isinstance(finished, Finished)
    (made,) = json.loads(finished.tail)["choices"][0]["message"]["tool_calls"]
    assert made["function"]["name"] == "send_letter"
    return again.body, made


def _reply(call_id: str, name: str, arguments: dict[str, Any]) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "r", "object": "chat.completion", "choices": [choice]}).encode()
