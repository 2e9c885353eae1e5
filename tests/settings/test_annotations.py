"""What the settings say a tool does wins over what the tool says, in every door."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateways import client, gateway, odd
from toolfold import ConfigError, Invocation, Settings, Tool, fold, load_settings
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.dispatch.approvals import Verdict
from toolfold.runtime import (
    Agent,
    Approvals,
    PendingCall,
    Registry,
    ResultMessage,
    ScriptedModel,
    calls,
    says,
)
from toolfold.serve.principals import Principal
from toolfold.settings.check import HINTS
from toolfold.wire import write

READS = {"readOnlyHint": True}


def applied(annotations: dict[str, Any], tool: Tool) -> dict[str, Any]:
    return dict(Settings(annotations=annotations).applied(tool).annotations)


@pytest.mark.parametrize(
    ("hints", "is_read_only", "is_destructive"),
    [
        ({}, False, True),
        ({"readOnlyHint": True}, True, False),
        ({"readOnlyHint": True, "destructiveHint": True}, True, False),
        ({"destructiveHint": False}, False, False),
        ({"readOnlyHint": False, "destructiveHint": True}, False, True),
        ({"readOnlyHint": 1}, False, True),
        ({"destructiveHint": 0}, False, True),
    ],
)
def test_a_tool_is_destructive_unless_it_says_otherwise_as_the_protocol_has_it(
    hints: dict[str, Any], is_read_only: bool, is_destructive: bool
) -> None:
    tool = Tool("a", annotations=hints)

    assert (tool.is_read_only, tool.is_destructive) == (is_read_only, is_destructive)


def test_hints_go_by_name_pattern_and_toolset_and_leave_the_others() -> None:
    said: dict[str, Any] = {
        "get_issue": READS,
        "delete_*": {"destructiveHint": True},
        "@mail": {"openWorldHint": False},
    }

    assert applied(said, Tool("get_issue")) == READS
    assert applied(said, Tool("delete_issue", annotations={"title": "x"})) == {
        "title": "x",
        "destructiveHint": True,
    }
    assert applied(said, Tool("send", source="mail")) == {"openWorldHint": False}
    assert applied(said, Tool("other", annotations=READS)) == READS


def test_of_two_patterns_the_later_wins_hint_by_hint() -> None:
    said = {
        "*": {"readOnlyHint": True, "openWorldHint": False},
        "delete_*": {"readOnlyHint": False},
    }

    assert applied(said, Tool("delete_it")) == {"readOnlyHint": False, "openWorldHint": False}


HINT_SETS = st.dictionaries(st.sampled_from(HINTS), st.booleans(), max_size=3)


@given(
    said=st.dictionaries(st.sampled_from(["*", "a*", "ab", "@s", "b"]), HINT_SETS, max_size=4),
    own=HINT_SETS,
    aliases=st.dictionaries(st.just("ab"), st.lists(st.sampled_from("xyz"), max_size=3)),
)
def test_applied_twice_it_is_the_same_tool(
    said: dict[str, Any], own: dict[str, bool], aliases: dict[str, Any]
) -> None:
    settings = Settings(annotations=said, aliases=aliases)
    tool = settings.applied(Tool("ab", source="s", annotations=own, aliases=("y",)))

    assert settings.applied(tool) == tool
    assert hash(settings) == hash(Settings(annotations=said, aliases=aliases))
    for hints in said.values():
        assert set(hints) <= {*tool.annotations, *HINTS}


def test_they_stand_in_a_file_and_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "toolfold.yaml"
    file.write_text(
        "tools:\n  tool_search:\n    annotations:\n      'github__*': {readOnlyHint: true}\n"
    )

    assert load_settings(file, environ={}).annotations == {"github__*": READS}
    environ = {"TOOLFOLD_ANNOTATIONS": "{a: {readOnlyHint: true}}"}
    assert load_settings(environ=environ).annotations == {"a": READS}


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (
            {"a": {"readonlyHint": True}},
            "`annotations` has the unknown hint `readonlyHint` for 'a'",
            "did you mean `readOnlyHint`?",
        ),
        (
            {"a": {"x": True}},
            "`annotations` has the unknown hint `x` for 'a'",
            "the hints are destructiveHint, idempotentHint, openWorldHint, readOnlyHint",
        ),
        (
            {"a": {"readOnlyHint": "yes"}},
            "`annotations.a.readOnlyHint` is 'yes'",
            "write true | false",
        ),
        (
            {"a": True},
            "`annotations` is {'a': True}",
            "write a mapping from a tool's name or pattern to hints, each true or false",
        ),
        (
            ["a"],
            "`annotations` is ['a']",
            "write a mapping from a tool's name or pattern to hints, each true or false",
        ),
    ],
)
def test_what_is_no_hint_is_refused_with_the_fix(value: Any, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(annotations=value)

    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("enabled", ["on", "off"])
def test_a_folded_tool_and_an_open_one_are_called_with_the_settings_hints(enabled: Any) -> None:
    settings = Settings(enabled=enabled, annotations={"get_*": READS})

    invoked = fold([{"name": "get_it"}], settings=settings).resolve("get_it", {})

    assert isinstance(invoked, Invocation)
    assert invoked.tool.is_read_only
    over = Bridge.over(Catalog([Tool("get_it")]), settings).resolve(
        "tool_call", {"name": "get_it", "arguments": {}}, invoked.session
    )
    assert isinstance(over, Invocation)
    assert over.tool.is_read_only


def test_what_passes_through_keeps_its_bytes() -> None:
    tools = [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"title": "A"}}]

    folded = fold(tools, settings=Settings(annotations={"a": READS}))

    assert not folded.active
    assert folded.tools == tools


def test_an_mcp_record_that_is_written_says_what_the_settings_say() -> None:
    (tool,) = fold(
        [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"title": "A"}}],
        settings=Settings(annotations={"a": READS}),
    ).catalog

    assert write(tool, "mcp")["annotations"] == {"title": "A", "readOnlyHint": True}


def test_an_agents_approvals_see_the_settings_hints() -> None:
    registry = Registry()
    registry.tool(lambda: "gone", name="drop_all", destructive=False)
    registry.tool(lambda: "fine", name="tidy_up", destructive=True)
    asked: list[str] = []

    async def ask(call: PendingCall) -> Verdict:
        asked.append(call.tool.name)
        return "deny"

    said = {"drop_*": {"destructiveHint": True}, "tidy_*": {"destructiveHint": False}}
    agent = Agent(
        ScriptedModel((calls(("drop_all", {}), ("tidy_up", {})), says("done"))),
        registry,
        settings=Settings(enabled="on", annotations=said),
        hooks=[Approvals(ask)],
    )
    conversation = agent.conversation()
    asyncio.run(conversation.ask("go"))

    results = [m.text for m in conversation.messages if isinstance(m, ResultMessage)]
    assert asked == ["drop_all"]
    assert results[0].startswith("drop_all was not run.")
    assert results[1] == "fine"


def test_a_read_only_principal_of_the_gateway_goes_by_the_settings_word() -> None:
    async def main() -> None:
        said = {"one__pid": READS, "one__echo": {"readOnlyHint": False}}
        reader = Principal("reader", read_only=True)
        async with (
            gateway(odd("one"), settings={"annotations": said}) as made,
            client(made, who=reader) as connected,
        ):
            (listed,) = (await connected.list_tools()).tools
            assert listed.name == "one__pid"
            assert listed.annotations is not None
            assert listed.annotations.read_only_hint is True
            hidden = await connected.call_tool("one__echo", {"x": "a"})
            assert hidden.is_error

    asyncio.run(main())


def test_a_gateway_refuses_what_the_settings_call_destructive_and_runs_what_they_do_not() -> None:
    async def main() -> None:
        said = {"one__echo": {"readOnlyHint": False}, "one__pid": {"destructiveHint": False}}
        async with (
            gateway(
                odd("one"), serve={"destructive": "refuse"}, settings={"annotations": said}
            ) as made,
            client(made) as connected,
        ):
            assert (await connected.call_tool("one__echo", {"x": "a"})).is_error
            assert not (await connected.call_tool("one__pid", {})).is_error

    asyncio.run(main())
