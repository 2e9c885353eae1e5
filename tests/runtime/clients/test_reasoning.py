"""`toolfold.runtime.clients`: sealed reasoning goes back to who sealed it, and nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from anthropic.types import MessageCreateParams
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from support.asking import APIS, ask, client
from support.model_server import Fails, ModelServer, Raw, Says, anthropic_events, event
from toolfold.runtime.message_json import message_from_json, message_to_json
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage

THOUGHT = {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"}
HIDDEN = {"type": "redacted_thinking", "data": "c2VhbGVk"}
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "let me see"}],
    "encrypted_content": "gAAAAsealed",
}
CALLS = Says("Hm.", (Call("add", '{"a":1}', "t1"), Call("add", '{"a":2}', "t2")), "let me see")
RESULTS = [ResultMessage("2", "t1", "add"), ResultMessage("3", "t2", "add")]
ADD = {"name": "add", "description": "", "input_schema": {"type": "object"}}


def bodies(
    *script: Any,
    api: str,
    then: Sequence[Sequence[Message]] = (RESULTS,),
    write: bool = False,
    **options: Any,
) -> list[Any]:
    """The bodies of a conversation: a request, and one more for each of what is said then.

    Args:
        script: What the server says.
        api: The API.
        then: What is said after each reply.
        write: Whether the conversation is written down and read again before each request.
        options: The client's.
    """

    async def main() -> list[Any]:
        with ModelServer(*script) as server:
            async with client(server, api, **options) as model:
                messages: list[Message] = [UserMessage("1+1")]
                await ask(model, messages)
                for more in then:
                    messages += more
                    if write:
                        written = json.dumps([message_to_json(message) for message in messages])
                        messages = [message_from_json(value) for value in json.loads(written)]
                    await ask(model, messages)
            return [request.body for request in server.requests]

    return asyncio.run(main())


def reasoning_in(body: Any) -> list[Any]:
    """The sealed reasoning in a request, whatever the API."""
    if "input" in body:
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    content = [message["content"] for message in body["messages"]]
    blocks = [block for blocks in content if isinstance(blocks, list) for block in blocks]
    thoughts = [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]
    return thoughts + [m["reasoning_content"] for m in body["messages"] if "reasoning_content" in m]


# ---- it goes back


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("streamed", [True, False])
def test_openais_reasoning_goes_back_sealed_with_the_items_around_it(
    streamed: bool, write: bool
) -> None:
    _, body = bodies(
        CALLS, Says("2"), api="responses", write=write, parameters={"stream": streamed}
    )

    assert body["input"][1:] == [
        REASONING,
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hm.", "annotations": [], "logprobs": []}],
        },
        *(
            {
                "id": f"fc_{i}",
                "type": "function_call",
                "status": "completed",
                "call_id": f"t{i}",
                "name": "add",
                "arguments": f'{{"a":{i}}}',
            }
            for i in (1, 2)
        ),
        {"type": "function_call_output", "call_id": "t1", "output": "2"},
        {"type": "function_call_output", "call_id": "t2", "output": "3"},
    ]
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])


@pytest.mark.parametrize("write", [False, True])
def test_thinking_and_hidden_thinking_go_back_to_anthropic_untouched(write: bool) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    content = [HIDDEN, THOUGHT, {"type": "text", "text": "Hm."}, {**THOUGHT, "thinking": ""}, use]
    whole = {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}
    said = Raw([json.dumps(whole).encode()])

    _, body = bodies(said, Says("2"), api="anthropic", then=[RESULTS[:1]], write=write)

    assert body["messages"][1]["content"] == content
    assert TypeAdapter[Any](MessageCreateParams).validate_python(body)


def test_thinking_that_comes_in_pieces_is_the_same_as_thinking_that_comes_whole() -> None:
    events = list(anthropic_events(CALLS))
    hidden = {"type": "content_block_start", "index": 9, "content_block": HIDDEN}
    events[2:2] = [hidden, {"type": "content_block_stop", "index": 9}]

    _, body = bodies(
        Raw([event(e, e["type"]) for e in events]), Says("2"), api="anthropic", cache=False
    )

    assert reasoning_in(body) == [HIDDEN, THOUGHT]


def test_a_limit_that_thinking_would_eat_is_raised_by_its_budget() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2_000}

    (body,) = bodies(Says("2"), api="anthropic", then=(), parameters={"thinking": thinking})

    assert (body["max_tokens"], body["thinking"]) == (2_100, thinking)


def test_what_the_caller_wants_included_comes_on_top() -> None:
    wanted = ["web_search_call.results", "reasoning.encrypted_content"]

    (body,) = bodies(Says("2"), api="responses", then=(), parameters={"include": wanted})

    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.results"]


# ---- it does not go elsewhere


@settings(max_examples=10)
@given(turns=st.lists(st.sampled_from([(a, m) for a in APIS for m in "xy"]), max_size=6))
def test_a_provider_gets_its_own_reasoning_back_and_nobody_elses(
    turns: list[tuple[str, str]],
) -> None:
    """However a conversation moves between providers and models, also in the midst of calls."""

    async def main() -> None:
        with ModelServer(*[CALLS] * len(turns)) as server:
            messages: list[Message] = [UserMessage("1+1")]
            for api, name in turns:
                async with client(server, api, name) as model:
                    await ask(model, messages)
                messages += RESULTS
            for place, (request, turn) in enumerate(zip(server.requests, turns, strict=True)):
                own = {"responses": REASONING, "anthropic": THOUGHT, "openai": "let me see"}
                before = [own[turn[0]]] * turns[:place].count(turn)
                assert reasoning_in(request.body) == before
                text = request.raw.decode()
                assert "let me see" in text or not before
                assert text.count("Hm.") == place

    asyncio.run(main())


def test_openai_gets_no_ids_of_items_whose_reasoning_stays_behind() -> None:
    moved = ModelMessage(
        "Hm.",
        (Call("add", "{}", "t1"),),
        ({"type": "openai-responses", "output": [REASONING]},),
        "openai-responses elsewhere.example any",
    )

    async def main() -> Any:
        with ModelServer(Says("2")) as server:
            async with client(server, "responses") as model:
                await ask(model, [UserMessage("1+1"), moved, RESULTS[0]])
            return server.requests[0].body

    assert asyncio.run(main())["input"][1:3] == [
        {"role": "assistant", "content": "Hm."},
        {"type": "function_call", "call_id": "t1", "name": "add", "arguments": "{}"},
    ]


# ---- it is not taken back


@pytest.mark.parametrize(
    "refusal",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0: thinking block is bound to a different conversation",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified",
    ],
)
def test_thinking_that_anthropic_does_not_take_back_is_left_out_from_then_on(refusal: str) -> None:
    another = Says("", CALLS.calls, "now I see")
    script = (CALLS, Fails(400, refusal), another, Says("5"))

    first, refused, again, last = bodies(*script, api="anthropic", then=[RESULTS, RESULTS])

    assert reasoning_in(first) == reasoning_in(again) == []
    assert reasoning_in(refused) == [THOUGHT]
    kept = [block["type"] for block in again["messages"][1]["content"]]
    assert kept == ["text", "tool_use", "tool_use"]
    assert reasoning_in(last) == [{**THOUGHT, "thinking": "now I see"}]


def test_where_a_call_must_begin_with_thinking_that_is_gone_thinking_is_off_for_once() -> None:
    refusal = (
        "messages.1.content.0.type: Expected `thinking`, but found `text`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block."
    )
    enabled = {"type": "enabled", "budget_tokens": 50}
    script = (Says("", CALLS.calls), Fails(400, refusal), Says("5"), Says("6"))

    _, _, again, last = bodies(
        *script,
        api="anthropic",
        then=[RESULTS, [UserMessage("?")]],
        parameters={"thinking": enabled},
    )

    assert again["thinking"] == {"type": "disabled"}
    assert last["thinking"] == enabled


def test_reasoning_that_openai_cannot_open_is_left_out_with_the_ids_around_it() -> None:
    refusal = Fails(
        400, "The encrypted content gAAA...led could not be verified.", kind="invalid_request_error"
    )

    _, refused, again, last = bodies(
        CALLS, refusal, Says("5"), Says("6"), api="responses", then=[RESULTS, [UserMessage("?")]]
    )

    assert reasoning_in(refused) == [REASONING]
    for body in (again, last):
        assert body["input"][1:4] == [
            {"role": "assistant", "content": "Hm."},
            *(
                {
                    "type": "function_call",
                    "call_id": f"t{i}",
                    "name": "add",
                    "arguments": f'{{"a":{i}}}',
                }
                for i in (1, 2)
            ),
        ]
        assert body["include"] == ["reasoning.encrypted_content"]


def test_reasoning_that_is_left_out_leaves_a_plain_text_behind_it() -> None:
    plain = {"id": "msg_1", "type": "message", "role": "assistant", "content": "2"}
    whole = {"status": "completed", "output": [REASONING, plain]}
    said = Raw([event({"type": "response.completed", "response": whole}, "response.completed")])
    refusal = Fails(400, "The encrypted content gAAA...led could not be verified.")

    *_, body = bodies(said, refusal, Says("5"), api="responses", then=[[UserMessage("?")]])

    assert body["input"][1:2] == [{"role": "assistant", "content": "2"}]


def test_a_model_that_does_not_reason_is_not_asked_for_sealed_reasoning_again() -> None:
    refusal = Fails(400, "Encrypted content is not supported with this model.")

    first, again, last = bodies(refusal, Says("2"), Says("3"), api="responses", then=[[]])

    assert "include" in first
    assert "include" not in again
    assert "include" not in last


# ---- half of it


def test_thinking_that_was_cut_off_before_it_was_signed_stays_behind() -> None:
    events = list(anthropic_events(Says("", thinking="and on and on", stop="max_tokens")))
    cut = [e for e in events if e.get("delta", {}).get("type") != "signature_delta"]
    cut = [e for e in cut if e["type"] != "content_block_stop"]
    said = Raw([event(e, e["type"]) for e in cut])

    _, body = bodies(said, Says("2"), api="anthropic", then=[[UserMessage("Well?")]], cache=False)

    assert reasoning_in(body) == []


def test_a_response_that_was_cut_off_goes_back_without_its_items() -> None:
    said = Says("Half an ans", thinking="hm", stop="max_output_tokens")

    _, body = bodies(said, Says("2"), api="responses", then=[[UserMessage("Go on.")]])

    assert body["input"][1:] == [
        {"role": "assistant", "content": "Half an ans"},
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.parametrize("api", ["responses", "anthropic"])
def test_reasoning_that_led_to_nothing_stays_behind(api: str) -> None:
    _, body = bodies(Says(thinking="hm"), Says("2"), api=api, then=[[UserMessage("Well?")]])

    assert reasoning_in(body) == []
    assert "Well?" in json.dumps(body)
