"""What the proxy remembers: bounded, and lost without a word."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from support.proxying import Between, Call, Say
from support.sdk_agents import AGENTS
from toolfold.store.entries import MemoryEntries, SqliteEntries

WRAPPED = Call("tool_call", {"name": "mcp__files__copy_file", "arguments": {"path": "a"}})


def test_memory_keeps_the_entries_used_last() -> None:
    store = MemoryEntries(entries=2)
    store.put("a", b"1")
    store.put("b", b"2")
    assert store.get("a") == b"1"
    store.put("c", b"3")
    assert (store.get("a"), store.get("b"), store.get("c")) == (b"1", None, b"3")


def test_memory_stays_within_its_room() -> None:
    store = MemoryEntries(room=100)
    for number in range(50):
        store.put(str(number), bytes(30))
    assert store.held <= 100
    store.put("huge", bytes(1_000))
    assert store.get("huge") is None
    assert len(store) == 3


def test_a_file_outlives_the_process_and_is_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.db"
    store = SqliteEntries(path)
    store.put("a", b"1")
    store.put("a", b"2")
    store.close()
    assert SqliteEntries(path).get("a") == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, and no database at all.\n" * 100, "utf-8")
    with pytest.raises(sqlite3.Error):
        SqliteEntries(path)
    assert path.read_text("utf-8").startswith("These are my notes")


def test_a_file_keeps_the_newest(tmp_path: Path) -> None:
    store = SqliteEntries(tmp_path / "history.db", entries=10)
    for number in range(1_000):
        store.put(str(number), b"x")
    assert store.get("0") is None
    assert store.get("999") == b"x"


def test_a_file_stays_within_its_room(tmp_path: Path) -> None:
    path, room = tmp_path / "history.db", 1024 * 1024
    store = SqliteEntries(path, room=room)
    for number in range(200):
        store.put(str(number), bytes(60_000))
    store.put("huge", bytes(room + 1))
    store.close()
    assert path.stat().st_size < 2 * room
    again = SqliteEntries(path, room=room)
    kept = [number for number in range(200) if again.get(str(number)) is not None]
    assert kept == list(range(kept[0], 200))
    assert room / 2 < 60_000 * len(kept) <= room
    assert again.get("huge") is None
    again.close()


def test_a_file_that_is_closed_or_broken_loses_what_it_is_given(tmp_path: Path) -> None:
    store = SqliteEntries(tmp_path / "history.db")
    store.close()
    store.put("a", b"1")
    assert store.get("a") is None


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_a_conversation_goes_on_after_a_restart_with_a_file(dialect: str, tmp_path: Path) -> None:
    replies = iter([[Call("tool_search", {"query": "copy"})], [WRAPPED], [Say("Done.")]])
    wire = Between(lambda asked: next(replies), store=SqliteEntries(tmp_path / "history.db"))
    agent = AGENTS[dialect](wire, True)
    agent.say("copy it")
    calls = agent.ask()
    wire.store = SqliteEntries(tmp_path / "history.db")
    agent.results(calls)
    agent.ask()
    assert [call.name for call in wire.asked[-1].calls] == ["tool_search", "tool_call"]


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_nobody_is_given_what_anothers_conversation_kept(dialect: str) -> None:
    replies = iter([[Call("tool_search", {"query": "secret"})], [WRAPPED], [Say("Done.")]])
    wire = Between(lambda asked: next(replies), owner="ada")
    agent = AGENTS[dialect](wire, False)
    agent.say("copy it")
    calls = agent.ask()
    wire.more["owner"] = "eve"
    agent.results(calls)
    agent.ask()
    assert b"secret" not in wire.asked[-1].body


def test_ids_that_servers_use_again_are_told_apart() -> None:
    play = iter(
        [
            [Call("tool_call", {"name": "mcp__files__copy_file", "arguments": {"path": "a"}},
                  id="call_0")],
            [Call("tool_call", {"name": "mcp__files__copy_file", "arguments": {"path": "b"}},
                  id="call_0")],
            [Say("Done.")],
        ]
    )  # fmt: skip
    wire = Between(lambda asked: next(play))
    agent = AGENTS["openai-chat"](wire, False)
    agent.talk("copy both")
    assert [call.arguments for call in wire.asked[-1].calls] == [
        '{"name": "mcp__files__copy_file", "arguments": {"path": "a"}}',
        '{"name": "mcp__files__copy_file", "arguments": {"path": "b"}}',
    ]
