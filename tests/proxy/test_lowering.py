"""Clients with a search of their own: untouched where the upstream defers, plain elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.judges import judged_anthropic
from support.proxy_requests import request
from support.proxying import Between, Call, Say, items_of, mcp_tools, named
from support.sdk_agents import ResponsesAgent
from toolfold import Settings
from toolfold.proxy.exchange import Untouched
from toolfold.proxy.opening import open_exchange
from toolfold.store.entries import MemoryEntries

LOCAL = "localhost:11434"


def opened(dialect: Any, body: Any, host: str = LOCAL, **settings: Any) -> Any:
    return open_exchange(
        dialect,
        json.dumps(body).encode(),
        {},
        settings=Settings(**settings),
        store=MemoryEntries(),
        host=host,
    )


def claude_code(model: str = "claude-sonnet-5-5") -> dict[str, Any]:
    """Return a request in which the client's own search has found a tool."""
    found = {**named("anthropic-messages", "mcp__files__rename_file"), "defer_loading": True}
    reference = {"type": "tool_reference", "tool_name": "mcp__files__rename_file"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "x"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [reference]}
    return {
        "model": model,
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "rename it"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        "tools": [named("anthropic-messages", "Bash"), found],
    }


def test_a_search_of_the_clients_own_passes_where_the_upstream_defers() -> None:
    came = opened("anthropic-messages", claude_code(), "https://api.anthropic.com", enabled="on")
    assert isinstance(came, Untouched)


@pytest.mark.parametrize("enabled", ["auto", "on"])
def test_references_become_text_and_deferred_tools_plain_ones(enabled: str) -> None:
    body = claude_code("qwen3")
    came = opened("anthropic-messages", body, enabled=enabled)
    sent = json.loads(came.body)
    assert b"tool_reference" not in came.body
    assert b"defer_loading" not in came.body
    assert "mcp__files__rename_file" in sent["messages"][2]["content"][0]["content"][0]["text"]
    names = [tool["name"] for tool in sent["tools"]]
    bridge = ["tool_search", "tool_describe", "tool_call"]
    assert names == ["Bash", *(bridge if enabled == "on" else ["mcp__files__rename_file"])]
    assert sent["messages"][:2] == body["messages"][:2]
    judged_anthropic(sent)


def test_betas_about_tools_are_left_out_when_we_fold() -> None:
    body = json.dumps(claude_code("qwen3")).encode()

    def betas(given: str) -> Any:
        came: Any = open_exchange(
            "anthropic-messages",
            body,
            {"anthropic-beta": given},
            settings=Settings(),
            store=MemoryEntries(),
            host=LOCAL,
        )
        return dict(came.set_headers), came.drop_headers

    kept = "oauth-2025-04-20,interleaved-thinking-2025-05-14"
    assert betas(f"{kept},advanced-tool-use-2025-11-20") == ({"anthropic-beta": kept}, frozenset())
    assert betas("advanced-tool-use-2025-11-20") == ({}, frozenset({"anthropic-beta"}))
    assert betas(kept) == ({}, frozenset())


def codex(*, late: bool) -> dict[str, Any]:
    """Return a request with tools in a namespace, or with tools that come in as an item."""
    inner = [
        named("openai-responses", f"{verb}_file", f"{verb} a file") for verb in ("rename", "copy")
    ]
    space = {"type": "namespace", "name": "mcp__files", "description": "Files", "tools": inner}
    shell = named("openai-responses", "shell")
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    if not late:
        return {"model": "m", "input": [said], "tools": [shell, space], "store": False}
    added = {"type": "additional_tools", "role": "developer", "tools": [shell, space]}
    return {"model": "m", "input": [added, said], "store": False}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("enabled", ["auto", "on"])
def test_namespaces_and_late_tools_become_plain_ones(late: bool, enabled: str) -> None:
    came = opened("openai-responses", codex(late=late), enabled=enabled)
    sent = json.loads(came.body)
    flat = ["mcp__files__rename_file", "mcp__files__copy_file"]
    bridge = ["tool_search", "tool_describe", "tool_call"]
    names = [tool["name"] for tool in sent["tools"]]
    assert names == ["shell", *(bridge if enabled == "on" else flat)]
    assert [item["type"] for item in sent["input"]] == ["message"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("enabled", ["auto", "on"])
def test_a_call_of_a_namespaced_tool_comes_back_in_its_namespace(
    streamed: bool, enabled: str
) -> None:
    def play(asked: Any) -> Any:
        if asked.calls:
            return [Say("Done.")]
        if enabled == "on":
            given = {"name": "mcp__files__rename_file", "arguments": {"path": "a"}}
            return [Call("tool_call", given)]
        return [Call("mcp__files__rename_file", {"path": "a"})]

    wire = Between(play, settings=Settings(enabled=enabled), host=LOCAL)  # type: ignore[arg-type]
    agent = ResponsesAgent(wire, streamed, tools=codex(late=False)["tools"])
    [call] = agent.talk("rename it")
    assert call.name == "rename_file"
    assert agent.answers[0].output[0].namespace == "mcp__files"
    assert b'"namespace"' not in wire.asked[-1].body
    assert [made.name for made in wire.asked[-1].calls] == [
        "tool_call" if enabled == "on" else "mcp__files__rename_file"
    ]


def test_a_providers_own_search_items_become_a_call_and_its_output() -> None:
    found = {**named("openai-responses", "rename_file"), "defer_loading": True}
    body = {
        "model": "m",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "tool_search_call", "call_id": "call_1", "execution": "client",
             "status": "completed", "arguments": {"query": "x"}},
            {"type": "tool_search_output", "call_id": "call_1", "execution": "client",
             "status": "completed", "tools": [found]},
        ],
        "tools": [{"type": "tool_search", "execution": "client", "description": "d"}],
        "store": False,
    }  # fmt: skip
    sent = json.loads(opened("openai-responses", body).body)
    assert [item.get("type") for item in sent["input"]] == [
        None, "function_call", "function_call_output",
    ]  # fmt: skip
    assert [tool["name"] for tool in sent["tools"]] == ["rename_file"]


