"""Streams that stop without an end: nothing of them becomes a call, and the client is told."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from support.model_server import (
    ModelServer,
    Raw,
    Says,
    anthropic_events,
    openai_chunks,
    responses_events,
)
from support.proxies import proxied
from support.proxy_requests import ON, PATHS, request
from toolfold.runtime.messages import Call

SEARCH = Says(calls=(Call("tool_search", '{"query": "send an email"}', "call_1"),))
BY_NAME = Says(calls=(Call("send_email", '{"to": "a@b.c"}', "call_abcdef123456"),))
BRIDGED = Says(
    calls=(Call("tool_call", '{"name": "send_email", "arguments": {}}', "call_abcdef123456"),)
)
NO_ANSWERS = {
    "nothing": Raw([]),
    "a page": Raw([b"<html>"], 200, {"content-type": "text/html"}),
    "no events": Raw([b'{"x": 1}'], 200, {"content-type": "application/json"}),
}


def events(dialect: str, says: Says) -> list[bytes]:
    if dialect == "openai-chat":
        made: list[Any] = list(openai_chunks(says))
        return [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in made]
    made = list(responses_events(says) if "responses" in dialect else anthropic_events(says))
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in made]


def quoted(says: Says) -> bytes:
    return f'"{says.calls[0].name}"'.encode()


def up_to_the_call(dialect: str, says: Says) -> list[bytes]:
    """The events of a call as far as its name."""
    made = events(dialect, says)
    place = next(i for i, each in enumerate(made) if quoted(says) in each)
    return made[: place + 1]


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("says", [BY_NAME, BRIDGED])
@pytest.mark.parametrize("rest", [b"", b'data: {"id', b'data: {"error": {"message": "no"}}\n\n'])
def test_a_call_that_breaks_off_is_handed_to_nobody(dialect: str, says: Says, rest: bytes) -> None:
    pieces = [*up_to_the_call(dialect, says), rest]
    with ModelServer(Raw(pieces)) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
        assert proxy.seen.one().outcome == "failed"
    assert b"error" in reply.body
    assert quoted(says) not in reply.body
    assert b"[DONE]" not in reply.body
    assert len(model.requests) == 1


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("second", NO_ANSWERS)
def test_a_later_round_that_is_no_stream_ends_in_an_error(dialect: str, second: str) -> None:
    with (
        ModelServer(SEARCH, NO_ANSWERS[second]) as model,
        proxied(model.url, settings=ON) as proxy,
    ):
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
        assert proxy.seen.one().outcome == "failed"
    assert b"broke off" in reply.body


@pytest.mark.parametrize("dialect", PATHS)
def test_a_text_that_breaks_off_passes_as_it_came(dialect: str) -> None:
    made = events(dialect, Says("Hello there."))[:-4]
    with ModelServer(Raw(made)) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
    assert (reply.status, reply.body) == (200, b"".join(made))


@pytest.mark.parametrize("dialect", PATHS)
def test_a_stream_that_never_ends_is_ended_at_the_limit(dialect: str) -> None:
    made = events(dialect, Says("Hello there. " * 2_000))
    with (
        ModelServer(Raw(made, then="hold")) as model,
        proxied(model.url, settings=ON, reply_limit=100_000) as proxy,
    ):
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
        assert proxy.seen.one().outcome == "failed"
        assert model.gone.wait(5)
    assert b"more than 100,000 bytes" in reply.body[-300:]
    assert len(reply.body) < 200_000


@pytest.mark.parametrize("is_whole", [False, True])
def test_an_error_is_never_written_into_an_event_that_broke_off(is_whole: bool) -> None:
    piece = b'data: {"choices": []}\r\n' + (b"\r\n" if is_whole else b"")
    plain = {
        key: value for key, value in request("openai-chat", stream=True).items() if key != "tools"
    }
    with ModelServer(Raw([piece], then="break")) as model, proxied(model.url) as proxy:
        if is_whole:
            reply = proxy.ask(PATHS["openai-chat"], plain)
            assert reply.body.startswith(piece + b'data: {"error"')
        else:
            with pytest.raises(http.client.IncompleteRead) as caught:
                proxy.ask(PATHS["openai-chat"], plain)
            assert caught.value.partial == piece
