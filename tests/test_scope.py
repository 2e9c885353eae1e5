"""Scopes: which tools exist for a caller, and that nothing tells of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import answered, invoked
from toolfold import EVERYTHING, Catalog, ConfigError, Scope, Settings, Tool, fold

names = st.from_regex(r"[a-c]{1,2}\.[a-c]{1,3}", fullmatch=True)
patterns = st.lists(names | st.sampled_from(["*", "a.*", "*.b*", "?.c", "@a", "@*"]), max_size=3)


def test_deny_wins_over_allow() -> None:
    scope = Scope(allow=("github.*",), deny=("github.delete_*",))

    assert Tool("github.list_issues") in scope
    assert Tool("github.delete_repo") not in scope


def test_a_pattern_matches_the_whole_name_and_its_case() -> None:
    scope = Scope(allow=("github",))

    assert Tool("github") in scope
    assert Tool("github.list_issues") not in scope
    assert Tool("GitHub") not in scope


def test_a_pattern_with_an_at_sign_matches_the_toolset() -> None:
    scope = Scope(allow=("@git*",), deny=("@gitlab",))

    assert Tool("list_issues", source="github") in scope
    assert Tool("list_issues", source="gitlab") not in scope
    assert Tool("list_issues", source="gitlab", toolset="github") in scope
    assert Tool("github") not in scope


def test_a_name_with_a_sign_of_patterns_in_it_is_matched_as_it_stands() -> None:
    assert Tool("read[1]") in Scope(allow=("read[1]",))


def test_an_empty_allow_list_holds_nothing() -> None:
    assert Tool("github.list_issues") not in Scope(allow=())


@pytest.mark.parametrize("field", ["allow", "deny"])
def test_a_bare_string_of_patterns_is_refused_with_the_fix(field: str) -> None:
    patterns: dict[str, Any] = {field: "github.*"}
    for make in (Scope, EVERYTHING.narrow):
        with pytest.raises(ConfigError) as caught:
            make(**patterns)

        assert caught.value.message == f"`{field}` is the string 'github.*', not a list of patterns"
        assert caught.value.hint == "write ['github.*']"


@given(
    name=names, source=st.sampled_from(["a", "b"]), steps=st.lists(st.tuples(patterns, patterns))
)
def test_narrowing_never_widens(name: str, source: str, steps: list[Any]) -> None:
    tool = Tool(name, source=source)
    scope = EVERYTHING
    for allow, deny in steps:
        narrowed = scope.narrow(allow=allow, deny=deny)
        assert tool in scope or tool not in narrowed
        scope = narrowed


@given(st.lists(names, unique=True, max_size=8), st.lists(st.tuples(patterns, patterns)))
def test_a_catalog_within_narrower_scopes_only_shrinks(some: list[str], steps: list[Any]) -> None:
    catalog = Catalog(Tool(name, source=name[0]) for name in some)
    scope = EVERYTHING
    left = list(catalog.names)
    for allow, deny in steps:
        scope = scope.narrow(allow=allow, deny=deny)
        inside = catalog.within(scope).names
        assert list(inside) == [name for name in left if name in inside]
        left = list(inside)


# ---- nothing leaked

SECRET_WORDS = ["zebra", "quokka", "lemur", "tapir", "okapi"]
OPEN_WORDS = ["issue", "mail", "file", "event", "refund"]


@st.composite
def split_catalogs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[str], Settings]:
    """Tools of two kinds, open and secret, whose names and sources share no word."""

    def tool(word: str, i: int, server: str) -> dict[str, Any]:
        return {
            "name": f"{draw(st.sampled_from(['get', 'list', 'send']))}_{word}_{i}",
            "description": f"Work on the {word} of the day.",
            "parameters": {
                "type": "object",
                "properties": {f"{word}_id": {"type": "string"}, "limit": {"type": "integer"}},
                "required": [f"{word}_id"],
            },
            "server": server,
        }

    open_tools = [
        tool(draw(st.sampled_from(OPEN_WORDS)), i, draw(st.sampled_from(["work", "home"])))
        for i in range(draw(st.integers(0, 5)))
    ]
    secret = [
        tool(draw(st.sampled_from(SECRET_WORDS)), i, draw(st.sampled_from(["vault", "attic"])))
        for i in range(draw(st.integers(1, 5)))
    ]
    settings_ = Settings(
        enabled=draw(st.sampled_from(["on", "auto", "off"])),
        strategy=draw(st.sampled_from(["bridge", "stub"])),
        listing=draw(st.sampled_from(["off", "sources", "names"])),
        core=tuple(draw(st.lists(st.sampled_from(["get_*", "send_*"]), max_size=1))),
        threshold_pct=draw(st.sampled_from([0, 10])),
    )
    mixed = draw(st.permutations(open_tools + secret))
    return mixed, [item["name"] for item in secret], settings_


@given(split_catalogs(), st.booleans(), st.text(max_size=10))
def test_nothing_tells_of_a_tool_outside_the_scope(
    case: tuple[list[dict[str, Any]], list[str], Settings], by_toolset: bool, noise: str
) -> None:
    tools, secret, chosen = case
    scope = Scope(deny=("@vault", "@attic")) if by_toolset else Scope(deny=tuple(secret))
    folded = fold(tools, scope=scope, settings=chosen, context_length=100_000)
    alone = fold(
        [tool for tool in tools if tool["name"] not in secret],
        settings=chosen,
        context_length=100_000,
    )

    # The whole list in the narrow scope is the narrow list: in every word and number.
    assert folded.tools == alone.tools
    assert (folded.report, folded.guidance) == (alone.report, alone.guidance)
    texts = [json.dumps(folded.tools), str(folded.report), repr(folded.catalog)]
    asked = [*SECRET_WORDS, *secret, noise, "work on the day", "get | list", "", "vault attic"]
    for word in asked:
        # What a model says itself comes back to it; nothing else may.
        for name, arguments in (
            ("tool_search", {"query": word}),
            ("tool_describe", {"name": word}),
            ("tool_call", {"name": word, "arguments": {}}),
            (word, {}),
        ):
            answer, expected = folded.resolve(name, arguments), alone.resolve(name, arguments)
            assert answer == expected
            said = getattr(answer, "text", "")
            texts.append(said.replace(word, "") if word else said)
    for text in texts:
        assert not [word for word in [*SECRET_WORDS, *secret, "vault", "attic"] if word in text]


@given(split_catalogs())
def test_an_unknown_name_and_one_out_of_scope_read_the_same(case: Any) -> None:
    tools, secret, chosen = case
    folded = fold(tools, scope=Scope(deny=tuple(secret)), settings=chosen)
    narrow = fold([t for t in tools if t["name"] not in secret], settings=chosen)

    for hidden in secret:
        for name, arguments in (
            ("tool_describe", {"name": hidden}),
            ("tool_call", {"name": hidden, "arguments": {"zebra_id": "1"}}),
            (hidden, {"zebra_id": "1"}),
        ):
            # In the second list the name is of no tool anywhere.
            assert folded.resolve(name, arguments) == narrow.resolve(name, arguments)


def test_unknown_and_out_of_scope_are_one_text_up_to_the_name() -> None:
    tools = [Tool("zebra"), Tool("send_mail"), Tool("read_file")]
    folded = fold(tools, scope=Scope(deny=("zebra",)), settings=Settings(enabled="on"))

    def said(name: str) -> list[str]:
        answers = [
            folded.resolve("tool_describe", {"name": name}),
            folded.resolve("tool_call", {"name": name, "arguments": {}}),
            folded.resolve(name, {}),
        ]
        return [answered(answer).text.replace(name, "X") for answer in answers]

    assert said("zebra") == said("qqqqq")
    assert said("zebra")[0] == (
        '"X" is not available in this session. Find tools with tool_search.'
    )


def test_a_restricted_session_cannot_reach_the_registry_through_the_bridge() -> None:
    """Seed 001: a session of `mcp-github` saw all 26 tools and ran a plugin's."""
    github = [
        Tool(f"mcp_github_action_{i}", f"GitHub {i}.", source="mcp-github") for i in range(20)
    ]
    plugins = [Tool(f"plugin_tool_{i}", f"A plugin's {i}.", source="plugins") for i in range(6)]

    folded = fold(
        [*github, *plugins], scope=Scope(allow=("@mcp-github",)), settings=Settings(enabled="on")
    )

    assert folded.report.tools_before == folded.report.deferred == 20
    found = answered(folded.resolve("tool_search", {"query": "plugin tool", "limit": 50}))
    assert "of 20 tools" in found.text or "(20 tools searched)" in found.text
    assert not [hit for hit in found.hits if hit.source == "plugins"]
    refused = answered(folded.resolve("tool_call", {"name": "plugin_tool_1", "arguments": {}}))
    assert refused.is_error
    assert refused.text.startswith('"plugin_tool_1" is not available in this session.')
    assert answered(folded.resolve("plugin_tool_1", {})).is_error


def test_an_isolated_turn_loses_no_core_tool() -> None:
    """Seeds 001 and 003 (openclaw#84141): a fresh turn dropped the tool it was started for."""
    core = [Tool("terminal", "Run a command."), Tool("read_file", "Read a file.")]
    plugins = [Tool(f"plugin_{i}", "Do something.", source="plugins") for i in range(30)]
    chosen = Settings(enabled="on", core=("terminal", "read_file"))

    busy = fold([*core, *plugins], settings=chosen)
    busy.resolve("tool_search", {"query": "plugin"})
    isolated = fold([*plugins, *core], settings=chosen)
    restricted = fold([*core, *plugins], settings=chosen, scope=Scope(deny=("@plugins",)))

    for folded in (busy, isolated, restricted):
        sent = [tool["function"]["name"] for tool in folded.tools]
        assert {"terminal", "read_file"} <= set(sent)
        assert invoked(folded.resolve("terminal", {"command": "ls"})).tool.name == "terminal"
