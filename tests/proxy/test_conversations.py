"""Whole conversations through the proxy, judged by what the model was asked each time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.proxying import Asked, Between, Call, Say, Think, texts_of
from support.sdk_agents import AGENTS, Agent
from toolfold import Settings
from toolfold.store.entries import MemoryEntries

RENAME, COPY = "mcp__files__rename_file", "mcp__files__copy_file"
SEARCH = Call("tool_search", {"query": "rename a file"})
BRIDGE = {"tool_search", "tool_describe", "tool_call"}

every_dialect = pytest.mark.parametrize("dialect", list(AGENTS))
both_ways = pytest.mark.parametrize("streamed", [False, True])


def wrapped(name: str = RENAME, **arguments: Any) -> Call:
    return Call("tool_call", {"name": name, "arguments": arguments or {"path": "a.txt"}})


def scripted(*replies: list[Any]) -> Any:
    """Return a model that says these things, one after the other, and then that it is done."""
    left: Iterator[list[Any]] = iter(replies)
    return lambda asked: next(left, [Say("Done.")])


def shared_prefixes(asked: list[Asked]) -> None:
    """Every request begins with what the one before it held, to the byte, tools included."""
    for one, other in pairwise(asked):
        before, after = texts_of(one.body), texts_of(other.body)
        assert after[: len(before)] == before
        assert json.loads(one.body)["tools"] == json.loads(other.body)["tools"]


def paired(asked: Asked) -> None:
    """Every call in a request has its result, and every result its call."""
    calls = [call.id for call in asked.calls]
    results = [result.call_id for result in asked.results]
    assert sorted(calls) == sorted(results)
    assert len(set(calls)) == len(calls)


def agent_of(dialect: str, wire: Between, streamed: bool) -> Agent:
    return AGENTS[dialect](wire, streamed)


@every_dialect
@both_ways
def test_a_search_and_a_call_are_one_call_for_the_client(dialect: str, streamed: bool) -> None:
    wire = Between(scripted([Say("Looking."), SEARCH], [wrapped()]))
    agent = agent_of(dialect, wire, streamed)
    [call] = agent.talk("rename it")
    assert (call.name, call.arguments) == (RENAME, {"path": "a.txt"})
    shared_prefixes(wire.asked)
    last = wire.asked[-1]
    paired(last)
    assert [c.name for c in last.calls] == ["tool_search", "tool_call"]
    assert last.text_of("tool_call") == f"did {RENAME}"


@every_dialect
@both_ways
def test_bridge_and_real_calls_of_one_turn_are_answered_in_one_turn(
    dialect: str, streamed: bool
) -> None:
    mixed = [SEARCH, wrapped(), Call("shell", {"path": "b"}), Call("tool_describe", {"name": COPY})]
    wire = Between(scripted([SEARCH], [Say("Both."), *mixed]))
    agent = agent_of(dialect, wire, streamed)
    calls = agent.talk("rename it")
    assert sorted(call.name for call in calls) == [RENAME, "shell"]
    assert len(wire.asked) == 3
    shared_prefixes(wire.asked)
    paired(wire.asked[-1])
    turns = [item["role"] for item in json.loads(wire.asked[-1].body).get("messages", ())]
    if dialect == "anthropic-messages":
        assert turns == ["user", "assistant", "user", "assistant", "user"]


@every_dialect
@both_ways
def test_a_wrong_call_is_corrected_inside(dialect: str, streamed: bool) -> None:
    wire = Between(scripted([wrapped(paht="a")], [Call("no_such_tool", {})], [wrapped()]))
    agent = agent_of(dialect, wire, streamed)
    [call] = agent.talk("rename it")
    assert call.arguments == {"path": "a.txt"}
    assert "path" in wire.asked[1].results[0].text
    assert "no_such_tool" in wire.asked[2].results[1].text
    shared_prefixes(wire.asked)


@every_dialect
@both_ways
def test_arguments_are_repaired_for_the_client_and_stay_the_models_own_in_its_history(
    dialect: str, streamed: bool
) -> None:
    wire = Between(scripted([wrapped(path="a", times="3")], [Say("Done.")]))
    agent = agent_of(dialect, wire, streamed)
    [call] = agent.talk("rename it three times")
    assert call.arguments == {"path": "a", "times": 3}
    [made] = wire.asked[-1].calls
    given = made.arguments if isinstance(made.arguments, dict) else json.loads(made.arguments)
    assert given == {"name": RENAME, "arguments": {"path": "a", "times": "3"}}


@every_dialect
@both_ways
def test_a_lost_store_leaves_a_direct_call_by_name(dialect: str, streamed: bool) -> None:
    wire = Between(scripted([Think("Hm."), SEARCH], [Think("So."), wrapped()], [Say("Done.")]))
    agent = agent_of(dialect, wire, streamed)
    agent.say("rename it")
    calls = agent.ask()
    wire.store = MemoryEntries()
    agent.results(calls)
    assert agent.ask() == []
    last = wire.asked[-1]
    paired(last)
    assert [call.name for call in last.calls] == [RENAME]
    assert b"thinking" not in last.body
    assert b'"reasoning"' not in last.body


@every_dialect
@both_ways
def test_a_text_after_a_search_is_kept_with_it(dialect: str, streamed: bool) -> None:
    wire = Between(scripted([Say("Looking."), SEARCH], [Say("There is one.")], [Say("Yes.")]))
    agent = agent_of(dialect, wire, streamed)
    assert agent.talk("is there a tool?") == []
    agent.talk("sure?")
    assert len(wire.asked) == 3
    shared_prefixes(wire.asked)


@every_dialect
@both_ways
def test_at_the_cap_the_client_gets_what_was_said(dialect: str, streamed: bool) -> None:
    wire = Between(lambda asked: [Say("Hm."), SEARCH], rounds_at_most=3)
    agent = agent_of(dialect, wire, streamed)
    assert agent.talk("rename it") == []
    assert len(wire.asked) == 4
    said = json.dumps(agent.items[1:])
    assert "Hm." in said
    assert "tool_search" not in said


@every_dialect
@both_ways
def test_a_model_that_only_searches_leaves_a_note(dialect: str, streamed: bool) -> None:
    wire = Between(lambda asked: [SEARCH], rounds_at_most=2)
    agent = agent_of(dialect, wire, streamed)
    assert agent.talk("rename it") == []
    assert "I searched several times" in json.dumps(agent.items[1:])


@every_dialect
@both_ways
def test_the_tools_of_the_bridge_stay_the_same_while_the_clients_change(
    dialect: str, streamed: bool
) -> None:
    wire = Between(scripted([SEARCH], [wrapped()], [SEARCH], [wrapped(COPY)]))
    agent = agent_of(dialect, wire, streamed)
    agent.talk("rename it", rounds=1)
    agent.tools = agent.tools[:-3]
    agent.talk("copy it")
    shared_prefixes(wire.asked)


@every_dialect
def test_below_the_gate_the_same_bytes_go_up_and_come_down(dialect: str) -> None:
    wire = Between(scripted([Call("shell", {"path": "a"})]), settings=Settings())
    agent = agent_of(dialect, wire, streamed=True)
    agent.talk("go")
    assert [asked.body for asked in wire.asked] == wire.given


_part = st.sampled_from(
    [
        Say("Some words, \u00e4\u4e16\U0001f600."),
        Think("Thoughts."),
        SEARCH,
        Call("tool_describe", {"name": RENAME}),
        wrapped(),
        wrapped(path="a", times="2"),
        wrapped("mcp__files__no_such_file"),
        wrapped(paht="a"),
        Call(RENAME, {"path": "direct"}),
        Call(RENAME, {}),
        Call("shell", {"path": "b"}),
        Call("made_up", {}),
    ]
)


@given(
    dialect=st.sampled_from(list(AGENTS)),
    streamed=st.booleans(),
    piece=st.sampled_from([0, 1, 64]),
    replies=st.lists(st.lists(_part, min_size=1, max_size=4), max_size=8),
    turns=st.integers(1, 3),
)
def test_any_conversation_keeps_its_bytes(
    dialect: str, streamed: bool, piece: int, replies: list[list[Any]], turns: int
) -> None:
    wire = Between(scripted(*replies), piece=piece)
    agent = agent_of(dialect, wire, streamed)
    for turn in range(turns):
        for call in agent.talk(f"turn {turn}: \u00e9\u3042"):
            assert call.name not in BRIDGE
            assert isinstance(call.arguments, dict)
    if wire.asked:
        shared_prefixes(wire.asked)
    for asked in wire.asked:
        paired(asked)
    # What is not the model's goes on as it came.
    for given_body, asked in zip(wire.given, _firsts(wire), strict=True):
        theirs = [text for text in texts_of(given_body) if '"role": "user"' in text]
        ours = texts_of(asked.body)
        plain = [text for text in theirs if "tool_result" not in text]
        assert [text for text in ours if text in plain] == plain


def _firsts(wire: Between) -> list[Asked]:
    """Return the first of the requests that each of the client's came to."""
    firsts: list[Asked] = []
    at = 0
    for report in wire.reports:
        firsts.append(wire.asked[at])
        at += report.rounds
    return firsts
