"""Reveal: what a search finds joins the end of the list, and is called directly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import SHAPES, lists_of
from toolfold import Answer, Invocation, Session, Settings, Tool, fold
from toolfold.prompts import BRIDGE_NAMES
from toolfold.runtime import Agent, Registry, ResultMessage, ScriptedModel, calls, says

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
TOOLS = [
    {"name": "read_mail", "description": "Read a message in the mailbox.", "parameters": SCHEMA},
    {"name": "send_mail", "description": "Send a message by mail.", "parameters": SCHEMA},
    {"name": "book_room", "description": "Book a meeting room.", "parameters": SCHEMA},
]


def revealing(tools: Any = TOOLS, *, session: Session | None = None, **settings: Any) -> Any:
    given: dict[str, Any] = {"enabled": "on", "strategy": "reveal", **settings}
    chosen = Settings(**given)
    return fold(tools, settings=chosen, session=session)


def names(tools: list[Any]) -> list[str]:
    return [tool["name"] for tool in tools]


def test_a_search_and_a_describe_stand_for_the_folded_tools() -> None:
    folded = revealing()

    assert names(folded.tools) == ["tool_search", "tool_describe"]
    assert folded.tools[0]["description"] == (
        "Find tools that are not listed here, by what they do. What is found is then listed: call "
        "it directly, by its name. 3 tools folded."
    )
    assert folded.guidance == (
        "Not all of your tools are listed. Before you say that something cannot be done, look for "
        "a tool with tool_search: what it finds is then listed. Call listed tools directly."
    )
    assert revealing(bridge_texts="short").guidance == (
        "No listed tool fits? First call tool_search, then the tool that it found."
    )


def test_what_a_search_finds_joins_the_end_of_the_list_as_it_came_in() -> None:
    folded = revealing()

    answer = folded.resolve("tool_search", {"query": "book_room", "limit": 1})
    after = folded.for_session(answer.session)

    assert answer.text == (
        '1 of 3 tools for "book_room":\n'
        "- book_room(path: string): Book a meeting room.\n"
        "They are listed now. Call them directly, by name."
    )
    assert after.tools == [*folded.tools, TOOLS[2]]
    assert after.hidden == ("read_mail", "send_mail")
    report = after.report
    assert (report.strategy, report.kept, report.deferred) == ("reveal", 1, 2)
    assert report.tools_after == len(after.tools) == 3


def test_the_order_is_that_of_the_first_reveal() -> None:
    session = Session().reveal(["send_mail"]).reveal(["read_mail", "send_mail"])

    assert names(revealing(session=session).tools)[2:] == ["send_mail", "read_mail"]


def test_a_found_tool_is_called_directly_and_its_arguments_are_checked() -> None:
    folded = revealing(session=Session(("book_room",)))

    call = folded.resolve("book_room", {"path": "a"})
    wrong = folded.resolve("book_room", {})

    assert isinstance(call, Invocation)
    assert (call.tool.name, call.via) == ("book_room", "direct")
    assert isinstance(wrong, Answer)
    assert wrong.text.endswith("Signature: book_room(path: string)")


def test_a_model_that_knows_the_bridge_from_elsewhere_is_answered() -> None:
    call = revealing().resolve("tool_call", {"name": "book_room", "arguments": {"path": "a"}})

    assert isinstance(call, Invocation)
    assert call.via == "tool_call"


@pytest.mark.parametrize("query", ["", "quarks", None, 5, "quarks | bosons"])
def test_a_search_without_hits_is_answered_as_by_the_bridge(query: Any) -> None:
    bridge = fold(TOOLS, settings=Settings(enabled="on"))

    answer = revealing().resolve("tool_search", {"query": query})

    assert answer == bridge.resolve("tool_search", {"query": query})


def test_an_agent_calls_what_it_found_by_its_name_and_sees_it_in_the_list() -> None:
    registry = Registry()

    @registry.tool
    def book_room(room: str) -> str:
        """Book a meeting room."""
        return f"booked {room}"

    model = ScriptedModel(
        [
            calls(("tool_search", {"query": "book a meeting room"})),
            calls(("book_room", {"room": "Oslo"})),
            says("Done."),
        ]
    )
    settings = Settings(enabled="on", strategy="reveal")
    conversation = Agent(model, registry, settings=settings, prefetch="always").conversation()

    done = asyncio.run(conversation.ask("I need a room"))

    listed = [[tool["function"]["name"] for tool in asked.tools] for asked in model.requests]
    assert done.text == "Done."
    assert listed[0] == ["tool_search", "tool_describe"]
    assert listed[1] == listed[2] == ["tool_search", "tool_describe", "book_room"]
    assert [m.text for m in conversation.messages if isinstance(m, ResultMessage)][1] == (
        "booked Oslo"
    )
    assert conversation.messages[0].note == ""  # type: ignore[union-attr]


def test_a_description_that_holds_the_bridges_words_is_passed_on_as_it_is() -> None:
    own = "Run one with tool_call(name, arguments)."
    folded = revealing([Tool("odd", own)])

    text = folded.resolve("tool_search", {"query": "odd"}).text

    assert own in text
    assert text.endswith("They are listed now. Call them directly, by name.")


def test_a_revealed_name_that_is_gone_or_open_adds_nothing() -> None:
    session = Session(("gone", "read_mail", "book_room"))

    folded = revealing(session=session, core=("read_mail",))

    assert names(folded.tools) == ["read_mail", "tool_search", "tool_describe", "book_room"]


def test_a_list_that_reveal_folded_is_known_as_folded() -> None:
    once = revealing(session=Session(("book_room",)))

    twice = fold(once.tools, settings=Settings(enabled="on"))

    assert twice.report.reason == "the list is folded already"
    assert twice.tools == once.tools


def test_the_gate_opens_as_for_the_bridge() -> None:
    settings: dict[str, Any] = {"enabled": "auto"}
    assert not revealing(**settings).active
    assert revealing(threshold_pct=0, **settings).active


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "gemini"])
@given(data=st.data())
def test_what_was_shown_before_stays_to_the_byte(shape: str, data: st.DataObject) -> None:
    tools = data.draw(lists_of(shape, min_size=2))
    folded = revealing(tools)
    order = data.draw(st.permutations(folded.catalog.names))
    before = [json.dumps(tool) for tool in folded.tools]
    session = Session()
    for name in order:
        session = session.reveal([name])
        now = [json.dumps(tool) for tool in folded.for_session(session).tools]
        assert now[: len(before)] == before
        assert len(now) == len(before) + 1
        before = now
    assert fold(tools, settings=folded.bridge.settings, session=session).tools == [
        json.loads(text) for text in before
    ]


def test_a_cache_mark_stays_where_it_is_when_tools_are_revealed() -> None:
    marked = [
        {"name": f"t{i}", "description": "Does it.", "input_schema": {"type": "object"}}
        for i in range(3)
    ]
    marked[-1]["cache_control"] = {"type": "ephemeral"}
    folded = revealing(marked)

    after = folded.for_session(Session(("t0", "t1")))

    assert folded.tools[-1]["cache_control"] == {"type": "ephemeral"}
    assert after.tools[: len(folded.tools)] == folded.tools
    assert [t["name"] for t in after.tools if "cache_control" in t] == ["tool_describe"]


def test_gemini_gets_revealed_functions_at_the_end_of_the_group() -> None:
    tools = [{"functionDeclarations": [{**tool} for tool in TOOLS]}]
    folded = revealing(tools)

    (group,) = folded.for_session(Session(("send_mail",))).tools

    assert names(group["functionDeclarations"]) == ["tool_search", "tool_describe", "send_mail"]


def test_each_tool_of_a_mixed_list_comes_back_in_its_own_shape() -> None:
    chat = {"type": "function", "function": {"name": "a", "description": "A.", "parameters": {}}}
    mcp = {"name": "b", "description": "B.", "inputSchema": {"type": "object"}}

    folded = revealing([chat, mcp], session=Session(("b", "a")))

    assert folded.tools[2:] == [mcp, chat]
    assert folded.tools[0]["function"]["name"] in BRIDGE_NAMES
