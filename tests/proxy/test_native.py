"""Upstreams that defer tools themselves: found tools are loaded there and called by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.judges import judged_anthropic
from support.proxying import Asked, Between, Call, Refuse, Say, mcp_tools, texts_of
from support.sdk_agents import MessagesAgent, ResponsesAgent
from toolfold.store.entries import SqliteEntries

RENAME = "mcp__files__rename_file"
CLAUDE = {"model": "claude-sonnet-5-5"}
GPT = {"model": "gpt-5.4"}

both_ways = pytest.mark.parametrize("streamed", [False, True])


def searching(asked: Asked) -> list[Any]:
    """Search, call by name what was found, and be done."""
    if not asked.calls:
        return [Say("Looking."), Call("tool_search", {"query": "rename a file"})]
    if asked.calls[-1].name == "tool_search":
        return [Call(RENAME, {"path": "a"})]
    return [Say("Done.")]


def prefixes(wire: Between) -> None:
    for one, other in zip(wire.asked, wire.asked[1:], strict=False):
        before, after = texts_of(one.body), texts_of(other.body)
        assert after[: len(before)] == before
        assert json.loads(one.body)["tools"] == json.loads(other.body)["tools"]


@both_ways
def test_anthropics_references_load_what_was_found(streamed: bool) -> None:
    wire = Between(searching, host="api.anthropic.com")
    agent = MessagesAgent(wire, streamed, more=dict(CLAUDE))
    [call] = agent.talk("rename it")
    assert (call.name, call.arguments) == (RENAME, {"path": "a"})
    prefixes(wire)
    last = json.loads(wire.asked[-1].body)
    assert {"type": "tool_reference", "tool_name": RENAME} in last["messages"][2]["content"][0][
        "content"
    ]
    assert [tool["name"] for tool in last["tools"] if not tool.get("defer_loading")] == [
        "shell",
        "tool_search",
    ]
    judged_anthropic({key: last[key] for key in last if key != "stream"})


@both_ways
def test_the_conversation_goes_on_when_a_tool_has_gone(streamed: bool) -> None:
    wire = Between(searching, host="api.anthropic.com")
    agent = MessagesAgent(wire, streamed, more=dict(CLAUDE))
    agent.talk("rename it")
    agent.tools = [tool for tool in agent.tools if tool["name"] != RENAME]
    agent.talk("and now?")
    prefixes(wire)


@both_ways
def test_a_refusal_turns_the_conversation_to_the_bridge(streamed: bool) -> None:
    def play(asked: Asked) -> Any:
        if b"defer_loading" in asked.body or b"tool_reference" in asked.body:
            content = {"type": "invalid_request_error", "message": "defer_loading: unknown field"}
            return Refuse(400, {"type": "error", "error": content})
        if not asked.calls:
            return [Call("tool_call", {"name": RENAME, "arguments": {"path": "a"}})]
        return [Say("Done.")]

    wire = Between(play, host="api.anthropic.com")
    agent = MessagesAgent(wire, streamed, more=dict(CLAUDE))
    [call] = agent.talk("rename it")
    assert call.name == RENAME
    assert [b"defer_loading" in asked.body for asked in wire.asked] == [True, False, False]


def test_another_error_is_the_clients() -> None:
    refusal = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    wire = Between(lambda asked: Refuse(529, refusal), host="api.anthropic.com")
    body = {**CLAUDE, "messages": [{"role": "user", "content": "hi"}]}
    body["tools"] = mcp_tools("anthropic-messages")
    status, _, answer = wire.answer("/v1/messages", json.dumps(body).encode())
    assert (status, json.loads(answer)) == (529, refusal)


def searched(asked: Asked) -> bytes:
    """Return a search of the provider's own kind."""
    item = {
        "type": "tool_search_call",
        "id": "tsc_1",
        "execution": "client",
        "call_id": "call_search_0001",
        "status": "completed",
        "arguments": {"query": "rename a file"},
    }
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    ended = {**response, "status": "completed", "output": [item], "usage": None}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    ended |= more
    if not asked.is_streamed:
        return json.dumps(ended).encode()
    begun = {**response, **more, "status": "in_progress", "output": []}
    events: list[Any] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": ended},
    ]
    return b"".join(
        f"data: {json.dumps({**event, 'sequence_number': n})}\n\n".encode()
        for n, event in enumerate(events)
    )


def loading(asked: Asked) -> Any:
    """Search as the provider has it, call by name what was loaded, and be done."""
    kinds = [item.get("type") for item in asked.content["input"]]
    if "tool_search_output" not in kinds:
        return searched(asked)
    if "function_call" not in kinds:
        return [Call(RENAME, {"path": "a"}, namespace=RENAME)]
    return [Say("Done.")]


@both_ways
def test_openais_definitions_come_in_with_its_own_search(streamed: bool) -> None:
    wire = Between(loading, host="api.openai.com")
    agent = ResponsesAgent(wire, streamed, more=dict(GPT))
    [call] = agent.talk("rename it")
    assert (call.name, call.arguments) == (RENAME, {"path": "a"})
    prefixes(wire)
    last = json.loads(wire.asked[-1].body)
    assert [item.get("type") for item in last["input"]] == [
        None, "tool_search_call", "tool_search_output", "function_call", "function_call_output",
    ]  # fmt: skip
    assert last["input"][3]["namespace"] == RENAME
    assert "namespace" not in json.dumps(agent.items)
    assert [tool["type"] for tool in last["tools"]] == ["function", "tool_search"]


def test_the_array_outlives_the_process(tmp_path: Any) -> None:
    path = tmp_path / "history.db"
    wire = Between(searching, host="api.anthropic.com", store=SqliteEntries(path))
    agent = MessagesAgent(wire, True, more=dict(CLAUDE))
    agent.talk("rename it")
    wire.store = SqliteEntries(path)
    agent.tools = agent.tools[1:]
    agent.talk("and now?")
    prefixes(wire)
