"""A token for some tools only: no way of bringing others leads to the model."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from support.model_server import ModelServer, Raw, Says
from support.proxies import RunningProxy, proxied
from support.proxy_requests import ON, PATHS, request, tools
from toolfold.config.proxy_settings import Upstream
from toolfold.config.serve_settings import Token
from toolfold.runtime.messages import Call

TOKEN = "a-token-of-sixteen-and-more"
MINE = {"x-toolfold-token": TOKEN}
CHAT, RESPONSES, MESSAGES = PATHS.values()
SAID = [{"role": "user", "content": "hi"}]
HELLO: dict[str, Any] = {"model": "m", "messages": SAID, "max_tokens": 5}
ASKED: dict[str, Any] = {"model": "m", "input": "hi"}
CHATTED = tools("openai-chat", "delete_file")
MESSAGED = tools("anthropic-messages", "delete_file")


@contextmanager
def scoped(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, **token: Any
) -> Generator[RunningProxy]:
    monkeypatch.setenv("OWN", TOKEN)
    tokens = (Token(name="ci", env="OWN", **token),)
    upstream = Upstream(name="up", url=model.url)
    with proxied(upstream, host="0.0.0.0", tokens=tokens, settings=ON) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (CHAT, {**HELLO, "functions": [{"name": "delete_file"}]}, 400),
        (CHAT, {**HELLO, "Tools": CHATTED}, 400),
        (CHAT, {**HELLO, "tools": {"0": CHATTED[0]}}, 400),
        (CHAT, {**HELLO, "tools": [{"type": "custom", "custom": {"name": "delete_file"}}]}, 400),
        (CHAT, {**HELLO, "tools": CHATTED, "n": 2.0}, 400),
        (MESSAGES, {**HELLO, "mcp_servers": [{"type": "url", "name": "delete_file"}]}, 400),
        (MESSAGES, {**HELLO, "tools": [{"type": "mcp_toolset", "mcp_server_name": "a"}]}, 400),
        (RESPONSES, {**ASKED, "tools": [{"type": "mcp", "server_label": "delete_file"}]}, 400),
        (RESPONSES, {**ASKED, "tools": [{"type": "namespace", "name": "a", "tools": [{}]}]}, 400),
        (RESPONSES, {**ASKED, "prompt": {"id": "delete_file"}}, 400),
        (MESSAGES, {**HELLO, "thread": {"type": "continue", "previous_message_id": "a"}}, 400),
        (MESSAGES, {**HELLO, "tools": MESSAGED, "thread": {"type": "create"}}, 400),
        ("/v1/messages/batches", {"requests": [{"params": {"tools": CHATTED}}]}, 403),
        ("/v1/chat//completions", {**HELLO, "tools": CHATTED}, 403),
        ("/v1/chat/x/../completions", {**HELLO, "tools": CHATTED}, 400),
        ("/v1/chat/%2e/completions", {**HELLO, "tools": CHATTED}, 400),
        ("/api/chat", {**HELLO, "tools": CHATTED}, 403),
    ],
)
def test_tools_that_cannot_be_told_by_name_do_not_go_up(
    path: str, body: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        ModelServer(Says("Hi.")) as model,
        scoped(model, monkeypatch, deny=("*delete*",)) as proxy,
    ):
        reply = proxy.ask(path, body, MINE)
        assert proxy.seen.one().outcome == "refused"
    assert (reply.status, model.requests) == (status, [])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "a"}),
        ("/v1/audio/speech", {"input": "a"}),
        ("/v1/models", None),
        (CHAT, HELLO),
    ],
)
def test_what_has_no_tools_passes_with_any_token(
    path: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        ModelServer(Raw([b"{}"], 200, {})) as model,
        scoped(model, monkeypatch, read_only=True) as proxy,
    ):
        assert proxy.ask(path, body, MINE).status == 200


def test_our_gateways_bridge_is_a_tool_like_others_for_a_scope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = tools("anthropic-messages", "read_file", "mcp__toolfold__tool_call")
    with (
        ModelServer(Says("Hi.")) as model,
        scoped(model, monkeypatch, deny=("*tool_call",)) as proxy,
    ):
        assert proxy.ask(MESSAGES, {**HELLO, "tools": named}, MINE).status == 200
    assert "mcp__toolfold" not in str(model.requests[0].body)


def test_a_definition_inside_a_message_is_a_tool_for_a_scope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tool,) = tools("anthropic-messages", "delete_file")
    block = {"type": "tool_addition", "tool": {"definition": tool}}
    body = {**HELLO, "messages": [{"role": "user", "content": [block]}]}
    with (
        ModelServer(Says("Hi.")) as model,
        scoped(model, monkeypatch, deny=("*delete*",)) as proxy,
    ):
        assert proxy.ask(MESSAGES, body, MINE).status == 200
    assert "input_schema" not in str(model.requests[0].body)


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("is_first", [False, True])
def test_where_no_tool_is_left_nothing_is_said_of_tools(
    dialect: str, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = request(dialect, tool_choice="auto", parallel_tool_calls=True)
    body = {k: body[k] for k in sorted(body, key=lambda k: ("tool" in k) is not is_first)}
    with ModelServer(Says("Hi.")) as model, scoped(model, monkeypatch, read_only=True) as proxy:
        assert proxy.ask(PATHS[dialect], body, MINE).status == 200
    assert model.requests[0].body == {k: v for k, v in body.items() if "tool" not in k}


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_calls_what_is_outside_hears_of_no_such_tool(
    dialect: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_name = Says(calls=(Call("delete_file", "{}", "call_1"),))
    bridged = Says(calls=(Call("tool_call", '{"name": "delete_file", "arguments": {}}', "call_2"),))
    body = request(dialect, stream=stream, tools=tools(dialect, "read_file", "delete_file"))
    with (
        ModelServer(by_name, bridged, Says("I cannot.")) as model,
        scoped(model, monkeypatch, deny=("delete_*",)) as proxy,
    ):
        reply = proxy.ask(PATHS[dialect], body, MINE)
    assert (reply.status, len(model.requests)) == (200, 3)
    assert b"delete_file" not in reply.body


def test_several_tokens_in_a_path_all_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(Says("Hi.")) as model, scoped(model, monkeypatch) as proxy:
        assert proxy.ask(f"/t/{TOKEN}/t/{TOKEN}{CHAT}", HELLO).status == 200
    assert model.requests[0].path == CHAT


# ---- requests that are more than one


def exchange(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(request.replace(b"\n", b"\r\n"))
        return connection.recv(65536)


@pytest.mark.parametrize(
    "first",
    ["GET http://evil.example/t/secret/v1/models", "CONNECT evil.example:443", "GET @evil/x"],
)
def test_an_address_in_place_of_a_path_is_refused(
    first: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelServer() as model, proxied(model.url) as proxy:
        reply = exchange(proxy.port, f"{first} HTTP/1.1\nHost: localhost\n\n".encode())
    assert b" 400 " in reply.split(b"\r\n")[0]
    assert (model.requests, caplog.text) == ([], "")


def test_a_body_with_two_lengths_goes_up_with_its_own() -> None:
    lengths = "Content-Length: 4\nTransfer-Encoding: chunked\n\n7\n[1,2,3]\n0\n\n"
    with ModelServer(Raw([b"{}"], 200, {})) as model, proxied(model.url) as proxy:
        reply = exchange(proxy.port, f"POST /v1/x HTTP/1.1\nHost: localhost\n{lengths}".encode())
        assert b" 200 " in reply.split(b"\r\n")[0]
        model.wait_for(1)
    assert "content-length" not in model.requests[0].headers


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("settings", [{}, {"settings": ON}])
def test_no_client_is_sent_elsewhere_with_its_key(dialect: str, settings: Any) -> None:
    moved = Raw([b""], 307, {"location": "https://evil.example/v1/chat?token=a"})
    with ModelServer(moved) as model, proxied(model.url, **settings) as proxy:
        reply = proxy.ask(PATHS[dialect], request(dialect), {"x-api-key": "my-key"})
    assert (reply.status, "location" in reply.headers) == (502, False)
    assert "to https://evil.example;" in reply.json["error"]["message"]
    assert len(model.requests) == 1


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_upstream_is_asked_no_more_often_than_the_settings_say(rounds: int) -> None:
    search = Says(calls=(Call("tool_search", '{"query": "send an email"}', "call_1"),))
    with (
        ModelServer(search, repeat=True) as model,
        proxied(model.url, settings=ON, rounds=rounds) as proxy,
    ):
        assert proxy.ask(CHAT, request("openai-chat")).status == 200
    assert len(model.requests) == rounds
