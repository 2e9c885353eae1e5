"""Two conversations whose calls have one id: neither gets the other's history."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from support.model_server import ModelServer, Says
from support.proxies import proxied
from support.proxy_requests import ON, PATHS, request, tools
from toolfold.proxy.exchange import ProxyDialect, Refused
from toolfold.proxy.opening import open_exchange
from toolfold.runtime.messages import Call
from toolfold.store.entries import MemoryEntries

CHAT = PATHS["openai-chat"]


@pytest.mark.parametrize("call_id", ["call_0", "functions.tool_call:0", "chatcmpl-tool-0"])
def test_each_goes_on_with_its_own_search(call_id: str) -> None:
    bridged = '{"name": "send_email", "arguments": {"to": "a@b.c"}}'
    script: list[Says] = []
    for query in ("send an email", "write a letter"):
        script.append(Says(calls=(Call("tool_search", f'{{"query": "{query}"}}', call_id),)))
        script.append(Says(calls=(Call("tool_call", bridged, call_id),)))
    talks: list[list[dict[str, Any]]] = []
    with (
        ModelServer(*script, Says("Done."), repeat=True) as model,
        proxied(model.url, settings=ON) as proxy,
    ):
        for said in ("mail a@b.c", "write to a@b.c"):
            talk: list[dict[str, Any]] = [{"role": "user", "content": said}]
            reply = proxy.ask(CHAT, request("openai-chat", messages=talk))
            talk.append(reply.json["choices"][0]["message"])
            talk.append({"role": "tool", "tool_call_id": call_id, "content": "sent"})
            talks.append(talk)
        for talk in talks:
            proxy.ask(CHAT, request("openai-chat", messages=talk))
    first, second = (str(each.body["messages"]) for each in model.requests[-2:])
    assert "send an email" in first
    assert "write a letter" not in first
    assert "write a letter" in second
    assert "send an email" not in second


@pytest.mark.parametrize(
    ("dialect", "host", "model"),
    [
        ("anthropic-messages", "https://api.anthropic.com", "claude-sonnet-4-5"),
        ("openai-responses", "https://api.openai.com/v1", "gpt-5.4"),
        ("anthropic-messages", "http://localhost", "m"),
        ("openai-chat", "http://localhost", "m"),
    ],
)
def test_two_that_begin_with_the_same_words_keep_their_own_tools(
    dialect: ProxyDialect, host: str, model: str
) -> None:
    store = MemoryEntries()
    began = [{"role": "user", "content": "hi"}]
    went_on = [
        *began,
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "go"},
    ]
    key = "input" if dialect == "openai-responses" else "messages"

    def sent(server: str, talk: list[dict[str, Any]]) -> dict[str, Any]:
        named = tools(dialect, *(f"mcp__{server}__tool_{n}" for n in range(60)))
        body = json.dumps({"model": model, key: talk, "tools": named, "max_tokens": 5}).encode()
        opened = open_exchange(dialect, body, {}, settings=ON, store=store, host=host)
        assert not isinstance(opened, Refused)
        return json.loads(opened.body)

    first = {server: sent(server, began) for server in ("alpha", "beta")}
    for server in ("alpha", "beta", "alpha"):
        assert sent(server, went_on)["tools"] == first[server]["tools"]


@pytest.mark.parametrize("listing", ["names", "sources"])
@pytest.mark.parametrize("dialect", PATHS)
def test_a_request_shows_no_tool_that_only_another_of_the_same_beginning_has(
    dialect: ProxyDialect, listing: Literal["names", "sources"]
) -> None:
    store, settings = MemoryEntries(), replace(ON, listing=listing)
    key = "input" if dialect == "openai-responses" else "messages"
    began = [{"role": "user", "content": "hi"}]
    went_on = [*began, {"role": "assistant", "content": "hello"}, *began]
    common = [f"mcp__files__tool_{number}" for number in range(20)]

    def sent(talk: list[dict[str, Any]], *more: str) -> bytes:
        named = tools(dialect, *common, *more)
        body = json.dumps({"model": "m", key: talk, "tools": named, "max_tokens": 5}).encode()
        opened = open_exchange(dialect, body, {}, settings=settings, store=store)
        assert not isinstance(opened, Refused)
        return opened.body

    first = sent(began, "mcp__vault__open_secret")
    assert b"secret" in first or b"vault" in first
    after = sent(went_on)
    assert b"secret" not in after
    assert b"vault" not in after
