"""`fold`: exact below the gate, stable above it, and nothing lost either way."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import answered, invoked
from support.strategies import ANY_NAMES, MIXED_LISTS, lists_of, name_of, schemas
from toolfold import Answer, Invocation, Session, Settings, Tool, fold

DEMO = Path(__file__).parents[1] / "src" / "toolfold" / "demo" / "catalog.jsonl"
ON = Settings(enabled="on")


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def reordered(value: Any, chance: random.Random) -> Any:
    """The same JSON value, the keys of its objects in another order."""
    if isinstance(value, list):
        return [reordered(item, chance) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    chance.shuffle(keys)
    return {key: reordered(value[key], chance) for key in keys}


@given(MIXED_LISTS, st.sampled_from(["off", "auto"]), st.sampled_from(["bridge", "stub"]))
def test_pass_through_is_exact_to_the_byte_and_the_object(
    items: list[Any], enabled: Any, strategy: Any
) -> None:
    before = text(items)

    folded = fold(items, settings=Settings(enabled=enabled, strategy=strategy))

    assert not folded.active
    assert text(folded.tools) == before == text(items)
    assert all(out is item for out, item in zip(folded.tools, items, strict=True))
    assert folded.report.tokens_before == folded.report.tokens_after
    assert folded.report.tools_before == folded.report.tools_after == len(items)


def test_off_lets_through_what_is_no_tool_at_all() -> None:
    odd = [3, {"no": "name"}, object(), {"name": "a"}, {"name": "a"}, {"name": "tool_search"}]

    folded = fold(odd, settings=Settings(enabled="off"))

    assert all(out is item for out, item in zip(folded.tools, odd, strict=True))
    assert invoked(folded.resolve("a", {})).tool.name == "a"


@given(lists_of("openai-chat"), st.integers(), st.sampled_from(["off", "sources", "names"]))
def test_the_bytes_do_not_depend_on_the_order_of_keys(
    items: list[Any], seed: int, listing: Any
) -> None:
    chosen = Settings(enabled="on", listing=listing)
    turned = reordered(items, random.Random(seed))

    one, other = fold(items, settings=chosen), fold(turned, settings=chosen)

    assert text(one.tools) == text(other.tools)
    assert one.catalog == other.catalog
    ask = {"query": "a | b c | xyz"}
    found = answered(one.resolve("tool_search", ask))
    again = answered(other.resolve("tool_search", ask))
    assert [(h.name, h.score) for h in found.hits] == [(h.name, h.score) for h in again.hits]


@given(lists_of("anthropic", max_size=10))
def test_the_same_list_gives_the_same_bytes_whatever_was_folded_between(items: list[Any]) -> None:
    once = text(fold(items, settings=ON).tools)
    fold(items[:1], settings=ON)
    fold([Tool("other")], settings=ON)

    assert text(fold(items, settings=ON).tools) == once


@given(MIXED_LISTS, st.sampled_from(["bridge", "stub"]), st.booleans())
def test_folding_twice_is_the_same_as_folding_once(
    items: list[Any], strategy: Any, with_core: bool
) -> None:
    chosen = Settings(enabled="on", strategy=strategy)
    core = [name_of(items[0])] if with_core else []
    session = Session(revealed=(name_of(items[-1]),))

    once = fold(items, settings=chosen, core=core, session=session)
    twice = fold(once.tools, settings=chosen, core=core, session=session)

    assert text(twice.tools) == text(once.tools)


def test_a_list_with_a_bridge_in_it_is_folded_already_and_passes_through() -> None:
    tools = [Tool("keep", policy="never"), Tool("a")]
    once = fold(tools, settings=ON)

    twice = fold([*once.tools, Tool("b")], settings=ON)

    assert not twice.active
    assert twice.report.reason == "the list is folded already"
    assert fold(once.tools, settings=ON).tools == once.tools
    assert fold(once.tools, settings=Settings(enabled="on", strategy="stub")).tools == once.tools


@given(
    st.lists(ANY_NAMES, min_size=1, max_size=12, unique=True), st.sampled_from(["bridge", "stub"])
)
def test_every_folded_tool_is_found_first_by_its_exact_name(
    names: list[str], strategy: Any
) -> None:
    tools = [Tool(name, f"About {' '.join(names)}.", source="s") for name in names]
    folded = fold(tools, settings=Settings(enabled="on", strategy=strategy))

    for name in names:
        for query in (name, f"`{name}`", f'"{name}"'):
            answer = answered(folded.resolve("tool_search", {"query": query}))
            assert answer.hits[0].name == name


@pytest.mark.parametrize("strategy", ["bridge", "stub"])
def test_every_tool_of_the_demo_is_found_first_by_its_exact_name(strategy: Any) -> None:
    tools = [json.loads(line) for line in DEMO.read_text("utf-8").splitlines()]
    folded = fold(tools, settings=Settings(enabled="on", strategy=strategy))

    assert len(folded.catalog) >= 190
    for name in folded.catalog.names:
        assert answered(folded.resolve("tool_search", {"query": name})).hits[0].name == name


@given(lists_of("mcp", max_size=8), st.booleans())
def test_nothing_is_lost(items: list[Any], with_core: bool) -> None:
    core = [name_of(items[0])] if with_core else []

    folded = fold(items, settings=ON, core=core)

    for item in items:
        name = item["name"]
        assert folded.catalog[name].raw == item
        if name in core:
            assert folded.tools[0] is item
            continue
        described = answered(folded.resolve("tool_describe", {"name": name}))
        assert json.loads(described.text.split("\n")[0])["parameters"] == item["inputSchema"]
        found = answered(folded.resolve("tool_search", {"query": name}))
        assert found.hits[0].tool is folded.catalog[name]
        for call in (
            folded.resolve(name, {}),
            folded.resolve("tool_call", {"name": name, "arguments": {}}),
        ):
            if item["inputSchema"]["required"]:
                assert "missing argument" in answered(call).text
            else:
                assert invoked(call).tool is folded.catalog[name]


@given(st.lists(st.tuples(ANY_NAMES, schemas()), min_size=1, max_size=6, unique_by=lambda t: t[0]))
def test_the_invoked_tool_is_the_one_of_this_catalog(items: list[Any]) -> None:
    tools = [Tool(name, "Do.", schema) for name, schema in items]

    folded = fold(tools, settings=ON)

    for tool in tools:
        (tool_,) = answered(folded.resolve("tool_describe", {"name": tool.name})).tools
        assert tool_ is tool


def test_seed_003_end_to_end() -> None:
    """The live run of seed 003: 20 tools of one server behind the bridge, `terminal` core."""
    ran: list[tuple[str, dict[str, Any]]] = []
    registry: list[Any] = [
        {
            "type": "function",
            "function": {
                "name": f"mcp_github_action_{i}",
                "description": f"GitHub issue action {i}: acts on the issues of a repository.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "repo": {"type": "string", "description": "owner/name"},
                        "title": {"type": "string"},
                    },
                    "required": ["repo"],
                },
            },
        }
        for i in range(20)
    ]
    terminal = {
        "type": "function",
        "function": {
            "name": "terminal",
            "description": "Run a shell command.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }

    def host(invocation: Answer | Invocation) -> dict[str, Any]:
        assert isinstance(invocation, Invocation)
        ran.append((invocation.tool.name, dict(invocation.arguments)))
        return {"ok": True}

    folded = fold([terminal, *registry], core=["terminal"], settings=ON)

    # Three bridge tools beside the core; no raw schema of the server's.
    assert [tool["function"]["name"] for tool in folded.tools] == [
        "terminal",
        "tool_search",
        "tool_describe",
        "tool_call",
    ]
    assert "mcp_github" not in text(folded.tools)

    found = answered(folded.resolve("tool_search", {"query": "github issue", "limit": 3}))
    assert len([hit for hit in found.hits if hit.shown == "signature"]) == 3
    assert found.text.startswith('15 of 20 tools for "github issue":\n- mcp_github_action_')

    described = answered(
        folded.resolve("tool_describe", {"name": "mcp_github_action_5"}, session=found.session)
    )
    assert json.loads(described.text)["parameters"] == registry[5]["function"]["parameters"]

    call = folded.resolve(
        "tool_call",
        {"name": "mcp_github_action_5", "arguments": {"repo": "foo/bar"}},
        session=described.session,
    )
    assert host(call) == {"ok": True}
    assert ran == [("mcp_github_action_5", {"repo": "foo/bar"})]

    recursion = answered(
        folded.resolve("tool_call", {"name": "tool_call", "arguments": {"name": "terminal"}})
    )
    assert recursion.is_error
    assert recursion.text.startswith("tool_call cannot run itself.")

    core = answered(
        folded.resolve("tool_call", {"name": "terminal", "arguments": {"command": "ls"}})
    )
    assert core.is_error
    assert core.text == "terminal is one of your listed tools: call it directly."
    assert host(folded.resolve("terminal", {"command": "ls"})) == {"ok": True}
    assert ran[-1] == ("terminal", {"command": "ls"})
