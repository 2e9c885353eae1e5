"""`Sources` and the wrappers: several lists as one, while they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from toolfold import Settings, Tool
from toolfold.runtime import Agent, Hook, PendingCall, Registry
from toolfold.runtime.scripted import ScriptedModel, calls, says
from toolfold.sources.calls import CallContext
from toolfold.sources.merged import Sources
from toolfold.sources.source import Source

OPEN = Settings(enabled="off")


class Notes(Source):
    """A source that keeps one list and changes it in place."""

    name = "notes"

    def __init__(self, *names: str) -> None:
        self.listed = [Tool(name, f"The note {name}.") for name in names]

    def tools(self) -> list[Tool]:
        return self.listed

    async def call(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> str:
        return f"read {tool.name}"


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def test_a_list_that_is_changed_in_place_is_read_anew() -> None:
    notes = Notes("one")
    sources, prefixed = Sources([notes]), Sources([notes.prefixed("my")])
    assert (names(sources.tools()), names(prefixed.tools())) == (["one"], ["my__one"])

    notes.listed.append(Tool("two"))

    assert names(sources.tools()) == ["one", "two"]
    assert names(prefixed.tools()) == ["my__one", "my__two"]


def test_a_tool_that_is_left_out_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry("mine")
    registry.add(Tool("one", "Mine."), _say)
    sources = Sources([Notes("one"), registry])

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            sources.tools()

    assert caplog.messages == [
        "the tool one of source mine is left out: source notes has one of that name"
    ]


async def _say(call: PendingCall) -> str:
    return "said"


async def _other(call: PendingCall) -> str:
    return "the other ran"


class Meanwhile(Hook):
    """Does something while a person would be asked."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def before_call(self, call: PendingCall) -> None:
        self._work()


def test_behind_a_prefix_a_tool_that_became_another_while_it_was_asked_about_does_not_run() -> None:
    registry = Registry()
    registry.add(Tool("say", "Say."), _say)
    source = registry.prefixed("my").filtered()

    def change() -> None:
        registry.remove("say")
        registry.add(Tool("say", "Something else."), _other)
        source.tools()

    agent = Agent(ScriptedModel([]), source, settings=OPEN, hooks=[Meanwhile(change)])
    result = asyncio.run(agent.call("my__say"))

    assert result.text == '"my__say" is not available in this session.'


def test_behind_a_prefix_a_tool_that_left_while_it_was_asked_about_does_not_run() -> None:
    registry = Registry()
    registry.add(Tool("say", "Say."), _say)
    source = registry.prefixed("my")

    def leave() -> None:
        registry.remove("say")

    agent = Agent(ScriptedModel([]), source, settings=OPEN, hooks=[Meanwhile(leave)])
    result = asyncio.run(agent.call("my__say"))

    assert result.text == '"my__say" is not available in this session.'


def test_behind_a_prefix_a_tool_runs_while_others_come() -> None:
    registry = Registry()
    registry.add(Tool("say", "Say."), _say)
    source = registry.prefixed("my")

    def come() -> None:
        registry.add(Tool("other", "Another."), _other)
        source.tools()

    agent = Agent(ScriptedModel([]), source, settings=OPEN, hooks=[Meanwhile(come)])

    assert asyncio.run(agent.call("my__say")).text == "said"


def test_a_tool_that_is_registered_anew_as_core_is_open_on_the_next_turn() -> None:
    registry = Registry()
    tool = Tool("say", "Say.")

    async def swap(call: PendingCall) -> str:
        registry.remove("say")
        registry.add(tool, _say, core=True)
        return "swapped"

    registry.add(Tool("swap", "Swap."), swap)
    registry.add(tool, _say)
    model = ScriptedModel([calls(("swap", "{}")), says("done")])
    agent = Agent(model, registry, settings=Settings(enabled="on"))
    conversation = agent.conversation()
    asyncio.run(conversation.ask("swap"))

    assert conversation.report is not None
    assert conversation.report.kept == 1


def test_agents_of_the_same_parts_are_equal() -> None:
    model, registry = ScriptedModel([]), Registry()

    assert Agent(model, registry) == Agent(model, [registry])
    assert Agent(model, registry) != Agent(model, Registry())
