"""A scope: what is outside exists neither in the request nor for the model's calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.proxying import Between, Call, Say
from support.sdk_agents import AGENTS
from toolfold import Settings
from toolfold.scope import Scope

READ, DELETE = "mcp__files__read_file", "mcp__files__delete_file"
READERS = Scope(("*",), ("*delete*", "shell"))

every_dialect = pytest.mark.parametrize("dialect", list(AGENTS))
both_ways = pytest.mark.parametrize("streamed", [False, True])
any_gate = pytest.mark.parametrize("enabled", ["auto", "on", "off"])


@every_dialect
@both_ways
@any_gate
def test_what_is_outside_goes_neither_up_nor_down(
    dialect: str, streamed: bool, enabled: Any
) -> None:
    replies = iter([[Call(DELETE, {"path": "a"})], [Call("shell", {"path": "b"})]])
    wire = Between(
        lambda asked: next(replies, [Say("Done.")]),
        scope=READERS,
        settings=Settings(enabled=enabled),
    )
    agent = AGENTS[dialect](wire, streamed)
    assert agent.talk("delete it") == []
    assert len(wire.asked) == 3
    first = json.loads(wire.asked[0].body)["tools"]
    assert DELETE not in json.dumps(first)
    assert all(tool.name != "shell" for tool in wire.asked[0].tools)


@every_dialect
@both_ways
def test_what_is_inside_is_called_as_ever(dialect: str, streamed: bool) -> None:
    replies = iter([[Call(READ, {"path": "a"})]])
    wire = Between(lambda asked: next(replies, [Say("Done.")]), scope=READERS, settings=Settings())
    agent = AGENTS[dialect](wire, streamed)
    [call] = agent.talk("read it")
    assert call.name == READ
    assert len(wire.asked) == 2


@every_dialect
def test_a_scope_that_leaves_all_leaves_the_bytes(dialect: str) -> None:
    wire = Between(
        lambda asked: [Say("Hi.")], scope=Scope(("*",), ("nobody*",)), settings=Settings()
    )
    agent = AGENTS[dialect](wire, False)
    agent.talk("hi")
    assert [asked.body for asked in wire.asked] == wire.given
