"""`toolfold.runtime.clients`: replies, read as the servers send them."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.asking import APIS, HELLO, asked, chunk, client, heard, piece
from support.model_server import (
    ModelServer,
    Raw,
    Says,
    anthropic_events,
    event,
    openai_chunks,
    responses_events,
)
from toolfold.runtime.clients._anthropic_reader import MessagesReader
from toolfold.runtime.clients._endpoint import PieceReader
from toolfold.runtime.clients._exchange import ReplyReader
from toolfold.runtime.clients._openai_reader import ChatReader
from toolfold.runtime.clients._responses_reader import ResponsesReader
from toolfold.runtime.clients._sse import EventReader, ServerSentEvent
from toolfold.runtime.messages import Call, UserMessage
from toolfold.runtime.model import ModelError, Reply, Request, Stop, TextDelta, Usage

# ---- what all APIs promise


@pytest.mark.parametrize("api", APIS)
def test_text_comes_as_it_is_written_and_the_reply_last(api: str) -> None:
    async def main() -> None:
        with ModelServer(Says("Good morning!", piece=5, prompt=3, completion=4)) as server:
            async with client(server, api) as model:
                texts, reply = await heard(model)

        assert texts == ["Good ", "morni", "ng!"]
        assert reply.message.text == "Good morning!"
        assert reply.message.calls == ()
        assert (reply.usage, reply.stop) == (Usage(3, 4), "end")

    asyncio.run(main())


@pytest.mark.parametrize("api", APIS)
def test_calls_keep_their_ids_and_arguments_byte_for_byte(api: str) -> None:
    calls = (
        Call("add", '{ "a" : 1,\n"b":[2, 3.0] }', "call_1"),
        Call("say", '{"text":"caf\\u00e9 \\"é\\""}', "call_2"),
        Call("broken", '{"text": "no end', "call_2"),
    )

    reply = asked(Says("Wait.", calls), api)

    assert reply.message.calls == calls
    assert reply.stop == "calls"


@pytest.mark.parametrize("api", APIS)
def test_tokens_from_the_cache_are_part_of_the_prompt(api: str) -> None:
    assert asked(Says("x", prompt=900, cached=800, completion=7), api).usage == Usage(900, 7, 800)


def test_tokens_written_to_anthropics_cache_are_part_of_the_prompt() -> None:
    events = list(anthropic_events(Says("x", completion=9)))
    events[0]["message"]["usage"] |= {"input_tokens": 10, "cache_creation_input_tokens": 500}
    events[-2]["usage"] |= {"cache_read_input_tokens": 70}

    reply = asked(Raw([event(e, e["type"]) for e in events]), "anthropic")

    assert reply.usage == Usage(580, 9, 70)


@pytest.mark.parametrize(
    ("api", "word", "stop"),
    [
        ("openai", "stop", "end"),
        ("openai", "length", "length"),
        ("openai", "content_filter", "refused"),
        ("openai", "eos", "end"),
        ("responses", "completed", "end"),
        ("responses", "max_output_tokens", "length"),
        ("responses", "content_filter", "refused"),
        ("responses", "steered", "length"),
        ("anthropic", "end_turn", "end"),
        ("anthropic", "stop_sequence", "end"),
        ("anthropic", "pause_turn", "paused"),
        ("anthropic", "max_tokens", "length"),
        ("anthropic", "model_context_window_exceeded", "length"),
        ("anthropic", "refusal", "refused"),
    ],
)
def test_every_reason_to_stop_has_its_meaning(api: str, word: str, stop: Stop) -> None:
    assert asked(Says("x", stop=word), api).stop == stop


@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_is_not_streamed_is_read_too(api: str) -> None:
    calls = (Call("add", '{"a": 1}', "call_1"),)

    reply = asked(Says("One moment.", calls, prompt=5, completion=6), api, parameters={"stream": 0})

    assert reply.message.text == "One moment."
    assert [(c.name, json.loads(c.arguments), c.id) for c in reply.message.calls] == [
        ("add", {"a": 1}, "call_1")
    ]
    assert (reply.usage, reply.stop) == (Usage(5, 6), "calls")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("cut", [1, 3, 64])
def test_a_reply_is_the_same_however_the_network_cuts_it(api: str, cut: int) -> None:
    said = Says("Grüße, 世界 🌍", (Call("add", '{"a": "ü"}', "c"),), thinking="hm", prompt=1)

    async def main(cut: int) -> Reply:
        with ModelServer(said, cut=cut) as server:
            async with client(server, api) as model:
                return (await heard(model))[1]

    assert asyncio.run(main(cut)) == asyncio.run(main(0))


READERS: dict[str, Callable[[], ReplyReader]] = {
    "openai": ChatReader,
    "responses": ResponsesReader,
    "anthropic": MessagesReader,
}
LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
CALLS = st.builds(
    Call, st.text("abc_", min_size=1, max_size=6), st.text(max_size=30), st.text("xyz0", max_size=4)
)
REPLIES = st.builds(
    Says,
    st.text(max_size=40),
    st.lists(CALLS, max_size=3),
    thinking=st.text(max_size=20),
    prompt=st.integers(0, 9),
    piece=st.integers(1, 9),
)


@given(
    said=REPLIES,
    api=st.sampled_from(APIS),
    cuts=st.lists(st.integers(0, 4_000), max_size=30),
    line_end=LINE_ENDS,
    keep_alive=st.booleans(),
)
def test_the_reply_does_not_depend_on_where_the_bytes_are_cut(
    said: Says, api: str, cuts: list[int], line_end: bytes, keep_alive: bool
) -> None:
    if api == "openai":
        stream = b"".join(map(event, openai_chunks(said))) + b"data: [DONE]\n\n"
    else:
        events = anthropic_events if api == "anthropic" else responses_events
        stream = b"".join(event(e, e["type"]) for e in events(said))
    if keep_alive:
        stream = stream.replace(b"\n\n", b"\n\n: keep alive\n\n")
    stream = stream.replace(b"\n", line_end)
    borders = [0, *sorted(cuts), len(stream)]

    def read(parts: Sequence[bytes]) -> tuple[str, Reply]:
        pieces, reader = PieceReader(), READERS[api]()
        found = [piece for part in parts for piece in pieces.feed(part)] + pieces.close()
        return "".join(map(reader.read, found)), reader.reply()

    text, reply = read([stream[a:b] for a, b in pairwise(borders)])

    assert (text, reply) == read([stream])
    assert text == reply.message.text == said.text
    assert [c.id for c in reply.message.calls] == [c.id for c in said.calls]
    assert [c.arguments or "{}" for c in reply.message.calls] == [
        c.arguments or "{}" for c in said.calls
    ]


EVENT_LINES = st.lists(
    st.sampled_from(["data: a", "data:b", "data", "event: x", ": comment", "id: 7", "error: e", ""])
)


@given(EVENT_LINES, LINE_ENDS, st.lists(st.integers(0, 90), max_size=9))
def test_events_do_not_depend_on_where_the_bytes_are_cut(
    lines: list[str], line_end: bytes, cuts: list[int]
) -> None:
    stream = b"".join(line.encode() + line_end for line in lines)
    borders = [0, *sorted(cuts), len(stream)]

    def events(parts: Sequence[bytes]) -> list[ServerSentEvent]:
        reader = EventReader(1_000)
        return [event for part in parts for event in reader.feed(part)] + reader.close()

    found = events([stream[a:b] for a, b in pairwise(borders)])

    assert found == events(["\n".join(lines).encode()])


def test_an_event_has_all_its_lines() -> None:
    stream = b"event: x\r\ndata: one\r\ndata: two\r\n\r\nevent: lost\r\n\r\ndata: three"

    for cut in range(len(stream)):
        reader = EventReader(1_000)
        found = [*reader.feed(stream[:cut]), *reader.feed(stream[cut:]), *reader.close()]
        assert found == [ServerSentEvent("x", "one\ntwo"), ServerSentEvent("", "three")]


# ---- Anthropic's blocks


def test_blocks_are_kept_as_they_came() -> None:
    found = {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": {"x": [1]}}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "let me "},
                {"type": "thinking_delta", "thinking": "see"},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        ({"type": "redacted_thinking", "data": "abc="}, []),
        (
            {"type": "server_tool_use", "id": "s1", "name": "search", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"q": "x"}'}],
        ),
        (found, []),
        (
            {"type": "text", "text": "", "citations": None},
            [
                {"type": "text_delta", "text": "Found."},
                {"type": "citations_delta", "citation": {"n": 1}},
                {"type": "citations_delta", "citation": {"n": 2}},
                {"type": "delta_of_tomorrow", "text": "?"},
            ],
        ),
        (
            {"type": "tool_use", "id": "t1", "name": "add", "input": {}, "caller": {"type": "x"}},
            [
                {"type": "input_json_delta", "partial_json": ""},
                {"type": "input_json_delta", "partial_json": '{"a" :'},
                {"type": "input_json_delta", "partial_json": " 1}"},
            ],
        ),
        ({"type": "tool_use", "id": "t2", "name": "now", "input": {}}, []),
    ]
    events: list[Any] = [{"type": "message_start", "message": {"usage": {"input_tokens": 3}}}]
    for i, (begun, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": i, "content_block": begun})
        events += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": i})
    events += [
        {"type": "event_of_tomorrow"},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": None},
        {"type": "message_stop"},
    ]

    reply = asked(Raw([event(e, e["type"]) for e in events]), "anthropic")

    assert reply.message.text == "Found."
    assert reply.message.calls == (Call("add", '{"a" : 1}', "t1"), Call("now", "{}", "t2"))
    assert list(reply.message.native) == [
        {"type": "thinking", "thinking": "let me see", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "abc="},
        {"type": "server_tool_use", "id": "s1", "name": "search", "input": {"q": "x"}},
        found,
        {"type": "text", "text": "Found.", "citations": [{"n": 1}, {"n": 2}]},
        {
            "type": "tool_use",
            "id": "t1",
            "name": "add",
            "input": {"a": 1},
            "caller": {"type": "x"},
        },
        {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
    ]


def test_blocks_with_one_index_for_all_stay_apart() -> None:
    start = {"type": "content_block_start", "index": 0}
    events = [
        {**start, "content_block": {"type": "text", "text": "Hi"}},
        {**start, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]

    reply = asked(Raw([event(e) for e in events]), "anthropic")

    assert reply.message.text == "Hi"
    assert reply.message.calls == (Call("f", '{"a":1}', "t"),)
    assert reply.stop == "calls"


def test_deltas_go_to_the_block_that_they_name() -> None:
    use = {"type": "tool_use", "name": "f", "input": {}}
    json_delta = {"type": "content_block_delta"}
    events: list[Any] = [
        {"type": "content_block_start", "index": 0, "content_block": {**use, "id": "t0"}},
        {"type": "content_block_start", "index": 1, "content_block": {**use, "id": "t1"}},
        *(
            {**json_delta, "index": i, "delta": {"type": "input_json_delta", "partial_json": text}}
            for i, text in [(0, '{"a"'), (1, '{"b"'), (0, ": 0}"), (1, ": 1}")]
        ),
        {"type": "message_stop"},
    ]

    reply = asked(Raw([event(e) for e in events]), "anthropic")

    assert reply.message.calls == (Call("f", '{"a": 0}', "t0"), Call("f", '{"b": 1}', "t1"))


# ---- bounds


def endless(api: str, field: str) -> Any:
    """Chunks of a model that never stops, in one of its fields."""
    if api == "openai":
        deltas = {
            "text": {"content": "and on " * 20},
            "calls": {"tool_calls": [piece("add", "1234567" * 20, index=0, id="c")]},
            "thoughts": {"reasoning_content": "and on " * 20},
        }
        while True:
            yield chunk(deltas[field])
    if api == "responses":
        kinds = {
            "text": ("message", "output_text"),
            "calls": ("function_call", "function_call_arguments"),
            "thoughts": ("reasoning", "reasoning_summary_text"),
        }
        kind, written = kinds[field]
        item = {"type": kind, "id": "i_1"}
        yield event({"type": "response.output_item.added", "output_index": 0, "item": item})
        delta = {"output_index": 0, "item_id": "i_1", "delta": "and on " * 20}
        while True:
            yield event({"type": f"response.{written}.delta", **delta})
    blocks = {
        "text": ({"type": "text", "text": ""}, {"type": "text_delta", "text": "on " * 40}),
        "calls": (
            {"type": "tool_use", "id": "c", "name": "add", "input": {}},
            {"type": "input_json_delta", "partial_json": "1234567" * 20},
        ),
        "thoughts": (
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "on " * 40},
        ),
    }
    begun, delta = blocks[field]
    yield event({"type": "content_block_start", "index": 0, "content_block": begun})
    while True:
        yield event({"type": "content_block_delta", "index": 0, "delta": delta})


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("field", ["text", "calls", "thoughts"])
def test_a_model_that_never_stops_is_stopped(api: str, field: str) -> None:
    async def main() -> None:
        with ModelServer(Raw(endless(api, field))) as server:
            async with client(server, api) as model:
                texts, reply = await heard(model)

                assert reply.stop == "length"
                written = sum(map(len, texts)) + sum(len(c.arguments) for c in reply.message.calls)
                assert 8_000 < written < 10_000 or field == "thoughts"
                await server.left()

    asyncio.run(main())


def test_a_server_that_only_keeps_the_connection_alive_is_left_after_so_many_bytes() -> None:
    comments = (b": " + b"x" * 1_000_000 + b"\n\n" for _ in iter(int, 1))

    with pytest.raises(ModelError, match=r"the reply is longer than 67,108,864 bytes"):
        asked(Raw(comments))


# ---- leaving


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stage", ["before the head", "before the first byte", "midway"])
def test_cancelling_reaches_the_server(api: str, stage: str) -> None:
    first = {
        "openai": chunk({"content": "Hi"}),
        "responses": event({"type": "response.output_text.delta", "delta": "Hi"}),
        "anthropic": event(
            {"type": "content_block_start", "content_block": {"type": "text", "text": "Hi"}}
        ),
    }
    pieces = [first[api]] if stage == "midway" else []

    async def main() -> None:
        step = Raw(pieces, then="hold", is_silent=stage == "before the head")
        with ModelServer(step) as server:
            async with client(server, api) as model:
                seen = asyncio.Event()

                async def read() -> None:
                    async with aclosing(model.stream(HELLO)) as events:
                        async for one in events:
                            assert one == TextDelta("Hi")
                            seen.set()

                task = asyncio.create_task(read())
                await server.heard()
                if stage == "midway":
                    await asyncio.wait_for(seen.wait(), 5)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await server.left()

    asyncio.run(main())


@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_is_no_longer_read_is_broken_off(api: str) -> None:
    async def main() -> None:
        with ModelServer(Raw(endless(api, "text"))) as server:
            async with client(server, api) as model:
                async with aclosing(model.stream(HELLO)) as events:
                    assert isinstance(await anext(events), TextDelta)
                await server.left()

    asyncio.run(main())


def test_a_connection_serves_one_request_after_another() -> None:
    async def main() -> None:
        with ModelServer(Says("Hi"), repeat=True) as server:
            async with client(server) as model:
                for _ in range(5):
                    await heard(model)
            assert server.connections == 1

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_nobody_closed_outlives_its_event_loop() -> None:
    with ModelServer(Says("Hi"), repeat=True) as server:
        model = client(server)

        replies = [asyncio.run(heard(model))[1] for _ in range(3)]

        assert [reply.message.text for reply in replies] == ["Hi"] * 3
        del model
        gc.collect()


@pytest.mark.parametrize("api", APIS)
def test_fifty_conversations_at_once_do_not_mix(api: str) -> None:
    def echo(request: Any) -> Says:
        content = request.body["input" if api == "responses" else "messages"][0]["content"]
        return Says(content[0]["text"] if api == "anthropic" else content, piece=2)

    async def main() -> None:
        with ModelServer(echo, repeat=True, cut=11) as server:
            async with client(server, api) as model, asyncio.TaskGroup() as group:
                asked = {
                    f"conversation {i}": group.create_task(
                        heard(model, Request([UserMessage(f"conversation {i}")]))
                    )
                    for i in range(50)
                }

        assert {q: task.result()[1].message.text for q, task in asked.items()} == {
            q: q for q in asked
        }

    asyncio.run(main())
