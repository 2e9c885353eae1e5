"""One message for the client, however many rounds: what goes out when, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.proxying import DIALECTS, Call, Say, Think, mcp_tools
from toolfold import Settings
from toolfold.proxy.exchange import Again, Finished
from toolfold.proxy.opening import open_exchange
from toolfold.store.entries import MemoryEntries

RENAME = "mcp__files__rename_file"
NAMES: list[Any] = list(DIALECTS)
every_dialect = pytest.mark.parametrize("dialect", NAMES)


def exchange(dialect: Any, *, stream: bool = True, **more: Any) -> Any:
    key = "input" if dialect == "openai-responses" else "messages"
    body = {
        "model": "m",
        key: [{"role": "user", "content": "hi"}],
        "tools": mcp_tools(dialect, own=("shell",)),
        "stream": stream,
        **more,
    }
    return open_exchange(
        dialect,
        json.dumps(body).encode(),
        {},
        settings=Settings(enabled="on"),
        store=MemoryEntries(),
    )


def pieces(dialect: str, body: bytes, *parts: Any, number: int = 1) -> list[bytes]:
    wire = DIALECTS[dialect]
    asked = wire.read("/", {}, body)
    return list(wire.streamed(asked, list(parts), number))


def events(data: bytes) -> list[Any]:
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@every_dialect
def test_text_and_thinking_go_out_as_they_come(dialect: str) -> None:
    came = exchange(dialect)
    sent = pieces(
        dialect, came.body, Think("Hmmm."), Say("Words."), Call("tool_search", {"query": "x"})
    )
    out: list[bytes] = [came.receive(piece) for piece in sent]
    for piece, passed in zip(sent, out, strict=True):
        if b"tool_search" in piece:
            assert passed == b""
        elif b"Wor" in piece or b"Hm" in piece:
            # The beginning waits for the first thing that is said.
            assert passed.endswith(piece)
    assert isinstance(came.end(), Again)


@every_dialect
def test_a_turn_of_open_calls_alone_comes_down_event_by_event(dialect: str) -> None:
    came = exchange(dialect)
    sent = pieces(dialect, came.body, Say("Hi."), Call("shell", {"path": "a"}))
    out = b"".join(map(came.receive, sent))
    ended = came.end()
    assert isinstance(ended, Finished)
    assert out + ended.tail == b"".join(sent)


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-responses"])
def test_calls_of_open_tools_go_out_as_they_come(dialect: str) -> None:
    came = exchange(dialect)
    sent = pieces(dialect, came.body, Call("shell", {"path": "a"}))
    at = next(i for i, piece in enumerate(sent) if b"shell" in piece)
    for piece in sent[:at]:
        came.receive(piece)
    assert came.receive(sent[at]).endswith(sent[at])


def test_inner_stop_reasons_never_leave_but_for_a_limit() -> None:
    came = exchange("anthropic-messages")
    for piece in pieces("anthropic-messages", came.body, Call("tool_search", {"query": "x"})):
        came.receive(piece)
    again = came.end()
    assert again.head == b""
    sent = b"".join(pieces("anthropic-messages", again.body, Say("Long"), number=2))
    out = came.receive(sent.replace(b'"end_turn"', b'"max_tokens"'))
    whole = events(out + came.end().tail)
    [delta] = [event for event in whole if event["type"] == "message_delta"]
    assert delta["delta"]["stop_reason"] == "max_tokens"
    assert [event["type"] for event in whole].count("message_stop") == 1
    [start] = [event for event in whole if event["type"] == "message_start"]
    assert start["message"]["id"].endswith("1")


def test_a_call_that_was_cut_off_is_not_made() -> None:
    came = exchange("openai-chat")
    sent = pieces("openai-chat", came.body, Say("Hm."), Call("tool_call", '{"name": "mcp__fil'))
    out = b"".join(came.receive(p.replace(b'"tool_calls"}', b'"length"}')) for p in sent[:-2])
    ended = came.end()
    assert isinstance(ended, Finished)
    whole = events(out + ended.tail)
    assert whole[-1]["choices"][0]["finish_reason"] == "length"
    assert "tool_call" not in json.dumps(whole)


@every_dialect
def test_usage_is_the_last_rounds_and_the_sums_are_in_headers(dialect: str) -> None:
    came = exchange(dialect, stream=False)
    wire, sizes, body = DIALECTS[dialect], [], came.body
    step: Any = None
    for number, parts in enumerate(([Call("tool_search", {"query": "x"})], [Say("Done.")]), 1):
        asked = wire.read("/", {}, body)
        sizes.append(len(body) // 4)
        step = came.end(json.dumps(wire.whole(asked, parts, number)).encode())
        body = getattr(step, "body", b"")
    usage = json.loads(step.tail)["usage"]
    assert usage.get("input_tokens", usage.get("prompt_tokens")) == sizes[1]
    assert step.headers["x-toolfold-rounds"] == "2"
    assert step.headers["x-toolfold-prompt-tokens"] == str(sum(sizes))


@every_dialect
def test_a_keep_alive_stands_between_events(dialect: str) -> None:
    came = exchange(dialect)
    assert came.keep_alive().endswith(b"\n\n")
    broken = came.broken("the upstream broke off")
    assert b"the upstream broke off" in broken
    assert broken.endswith(b"\n\n")


def test_five_parallel_calls_are_handed_over_together() -> None:
    came = exchange("anthropic-messages")
    calls = [
        Call("tool_call", {"name": RENAME, "arguments": {"path": f"{n}"}}, id=f"toolu_{n:020}")
        for n in range(5)
    ]
    out = b"".join(map(came.receive, pieces("anthropic-messages", came.body, *calls)))
    whole = events(out + came.end().tail)
    starts = [event for event in whole if event["type"] == "content_block_start"]
    assert [event["index"] for event in starts] == [0, 1, 2, 3, 4]
    assert [event["content_block"]["name"] for event in starts] == [RENAME] * 5
    assert [event["content_block"]["id"] for event in starts] == [call.id for call in calls]
