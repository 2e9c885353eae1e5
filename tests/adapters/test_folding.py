"""`toolfold.adapters._folding`: what every adapter stands on, without any framework."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Answer, Invocation, MissingExtraError, NameClashError, Scope, Session, Settings
from toolfold.adapters._folding import (
    FoldOptions,
    definition,
    joined_records,
    ranked_names,
    session_of,
    session_record,
    shown_tools,
)
from toolfold.demo import demo_catalog

TOOLS = [definition(tool.name, tool.description, tool.parameters) for tool in demo_catalog()]


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("pydantic_ai", "pydantic-ai"),
        ("langchain", "langchain"),
        ("fastmcp", "fastmcp"),
        ("openai_agents", "openai-agents"),
        ("google_adk", "google-adk"),
        ("llama_index", "llama-index"),
        ("strands", "strands"),
        ("agent_framework", "agent-framework"),
        ("haystack", "haystack"),
        ("smolagents", "smolagents"),
    ],
)
def test_without_its_framework_an_adapter_says_what_to_install(module: str, extra: str) -> None:
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module(f"toolfold.adapters.{module}")

    assert caught.value.extra == extra
    assert caught.value.hint == f"install it with `pip install 'toolfold[{extra}]'`"


def test_the_frameworks_own_tools_are_shown_by_their_names_and_the_bridge_behind_them() -> None:
    folded = FoldOptions(Settings(enabled="on"), core=("list_calendar_events",)).fold(TOOLS)

    shown = shown_tools(folded)

    assert [(tool.name, tool.is_bridge) for tool in shown] == [
        ("list_calendar_events", False),
        ("tool_search", True),
        ("tool_describe", True),
        ("tool_call", True),
    ]
    assert {"from", "to"} <= set(shown[0].parameters["properties"])


@pytest.mark.parametrize("taken", ["tool_search", "tool_describe", "tool_call"])
def test_where_a_tool_has_a_name_of_the_bridges_the_bridge_has_others(taken: str) -> None:
    options = FoldOptions(Settings(enabled="on"))
    schema = {"type": "object", "properties": {"shed": {"type": "string"}}}
    shed = definition(taken, "Look for hammers in the shed.", schema)

    folded = options.fold([*TOOLS, shed])

    shown = [tool.name for tool in shown_tools(folded)]
    assert shown == ["toolfold_search", "toolfold_describe", "toolfold_call"]
    assert set(shown) < set(options.names)
    found = folded.resolve("toolfold_search", {"query": "hammers in the shed"})
    assert isinstance(found, Answer)
    assert f"{taken}(shed" in found.text
    call = folded.resolve("toolfold_call", {"name": taken, "arguments": {"shed": "north"}})
    assert isinstance(call, Invocation)
    assert call.tool.name == taken


def test_a_tool_outside_the_scope_does_not_change_the_bridges_names() -> None:
    shed = definition("tool_search", "Look for hammers in the shed.", None)
    scope = Scope(deny=("tool_search",))

    folded = FoldOptions(Settings(enabled="on")).fold([*TOOLS, shed], scope=scope)

    assert folded.bridge.names.search == "tool_search"


def test_two_tools_of_one_name_are_an_error_with_the_fix() -> None:
    with pytest.raises(NameClashError, match="two tools are named 'twice'"):
        FoldOptions(Settings(enabled="on")).fold([definition("twice", "", None)] * 2)


def test_below_the_gate_every_tool_is_shown_and_no_bridge() -> None:
    folded = FoldOptions(context_length=10_000_000).fold(TOOLS)

    assert [tool.name for tool in shown_tools(folded)] == [tool["name"] for tool in TOOLS]


def test_each_query_brings_its_best_first_and_a_hopeless_one_brings_nothing() -> None:
    found = ranked_names(TOOLS, ["open an issue in the tracker", "send a mail"], limit=3)

    assert found[:2] == ["forge__create_issue", "mail__send_mail"]
    assert ranked_names(TOOLS, "perform an exorcism", limit=3) == []


def test_an_exact_name_is_found_alone_and_never_outside_the_scope() -> None:
    assert ranked_names(TOOLS, "forge__create_issue", limit=5) == ["forge__create_issue"]
    without = Scope(deny=("forge__create_issue",))
    assert "forge__create_issue" not in ranked_names(
        TOOLS, "forge__create_issue", limit=5, scope=without
    )


names = st.lists(st.text("abc", min_size=1, max_size=3), max_size=5)


@given(revealed=names, fruitless=st.integers(0, 9))
def test_a_session_comes_back_from_its_record(revealed: list[str], fruitless: int) -> None:
    session = Session(tuple(dict.fromkeys(revealed)), fruitless)

    assert session_of(session_record(session)) == session


@given(one=names, other=names)
def test_two_steps_beside_each_other_lose_nothing_that_either_found(
    one: list[str], other: list[str]
) -> None:
    first, second = Session().reveal(one), Session().reveal(other)

    joined = session_of(joined_records(session_record(first), session_record(second)))

    assert set(joined.revealed) == {*one, *other}
