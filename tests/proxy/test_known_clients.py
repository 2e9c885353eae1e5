"""Known clients: their own tools stay open, wherever they stand in a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.model_server import ModelServer, Says
from support.proxies import proxied
from support.proxying import Asked, Between, Call, Say, mcp_tools, named, texts_of
from toolfold.config.proxy_settings import Upstream

CODEX = {"user-agent": "codex_exec/0.166.0 (Linux; x86_64)", "session-id": "1"}
SHAPE = "openai-responses"


def space(name: str, *tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools)}


def of_codex(*more: Any) -> bytes:
    own = [named(SHAPE, "exec_command"), space("multi_agent_v1", named(SHAPE, "close_agent"))]
    said = {"type": "message", "role": "user", "content": "hi"}
    return json.dumps({"model": "m", "tools": [*own, *more], "input": [said]}).encode()


def test_codexs_own_namespace_stays_open_and_a_call_of_it_goes_back_to_its_place() -> None:
    files = [
        {**tool, "name": tool["name"].removeprefix("mcp__files__")} for tool in mcp_tools(SHAPE)
    ]

    def play(asked: Asked) -> list[Any]:
        return [Call("multi_agent_v1__close_agent", {"path": "a"})]

    wire = Between(play)
    _, _, body = wire.answer("/v1/responses", of_codex(space("mcp__files", *files)), CODEX)

    [asked] = wire.asked
    bridge = ["tool_search", "tool_describe", "tool_call"]
    assert asked.names == ["exec_command", "multi_agent_v1__close_agent", *bridge]
    [call] = json.loads(body)["output"]
    assert (call["namespace"], call["name"]) == ("multi_agent_v1", "close_agent")


def test_codex_without_mcp_servers_keeps_all_of_its_tools() -> None:
    body = of_codex(named(SHAPE, "a_tool_of_a_later_version"))
    wire = Between(lambda asked: [Say("ok")])
    wire.answer("/v1/responses", body, CODEX)
    [asked] = wire.asked
    names = ["exec_command", "multi_agent_v1__close_agent", "a_tool_of_a_later_version"]
    assert asked.names == names


def test_without_the_history_a_call_in_a_namespace_goes_on_without_what_led_to_it() -> None:
    files = [
        {**tool, "name": tool["name"].removeprefix("mcp__files__")} for tool in mcp_tools(SHAPE)
    ]
    body = json.loads(of_codex(space("mcp__files", *files)))
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"}
    call = {"type": "function_call", "call_id": "call_12345678", "arguments": '{"path":"a"}'}
    body["input"] += [
        sealed,
        {**call, "name": "read_file", "namespace": "mcp__files"},
        {"type": "function_call_output", "call_id": "call_12345678", "output": "read"},
        sealed,
        {**call, "call_id": "call_87654321", "name": "exec_command"},
        {"type": "function_call_output", "call_id": "call_87654321", "output": "run"},
    ]
    wire = Between(lambda asked: [Say("ok")])
    wire.answer("/v1/responses", json.dumps(body).encode(), CODEX)

    said = wire.asked[0].content["input"]
    kinds = [item["type"] for item in said]
    assert kinds == [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert (said[1]["name"], said[1].get("namespace")) == ("mcp__files__read_file", None)


@pytest.mark.parametrize("searches", [None, False, True])
def test_a_clients_own_search_passes_where_the_upstream_is_said_to_understand_it(
    searches: bool | None,
) -> None:
    shape = "anthropic-messages"
    tools = [named(shape, "ToolSearch"), {**named(shape, "mcp__a__b"), "defer_loading": True}]
    said = [{"role": "user", "content": "hi"}]
    body = json.dumps({"model": "m", "max_tokens": 9, "tools": tools, "messages": said}).encode()
    with ModelServer(Says("Hello.")) as model:
        upstream = Upstream(name="up", url=model.url, searches=searches)
        with proxied(upstream) as proxy:
            assert proxy.ask("/v1/messages", body).status == 200
    [request] = model.requests
    assert (request.raw == body) is (searches is True)
    assert ("defer_loading" in request.raw.decode()) is (searches is True)


def test_what_a_broken_answer_left_stays_before_the_answer_that_came_instead() -> None:
    """Codex keeps the whole items of a stream that broke off and asks again behind them."""
    files = [{**t, "name": t["name"].removeprefix("mcp__files__")} for t in mcp_tools(SHAPE)]
    body = json.loads(of_codex(space("mcp__files", *files)))
    said = {"type": "message", "role": "assistant"}
    body["input"].append({**said, "content": [{"type": "output_text", "text": "I look."}]})
    named_file = {"name": "mcp__files__read_file", "arguments": {"path": "a"}}
    replies = [
        [Call("tool_search", {"query": "read a file"})],
        [Call("tool_call", named_file, id="call_000000000001")],
        [Say("Done.")],
    ]
    wire = Between(lambda asked: replies[len(asked.calls)])
    _, _, answer = wire.answer("/v1/responses", json.dumps(body).encode(), CODEX)
    [call] = json.loads(answer)["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "read"}
    body["input"] += [call, result]
    wire.answer("/v1/responses", json.dumps(body).encode(), CODEX)

    _, before, after = (texts_of(asked.body) for asked in wire.asked)
    assert after[: len(before)] == before
    assert "I look." in after[1]
