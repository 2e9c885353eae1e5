"""`toolfold.runtime.clients`: servers that are almost OpenAI's."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from support.asking import APIS, HELLO, asked, chunk, piece
from support.model_server import Fails, ModelServer, Raw, Says, event
from toolfold.runtime.clients import OpenAIChat
from toolfold.runtime.messages import Call
from toolfold.runtime.model import ModelError, Usage


def calls(*pieces: dict[str, Any]) -> bytes:
    return chunk({"tool_calls": list(pieces)})


ADD, SUB = Call("add", '{"a": 1}', "c1"), Call("sub", '{"b": 2}', "c2")
DONE = b"data: [DONE]\n\n"
STOP = chunk({}, "stop")
PARTS = ('{"a"', ": 1}")

DEVIATIONS: dict[str, tuple[list[bytes], tuple[Call, ...]]] = {
    "the end says stop, with a call": (
        [calls(piece("add", '{"a": 1}', index=0, id="c1")), STOP, DONE],
        (ADD,),
    ),
    "no index, whole calls in one chunk": (
        [calls(piece("add", '{"a": 1}', id="c1"), piece("sub", '{"b": 2}', id="c2")), STOP, DONE],
        (ADD, SUB),
    ),
    "no index, a call a chunk": (
        [
            calls(piece("add", '{"a": 1}', id="c1")),
            calls(piece("sub", '{"b": 2}', id="c2")),
            STOP,
            DONE,
        ],
        (ADD, SUB),
    ),
    "no index, arguments in parts": (
        [
            calls(piece("add", "", id="c1")),
            *(calls(piece(None, part)) for part in PARTS),
            calls(piece("sub", "", id="c2")),
            calls(piece(None, '{"b": 2}')),
            STOP,
            DONE,
        ],
        (ADD, SUB),
    ),
    "no index, the id in every part": (
        [
            calls(piece("add", PARTS[0], id="c1")),
            calls(piece(None, PARTS[1], id="c1")),
            calls(piece("sub", '{"b": 2}', id="c2")),
            STOP,
            DONE,
        ],
        (ADD, SUB),
    ),
    "each piece comes in the field of the first API too": (
        [
            chunk(
                {
                    "tool_calls": [piece("add", part, index=0, id="c1")],
                    "function_call": {"name": "add", "arguments": part},
                }
            )
            for part in PARTS
        ]
        + [STOP, DONE],
        (ADD,),
    ),
    "the index is always 0": (
        [
            calls(piece("add", PARTS[0], index=0, id="c1")),
            calls(piece(None, PARTS[1], index=0)),
            calls(piece("sub", '{"b": 2}', index=0, id="c2")),
            STOP,
            DONE,
        ],
        (ADD, SUB),
    ),
    "the index counts the parts": (
        [
            calls(piece("add", "", index=0, id="c1")),
            calls(piece(None, PARTS[0], index=1)),
            calls(piece(None, PARTS[1], index=2)),
            STOP,
            DONE,
        ],
        (ADD,),
    ),
    "neither index nor id": (
        [
            calls(piece("add", '{"a": 1}'), piece("add", '{"a": 1}')),
            calls(piece("sub", '{"b": 2}')),
            STOP,
            DONE,
        ],
        (Call("add", '{"a": 1}'), Call("add", '{"a": 1}'), Call("sub", '{"b": 2}')),
    ),
    "neither index nor id, and broken arguments": (
        [calls(piece("add", '{"a": '), piece("add", '{"a": 1}')), STOP, DONE],
        (Call("add", '{"a": '), Call("add", '{"a": 1}')),
    ),
    "neither index nor id nor arguments": (
        [calls(piece("add", "")), calls(piece("sub", "")), STOP, DONE],
        (Call("add", ""), Call("sub", "")),
    ),
    "the same tool twice, without ids, in parts": (
        [
            calls(piece("add", "", index=0)),
            *(calls(piece(None, part, index=0)) for part in PARTS),
            calls(piece("add", "", index=0)),
            *(calls(piece(None, part, index=0)) for part in PARTS),
            STOP,
            DONE,
        ],
        (Call("add", '{"a": 1}'), Call("add", '{"a": 1}')),
    ),
    "name and id again in every part, and at the end": (
        [
            *(calls(piece("add", part, index=0, id="c1")) for part in (*PARTS, "")),
            STOP,
            DONE,
        ],
        (ADD,),
    ),
    "the name comes in parts": (
        [
            calls(piece("a", "", index=0, id="c1")),
            calls(piece("dd", "", index=0)),
            calls(piece(None, '{"a": 1}', index=0)),
            STOP,
            DONE,
        ],
        (ADD,),
    ),
    "arguments before the name": (
        [
            calls(piece(None, PARTS[0], index=0)),
            calls(piece("add", PARTS[1], index=0, id="c1")),
            STOP,
            DONE,
        ],
        (ADD,),
    ),
    "arguments are an object": (
        [calls(piece("add", {"a": 1}, index=0, id="c1")), STOP, DONE],
        (Call("add", '{"a":1}', "c1"),),
    ),
    "arguments and id are null": (
        [calls({"index": 0, "id": None, "function": {"name": "add", "arguments": None}}), STOP],
        (Call("add", ""),),
    ),
    "two calls with one id": (
        [
            calls(piece("add", '{"a": 1}', index=0, id="c1")),
            calls(piece("sub", '{"b": 2}', index=1, id="c1")),
            STOP,
        ],
        (ADD, Call("sub", '{"b": 2}', "c1")),
    ),
    "calls that take turns": (
        [
            calls(piece("add", PARTS[0], index=0, id="c1")),
            calls(piece("sub", '{"b"', index=1, id="c2")),
            calls(piece(None, PARTS[1], index=0)),
            calls(piece(None, ": 2}", index=1)),
            STOP,
        ],
        (ADD, SUB),
    ),
    "the first API's function_call": (
        [
            chunk({"function_call": {"name": "add", "arguments": PARTS[0]}}),
            chunk({"function_call": {"arguments": PARTS[1]}}),
            chunk({}, "function_call"),
            DONE,
        ],
        (Call("add", '{"a": 1}'),),
    ),
}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_calls_are_put_together_however_a_server_cuts_them(name: str) -> None:
    pieces, expected = DEVIATIONS[name]

    reply = asked(Raw(pieces))

    assert reply.message.calls == expected
    assert reply.stop == "calls"


TEXTS: dict[str, list[bytes]] = {
    "content is null": [
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "Hi"}),
        STOP,
        DONE,
    ],
    "no counts": [chunk({"content": "Hi"}), STOP, DONE],
    "no DONE": [chunk({"content": "Hi"}), STOP],
    "no reason to stop": [chunk({"content": "Hi"}), DONE],
    "no blank line at the end": [chunk({"content": "Hi"}), STOP.rstrip()],
    "comments, pings and blank data": [
        b": OPENROUTER PROCESSING\n\n",
        b"event: ping\ndata:\n\n",
        b"id: 7\nretry: 10\n",
        chunk({"content": "Hi"}),
        b":\n\n",
        STOP,
        DONE,
    ],
    "no space behind data": [chunk({"content": "Hi"}).replace(b"data: ", b"data:"), STOP, DONE],
    "a byte order mark": [b"\xef\xbb\xbf", chunk({"content": "Hi"}), STOP, DONE],
    "content in parts": [
        chunk(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "Hi"},
                ]
            }
        ),
        STOP,
        DONE,
    ],
    "reasoning beside the content": [
        chunk({"reasoning": "hm"}),
        chunk({"reasoning_content": "hm", "content": None}),
        chunk({"content": "Hi"}),
        STOP,
        DONE,
    ],
    "chunks without choices": [
        event({"choices": None, "prompt_filter_results": []}),
        event({"choices": []}),
        event({"id": "x"}),
        chunk({"content": "Hi"}),
        STOP,
        DONE,
    ],
    "tool_calls is null": [chunk({"content": "Hi", "tool_calls": None}), STOP, DONE],
    "a second choice": [
        chunk({"content": "Hi"}),
        event({"choices": [{"index": 1, "delta": {"content": "other"}}]}),
        STOP,
        DONE,
    ],
    "the whole message in one event": [
        event({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    ],
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read_however_a_server_wraps_it(name: str) -> None:
    reply = asked(Raw(TEXTS[name]))

    assert (reply.message.text, reply.message.calls) == ("Hi", ())
    assert (reply.usage, reply.stop) == (Usage(), "end")


def test_counts_come_from_wherever_a_server_puts_them() -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5}
    in_every_chunk = [
        chunk({"content": "Hi"}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
        chunk({}, "stop", usage=counts),
    ]
    in_the_choice = [event({"choices": [{"delta": {}, "finish_reason": "stop", "usage": counts}]})]

    assert asked(Raw(in_every_chunk)).usage == Usage(9, 2, 5)
    assert asked(Raw(in_the_choice)).usage == Usage(9, 2, 5)


def test_counts_are_not_waited_for_where_a_server_leaves_the_stream_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolfold.runtime.clients._exchange.GRACE_SECONDS", 0.05)

    assert asked(Raw([chunk({"content": "Hi"}), STOP], then="hold")).message.text == "Hi"


def test_a_connection_that_breaks_behind_the_end_takes_nothing_away() -> None:
    assert asked(Raw([chunk({"content": "Hi"}), STOP], then="break")).message.text == "Hi"


def test_a_refusal_in_a_field_of_its_own_is_the_answer() -> None:
    reply = asked(Raw([chunk({"refusal": "I will not."}), STOP, DONE]))

    assert (reply.message.text, reply.stop) == ("I will not.", "refused")


@pytest.mark.parametrize(
    "pieces",
    [
        [event({"error": {"message": "the model fell over", "code": 400}})],
        [event({"error": "the model fell over"})],
        [event({"object": "error", "message": "the model fell over", "code": 40303})],
        [event({"message": "the model fell over"}, "error")],
        [b'error: {"code": 400, "message": "the model fell over"}\n\n'],
        [b'{"error": {"message": "the model fell over"}}'],
        [b'[{"error": {"code": 400, "message": "the model fell over"}}]'],
        [b'{"detail": "the model fell over", "error": true}'],
    ],
)
def test_an_error_inside_a_reply_is_an_error(pieces: list[bytes]) -> None:
    with pytest.raises(ModelError) as caught:
        asked(Raw(pieces))

    assert str(caught.value) == ("model 'any': the server reported an error: 'the model fell over'")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([b"<!doctype html><title>Welcome</title>"], "the server sent no reply"),
        ([b"data: hello\n\n"], "a piece of the reply is not JSON"),
        ([b"data: 7\n\n"], "a piece of the reply is not an object"),
        ([b'{"choices": ['], "the reply is not JSON, or broke off"),
        ([b"data: " + b"x" * 9_000_000], "an event of the reply is longer than 8,388,608 bytes"),
    ],
)
def test_what_is_no_reply_is_an_error(api: str, pieces: list[bytes], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        asked(Raw(pieces), api)

    assert str(caught.value) == f"model 'any': {message}"


def test_a_reply_of_another_api_is_an_error() -> None:
    with pytest.raises(ModelError, match="the server sent no reply"):
        asked(Raw([b'{"status": "ok"}']))
    with pytest.raises(ModelError, match="the reply holds no content"):
        asked(Raw([b'{"status": "ok"}']), "anthropic")


# ---- servers that want less


def bodies(*script: Any, turns: int = 1, **options: Any) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        with ModelServer(*script) as server:
            async with OpenAIChat("any", base_url=server.openai, api_key="", **options) as model:
                for _ in range(turns):
                    async with aclosing(model.stream(HELLO)) as events:
                        assert [e async for e in events]
            return [request.body for request in server.requests]

    return asyncio.run(main())


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_does_not_count_in_streams_is_asked_without_and_remembered(
    status: int,
) -> None:
    refusal = Fails(status, "Extra inputs are not permitted: stream_options.include_usage")

    sent = bodies(refusal, Says("Hi"), Says("Hi"), turns=2)

    assert ["stream_options" in body for body in sent] == [True, False, False]
    assert {**sent[0], "stream_options": None} == {**sent[1], "stream_options": None}


def test_the_name_of_the_limit_is_the_one_that_the_server_takes() -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    )

    sent = bodies(Fails(400, message), Says("Hi"), Says("Hi"), turns=2)

    limits = [{k: v for k, v in body.items() if k.startswith("max_")} for body in sent]
    assert limits == [{"max_tokens": 400}, *[{"max_completion_tokens": 400}] * 2]


def test_a_server_that_refuses_in_the_same_words_again_is_believed() -> None:
    with pytest.raises(ModelError, match="stream_options"):
        bodies(*[Fails(400, "no stream_options, no max_tokens, no max_completion_tokens")] * 9)
