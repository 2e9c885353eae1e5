"""`toolfold.runtime.clients.openai_responses`: what servers send beyond the plain reply."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.asking import HELLO, asked, client, heard
from support.model_server import ModelServer, Raw, Says, event, response, responses_events
from toolfold.runtime.messages import Call
from toolfold.runtime.model import ModelError, Reply, Usage


def told(kind: str, **more: Any) -> bytes:
    return event({"type": f"response.{kind}", **more}, f"response.{kind}")


def message(text: str, id: str = "msg_1", **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": id, "type": "message", "role": "assistant", "content": [part], **more}


def call(arguments: Any, id: str = "fc_1", **more: Any) -> dict[str, Any]:
    made = {"id": id, "type": "function_call", "call_id": "c1", "name": "add"}
    return {**made, "arguments": arguments, **more}


def completed(*output: Any, **more: Any) -> bytes:
    return told("completed", response={"status": "completed", "output": list(output), **more})


def read(*pieces: bytes) -> Reply:
    return asked(Raw(pieces), "responses")


# ---- pieces and wholes


def test_what_a_model_says_before_its_work_stands_apart_from_its_answer() -> None:
    first, last = message("I look.", phase="commentary"), message("2.", "msg_2")
    reply = read(
        told("output_text.delta", output_index=0, delta="I look."),
        told("output_item.done", output_index=0, item=first),
        told("output_text.delta", output_index=1, delta="2"),
        told("output_text.delta", output_index=1, delta="."),
        told("output_item.done", output_index=1, item=last),
        completed(first, last),
    )

    assert reply.message.text == "I look.\n\n2."
    assert reply.message.native == ({"type": "openai-responses", "output": [first, last]},)


def test_a_message_may_be_a_plain_text() -> None:
    plain = {"id": "msg_1", "type": "message", "role": "assistant", "content": "Hi there"}

    assert read(completed(plain)).message.text == "Hi there"
    piece = told("output_text.delta", output_index=0, delta="Hi")
    done = told("output_item.done", output_index=0, item=plain)
    assert read(piece, done, completed(plain)).message.text == "Hi there"


def test_calls_that_are_written_side_by_side_do_not_mix() -> None:
    made = [call('{"a": 0}', "fc_0", call_id="c0"), call('{"a": 1}', "fc_1", call_id="c1")]
    pieces = [(0, '{"a"'), (1, '{"a"'), (0, ": 0}"), (1, ": 1}")]
    reply = read(
        *(
            told("output_item.added", output_index=i, item={**made[i], "arguments": ""})
            for i in (0, 1)
        ),
        *(told("function_call_arguments.delta", output_index=i, delta=d) for i, d in pieces),
        *(told("output_item.done", output_index=i, item=made[i]) for i in (1, 0)),
        completed(*made),
    )

    assert reply.message.calls == (Call("add", '{"a": 0}', "c0"), Call("add", '{"a": 1}', "c1"))
    assert reply.stop == "calls"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([completed(message("Hi"), call("{}"))], id="at the end only"),
        pytest.param(
            [
                told("output_item.done", item=message("Hi")),
                told("output_item.done", item=call("{}")),
                completed(),
            ],
            id="items without a place, and nothing at the end",
        ),
        pytest.param(
            [
                told("output_item.added", item=message("")),
                told("output_text.delta", item_id="msg_1", delta="Hi"),
                told("output_item.added", item=call("")),
                told("function_call_arguments.delta", item_id="fc_1", delta="{}"),
                completed(message("Hi"), call("{}")),
            ],
            id="pieces by id, wholes at the end",
        ),
        pytest.param(
            [
                told("output_text.delta", output_index=0, delta="Hi"),
                told("output_item.done", output_index=1, item=call({})),
                told("output_item.done", output_index=0, item=message("Hi")),
                completed(),
                b"data: [DONE]\n\n",
            ],
            id="out of order, arguments as an object",
        ),
    ],
)
def test_servers_that_leave_out_a_part_are_understood(pieces: list[bytes]) -> None:
    reply = read(*pieces)

    assert reply.message.text == "Hi"
    (made,) = reply.message.calls
    assert (made.name, json.loads(made.arguments or "{}"), made.id) == ("add", {}, "c1")


def test_what_is_newer_than_this_client_is_kept_and_passed_over() -> None:
    odd = {"id": "x_1", "type": "something_new", "more": [1]}
    reply = read(
        told("something_new.delta", output_index=0, delta="?"),
        told("output_item.done", output_index=0, item=odd),
        told("output_item.done", output_index=1, item=message("Hi")),
        completed(odd, message("Hi")),
    )

    assert reply.message.text == "Hi"
    assert reply.message.native[0]["output"][0] == odd


def test_tokens_of_a_reply_are_counted_and_those_from_the_cache_among_them() -> None:
    usage = {
        "input_tokens": 900,
        "input_tokens_details": {"cached_tokens": 800},
        "output_tokens": 7,
    }

    assert read(completed(message("Hi"), usage=usage)).usage == Usage(900, 7, 800)
    assert read(completed(message("Hi"), usage=None)).usage == Usage()


# ---- ends that are none


def test_a_refusal_is_shown_and_told() -> None:
    part = {"type": "refusal", "refusal": "I will not."}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    streamed = read(
        told("refusal.delta", output_index=0, delta="I will "),
        told("refusal.delta", output_index=0, delta="not."),
        told("output_item.done", output_index=0, item=item),
        completed(item),
    )

    for reply in (streamed, read(completed(item))):
        assert (reply.message.text, reply.stop) == ("I will not.", "refused")


def test_a_call_that_was_cut_off_is_there_as_far_as_it_came() -> None:
    half = call('{"a": ', status="incomplete")
    over = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    reply = read(
        told("output_item.added", output_index=0, item=call("")),
        told("function_call_arguments.delta", output_index=0, delta='{"a": '),
        told("incomplete", response={**over, "output": [half]}),
    )

    assert reply.message.calls == (Call("add", '{"a": ', "c1"),)
    assert (reply.stop, reply.message.native) == ("length", ())


FAILED = {"status": "failed", "error": {"code": "server_error", "message": "Boom"}, "output": []}
ERROR = {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None}


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([told("failed", response=FAILED)], "Boom"),
        ([event(ERROR, "error")], "Slow down"),
        ([json.dumps(FAILED).encode()], "Boom"),
    ],
)
def test_a_response_that_failed_is_asked_for_again_while_nothing_was_said(
    pieces: list[bytes], said: str
) -> None:
    async def main() -> None:
        late = [told("output_text.delta", output_index=0, delta="Hi"), *pieces]
        with ModelServer(Raw(pieces), Says("2"), Raw(late)) as server:
            async with client(server, "responses") as model:
                assert (await heard(model, HELLO))[1].message.text == "2"
                assert len(server.requests) == 2
                if pieces[0].startswith(b"{"):
                    return
                with pytest.raises(ModelError, match=f"the server reported an error: '{said}'"):
                    await heard(model, HELLO)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"object": "list", "data": []}, "the reply holds no output"),
        ({"status": "cancelled", "output": []}, "the response is cancelled"),
        ({"error": {"message": "bad"}}, "the server reported an error: 'bad'"),
        ([1], "the reply is not an object"),
    ],
)
def test_what_is_no_response_is_told(value: Any, error: str) -> None:
    with pytest.raises(ModelError, match=error):
        asked(Raw([json.dumps(value).encode()]), "responses")


def test_a_reply_in_one_piece_is_the_same_as_one_in_many() -> None:
    said = Says("Hi.", (Call("add", '{"a": 1}', "c1"),), "hm", prompt=5, cached=2, completion=3)
    whole = asked(Raw([json.dumps(response(said)).encode()]), "responses")
    streamed = asked(Raw([event(e, e["type"]) for e in responses_events(said)]), "responses")

    assert whole == streamed


@pytest.mark.parametrize("details", [None, {}, {"reason": "something_new"}])
def test_a_reply_that_is_not_complete_was_cut_off_whatever_the_reason_is_called(
    details: Any,
) -> None:
    begun = call("", status="in_progress")
    reply = read(
        told("output_item.added", output_index=0, item=begun),
        told("incomplete", response={"status": "incomplete", "incomplete_details": details}),
    )

    assert reply.stop == "length"


def test_a_call_is_one_call_where_the_end_counts_the_items_in_another_way() -> None:
    made = call("{}")

    reply = read(told("output_item.done", output_index=1, item=made), completed(made))

    assert reply.message.calls == (Call("add", "{}", "c1"),)
