"""`Sources` and the wrappers: several lists as one, while they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Settings, Tool, fold
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


def test_a_tool_that_gives_way_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry("mine")
    registry.add(Tool("one", "Mine."), _say)
    sources = Sources([Notes("one"), registry])

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            sources.tools()

    assert names(sources.tools()) == ["one", "mine__one"]
    assert caplog.messages == [
        "the tool one of source mine is served as mine__one: source notes has one of that name"
    ]


def test_a_tool_that_a_source_lists_twice_is_left_out_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sources = Sources([Notes("one", "one")])

    assert names(sources.tools()) == ["one"]
    assert caplog.messages == [
        "the tool one of source notes is left out: source notes has another of that name"
    ]


def test_a_tool_of_a_source_gives_way_to_the_hosts_own_whoever_comes_first() -> None:
    theirs, mine = Registry("theirs"), Registry("mine")
    theirs.add(Tool("one", "Theirs.", source="theirs"), _other)
    mine.add(Tool("one", "Mine."), _say, core=True)
    sources = Sources([theirs, mine])

    assert [(t.name, t.description) for t in sources.tools()] == [
        ("theirs__one", "Theirs."),
        ("one", "Mine."),
    ]
    assert sources.core == ("one",)
    assert sources.find("theirs__one") == (theirs.tools()[0], theirs)
    assert sources.find("one") == (mine.tools()[0], mine)


def test_a_name_that_stands_for_another_is_not_taken_from_a_third() -> None:
    first, second = Registry("first"), Registry("second")
    first.add(Tool("tea"), _say)
    first.add(Tool("second__tea"), _say)
    second.add(Tool("tea"), _other, core=True)
    sources = Sources([first, second])

    assert names(sources.tools()) == ["tea", "second__tea", "second__tea_2"]
    assert sources.core == ("second__tea_2",)


def test_names_that_are_one_on_the_wire_are_told_apart() -> None:
    first, second = Registry("first"), Registry("second")
    first.add(Tool("make.tea"), _say)
    second.add(Tool("make_tea"), _other)
    folded = fold(Sources([first, second]).tools(), shape="openai-chat")

    assert len({tool["function"]["name"] for tool in folded.tools}) == 2


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "b__a", "a.b", "a_b"]), st.booleans()), max_size=4
        ),
        max_size=4,
    )
)
def test_every_tool_of_every_source_is_served_under_one_name(
    lists: list[list[tuple[str, bool]]],
) -> None:
    sources: list[Registry] = []
    for place, pairs in enumerate(lists):
        registry = Registry("ab"[place % 2] + str(place // 2))
        for name, is_claimed in dict(pairs).items():
            registry.add(Tool(name, source=registry.name if is_claimed else None), _say)
        sources.append(registry)
    merged = Sources(sources)
    served = merged.tools()

    assert len(served) == sum(len(source.tools()) for source in sources)
    assert len({tool.name for tool in served}) == len(served)
    for tool in served:
        found = merged.find(tool.name)
        assert found is not None
        assert found.tool in found.source.tools()
        assert merged.served(tool.name) is tool


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