def test_our_gateways_bridge_is_never_folded() -> None:
    gateway = [f"mcp__toolfold__{name}" for name in ("tool_search", "tool_describe", "tool_call")]
    tools = [named("anthropic-messages", name) for name in gateway]
    tools += mcp_tools("anthropic-messages", own=("Bash",))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    sent = json.loads(opened("anthropic-messages", body, enabled="on").body)
    names = [tool["name"] for tool in sent["tools"]]
    assert names == [*gateway, "Bash", "tool_search", "tool_describe", "tool_call"]


def test_a_list_that_was_folded_before_passes() -> None:
    from toolfold import fold

    tools = fold(mcp_tools("openai-chat"), settings=Settings(enabled="on")).tools
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    assert isinstance(opened("openai-chat", body, enabled="on"), Untouched)


def test_a_clients_tool_with_the_name_of_ours_keeps_it() -> None:
    tools = [named("openai-chat", "tool_search"), *mcp_tools("openai-chat")]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    sent = json.loads(opened("openai-chat", body, enabled="on").body)
    assert [tool["function"]["name"] for tool in sent["tools"]] == [
        "tool_search", "toolfold_search", "toolfold_describe", "toolfold_call",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "choice"),
    [
        ("openai-chat", {"type": "function", "function": {"name": "mcp__files__copy_file"}}),
        ("openai-responses", {"type": "function", "name": "mcp__files__copy_file"}),
        ("anthropic-messages", {"type": "tool", "name": "mcp__files__copy_file"}),
    ],
)
def test_a_forced_tool_stays_open(dialect: str, choice: Any) -> None:
    key = "input" if dialect == "openai-responses" else "messages"
    body = {
        "model": "m",
        key: [{"role": "user", "content": "hi"}],
        "tools": mcp_tools(dialect),
        "tool_choice": choice,
    }
    came = opened(dialect, body, enabled="on")
    assert b'"mcp__files__copy_file", "description"' in came.body
    assert b'"mcp__files__rename_file", "description"' not in came.body


def test_threads_that_the_server_holds_are_not_folded() -> None:
    body = {
        "model": "m",
        "input": "go on",
        "previous_response_id": "resp_1",
        "tools": mcp_tools("openai-responses"),
    }
    assert isinstance(opened("openai-responses", body, enabled="on"), Untouched)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_thread_goes_on_from_the_last_round_with_all_answers(streamed: bool) -> None:
    mixed = [
        Call("tool_search", {"query": "copy a file"}, id="call_search_00000001"),
        Call("tool_call", {"name": "mcp__files__rename_file", "arguments": {"path": "a"}},
             id="call_rename_00000001"),
    ]  # fmt: skip
    replies = iter([[Call("tool_search", {"query": "x"})], mixed, [Say("Done.")]])
    wire = Between(lambda asked: next(replies))
    agent = ResponsesAgent(wire, streamed, more={"store": True})
    agent.say("rename it")
    calls = agent.ask()
    agent.items.clear()
    agent.results(calls)
    agent.more["previous_response_id"] = agent.answers[0].id
    agent.ask()
    last = json.loads(wire.asked[-1].body)
    assert last["previous_response_id"] == "resp_000000000000000000000002"
    assert [item["call_id"] for item in items_of(wire.asked[-1].body)] == [
        "call_search_00000001", "call_rename_00000001",
    ]  # fmt: skip


def test_several_answers_at_once_are_not_folded() -> None:
    body = {"model": "m", "n": 2, "messages": [{"role": "user", "content": "hi"}]}
    body["tools"] = mcp_tools("openai-chat")
    assert isinstance(opened("openai-chat", body, enabled="on"), Untouched)


@given(st.lists(st.sampled_from(["user", "late", "found"]), min_size=1, max_size=7))
def test_tools_that_come_late_leave_a_request_that_can_be_read(kinds: list[str]) -> None:
    late = {"type": "additional_tools", "tools": [{"type": "function", "name": "late"}]}
    items: dict[str, dict[str, Any]] = {
        "user": {"role": "user", "content": "x"},
        "late": late,
        "found": {"type": "tool_search_output", "call_id": "a", "tools": []},
    }
    body = {**request("openai-responses"), "input": [items[kind] for kind in kinds]}
    sent = json.loads(opened("openai-responses", body, enabled="on").body)["input"]
    assert [item for item in sent if item == items["user"]] == [items["user"]] * kinds.count("user")
    assert len(sent) == len(kinds) - (kinds.count("late") if set(kinds) != {"late"} else 0)
