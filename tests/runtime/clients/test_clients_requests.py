"""`toolfold.runtime.clients`: what is sent of a conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.asking import APIS, CHAT_TOOLS, CLIENTS, RESPONSES_TOOLS, TOOLS, ask, base_url
from support.model_server import Fails, ModelServer, Says
from toolfold.runtime.clients import Anthropic, OpenAIChat
from toolfold.runtime.clients._pairing import SentReply, SentResult, paired
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.model import ModelError, Request

EPHEMERAL = {"type": "ephemeral"}


def sent(
    messages: Sequence[Message],
    api: str = "openai",
    *,
    system: str = "",
    tools: Sequence[Any] = (),
    **options: Any,
) -> dict[str, Any]:
    """The body of the request that a conversation makes."""

    async def main() -> dict[str, Any]:
        with ModelServer(Says("Hi")) as server:
            base = base_url(server, api)
            async with CLIENTS[api]("any", base_url=base, api_key="", **options) as model:
                request = Request(messages, system, tools, 100)
                assert [e async for e in model.stream(request)]
            return server.requests[0].body

    return asyncio.run(main())


CONVERSATION: list[Message] = [
    UserMessage("Add 1.", note="Tools that may help: add"),
    ModelMessage("Let me see.", (Call("add", '{"a" : 1}', "c1"), Call("sub", "{}", "c2"))),
    ResultMessage("2", "c1", "add"),
    ResultMessage("no such thing", "c2", "sub", is_error=True),
    ModelMessage("It is 2."),
    UserMessage("Thanks."),
]


def test_a_conversation_as_openai_gets_it() -> None:
    body = sent(CONVERSATION, system="Be brief.", tools=CHAT_TOOLS, parameters={"temperature": 0})

    assert body == {
        "model": "any",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Add 1.\n\nTools that may help: add"},
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "add", "arguments": '{"a" : 1}'},
                    },
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "sub", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
            {"role": "tool", "tool_call_id": "c2", "content": "no such thing"},
            {"role": "assistant", "content": "It is 2."},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": CHAT_TOOLS,
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
    }


def test_a_conversation_as_anthropic_gets_it() -> None:
    body = sent(CONVERSATION, "anthropic", system="Be brief.", tools=TOOLS, parameters={"top_k": 5})

    assert body == {
        "model": "any",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": EPHEMERAL}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Add 1."},
                    {"type": "text", "text": "Tools that may help: add"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
                    {"type": "tool_use", "id": "c2", "name": "sub", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "2"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c2",
                        "content": "no such thing",
                        "is_error": True,
                        "cache_control": EPHEMERAL,
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It is 2."}]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Thanks.", "cache_control": EPHEMERAL}],
            },
        ],
        "tools": [TOOLS[0], {**TOOLS[1], "cache_control": EPHEMERAL}],
        "stream": True,
        "top_k": 5,
    }


def test_a_conversation_as_openais_responses_get_it() -> None:
    body = sent(
        CONVERSATION,
        "responses",
        system="Be brief.",
        tools=[RESPONSES_TOOLS[0], {**RESPONSES_TOOLS[1], "strict": True}],
        parameters={"reasoning": {"effort": "low"}},
    )

    assert body == {
        "model": "any",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Add 1.\n\nTools that may help: add"},
            {"role": "assistant", "content": "Let me see."},
            {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a" : 1}'},
            {"type": "function_call", "call_id": "c2", "name": "sub", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "2"},
            {"type": "function_call_output", "call_id": "c2", "output": "no such thing"},
            {"role": "assistant", "content": "It is 2."},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": [{**RESPONSES_TOOLS[0], "strict": False}, {**RESPONSES_TOOLS[1], "strict": True}],
        "max_output_tokens": 100,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
        "reasoning": {"effort": "low"},
    }


# ---- Anthropic's cache


def marks(body: dict[str, Any]) -> list[str]:
    """Where the marks of a body stand."""
    parts = {"tools": body.get("tools", []), "system": body.get("system", [])}
    blocks = [(f"{key} {i}", b) for key, part in parts.items() for i, b in enumerate(part)]
    for i, message in enumerate(body["messages"]):
        blocks += [(f"message {i}", block) for block in message["content"]]
    return [
        where for where, block in blocks if isinstance(block, dict) and "cache_control" in block
    ]


def test_four_marks_close_tools_system_the_end_and_the_end_before() -> None:
    body = sent(CONVERSATION, "anthropic", system="Be brief.", tools=TOOLS)

    assert marks(body) == ["tools 1", "system 0", "message 2", "message 4"]


def test_the_end_of_one_request_is_marked_in_the_next() -> None:
    first = sent(CONVERSATION[:1], "anthropic")
    second = sent(CONVERSATION[:4], "anthropic")

    assert marks(first) == ["message 0"]
    assert marks(second) == ["message 0", "message 2"]
    assert second["messages"][0] == first["messages"][0]


def test_a_tool_that_the_provider_defers_gets_no_mark() -> None:
    tools = [*TOOLS, {**TOOLS[0], "name": "far", "defer_loading": True}]

    assert marks(sent(CONVERSATION[:1], "anthropic", tools=tools)) == ["tools 1", "message 0"]


def test_marks_of_the_host_count_and_there_are_never_more_than_four() -> None:
    tools = [{**TOOLS[0], "name": f"t{i}", "cache_control": EPHEMERAL} for i in range(3)]

    body = sent(CONVERSATION, "anthropic", system="Be brief.", tools=tools)

    assert marks(body) == ["tools 0", "tools 1", "tools 2", "system 0"]


def test_a_host_that_marks_more_than_four_gets_no_mark_of_ours() -> None:
    tools = [{**TOOLS[0], "name": f"t{i}", "cache_control": EPHEMERAL} for i in range(4)]

    body = sent(CONVERSATION, "anthropic", tools=tools, parameters={"cache_control": EPHEMERAL})

    assert marks(body) == ["tools 0", "tools 1", "tools 2", "tools 3"]


def test_without_the_cache_nothing_is_marked() -> None:
    body = sent(CONVERSATION, "anthropic", system="Be brief.", tools=TOOLS, cache=False)

    assert marks(body) == []
    assert body["system"] == "Be brief."


# ---- what a wire is stricter about


def transcripts(*turns: Sequence[Call]) -> list[Message]:
    messages: list[Message] = []
    for turn in turns:
        messages.append(ModelMessage(calls=tuple(turn)))
        messages += [ResultMessage(f"result of {call.name}", call.id) for call in turn]
    return messages


def ids(messages: Sequence[Message]) -> list[str]:
    entries = list(paired(messages))
    made = [call.id for entry in entries if isinstance(entry, SentReply) for call in entry.calls]
    assert made == [entry.id for entry in entries if isinstance(entry, SentResult)]
    return made


def test_ids_that_are_missing_or_double_are_made_of_the_calls_place() -> None:
    one = [Call("a", id=""), Call("b", id="x"), Call("c", id="x")]
    two = [Call("d", id="x"), Call("e", id="call00001"), Call("f", id="y")]

    assert ids(transcripts(one, two)) == [
        "call00001",
        "x",
        "call00003",
        "call00004",
        "call00005",
        "y",
    ]


IDS = st.sampled_from(["", " ", "x", "y", "call00001", "call00002", "call00003", "a b", "ü"])
TURNS = st.lists(
    st.lists(st.builds(Call, st.just("t"), id=IDS), min_size=1, max_size=4), max_size=4
)


@given(TURNS, st.integers(0, 4))
def test_every_call_has_an_id_of_its_own_that_later_messages_do_not_change(
    turns: list[list[Call]], shown: int
) -> None:
    made = ids(transcripts(*turns))

    assert all(id.strip() for id in made)
    assert len(set(made)) == len(made)
    assert ids(transcripts(*turns[:shown])) == made[: sum(map(len, turns[:shown]))]
    written = [call.id for turn in turns for call in turn]
    firsts = {id: i for i, id in reversed(list(enumerate(written)))}
    kept = [id for id, i in firsts.items() if made[i] == id]
    assert {"x", "y", "a b", "ü"} & set(written) <= set(kept)


def test_openais_responses_get_ids_of_the_length_they_take() -> None:
    body = sent(transcripts([Call("f", id="x" * 65), Call("g", id="y" * 64)]), "responses")

    assert [item["call_id"] for item in body["input"]] == ["call00001", "y" * 64] * 2


def test_anthropic_gets_ids_of_letters_it_takes() -> None:
    body = sent(transcripts([Call("f", id="functions.f:0"), Call("g", id="ok-1")]), "anthropic")

    uses = body["messages"][0]["content"]
    results = body["messages"][1]["content"]
    assert [use["id"] for use in uses] == ["call00001", "ok-1"]
    assert [result["tool_use_id"] for result in results] == ["call00001", "ok-1"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{ "a":1 }', '{ "a":1 }'),
        ("", "{}"),
        ('{"a": "line\nbreak"}', '{"a":"line\\nbreak"}'),
        ("{'a': True,}", '{"a":true}'),
        ('{"a": "no end', "{}"),
        ("[1]", "{}"),
        ("nonsense", "{}"),
        ('{"a": 123456789012345678901234567890}', '{"a": 123456789012345678901234567890}'),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_arguments_go_back_as_json_and_as_written_where_they_are(
    api: str, written: str, expected: str
) -> None:
    body = sent(transcripts([Call("f", written, "x")]), api)

    if api == "openai":
        assert body["messages"][0]["tool_calls"][0]["function"]["arguments"] == expected
    elif api == "responses":
        assert body["input"][0]["arguments"] == expected
    else:
        assert body["messages"][0]["content"][0]["input"] == json.loads(expected)


@pytest.mark.parametrize("api", APIS)
def test_names_that_no_provider_takes_are_made_fit(api: str) -> None:
    text = json.dumps(sent(transcripts([Call("a.b/c d", "{}", "x"), Call("", "{}", "y")]), api))

    assert '"a_b_c_d_' in text
    assert '"name": ""' not in text


@pytest.mark.parametrize("api", APIS)
def test_a_call_read_out_of_text_goes_back_as_a_call(api: str) -> None:
    call = Call("add", '{"a":1}', recovered=True)
    native = (
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "x"},
    )
    said = ModelMessage('{"name": "add"}', (call,), native if api == "anthropic" else ())

    body = sent([said, ResultMessage("2")], api)
    if api == "responses":
        call_id = "call00001"
        assert body["input"][0] == {
            "type": "function_call",
            "call_id": call_id,
            "name": "add",
            "arguments": '{"a":1}',
        }
        return
    message = body["messages"][0]

    if api == "openai":
        assert message["content"] == ""
        assert message["tool_calls"][0]["id"] == "call00001"
    else:
        use = {"type": "tool_use", "id": "call00001", "name": "add", "input": {"a": 1}}
        assert message["content"] == [native[0], use]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (transcripts([Call("f", id="x")])[:1], "call 'x' at the end has no result"),
        (
            [*transcripts([Call("f", id="x")])[:1], UserMessage("?")],
            "call 'x' before message 1 has no result",
        ),
        ([ResultMessage("2", "x")], "result 0 belongs to no call"),
    ],
)
def test_a_transcript_with_holes_is_refused(
    api: str, messages: list[Message], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        sent(messages, api)

    assert str(caught.value) == f"the transcript cannot be sent: {message}"


@pytest.mark.parametrize("api", APIS)
def test_half_a_character_does_not_break_a_request(api: str) -> None:
    body = sent([UserMessage("a\ud800b \ud83d\ude00")], api, system="s\udfff")

    assert "a\ufffdb \U0001f600" in json.dumps(body, ensure_ascii=False)


def test_blank_texts_which_anthropic_refuses_are_left_out() -> None:
    messages = [
        UserMessage("hello", " "),
        ModelMessage("", native=({"type": "text", "text": ""},)),
        UserMessage("", "a note"),
        ModelMessage(" \n", (Call("f", id="x"),)),
        ResultMessage("", "x", is_error=True),
    ]

    assert sent(messages, "anthropic", cache=False)["messages"] == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "a note"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "x", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]},
    ]


@pytest.mark.parametrize("api", ["responses", "anthropic"])
def test_nothing_but_blanks_is_refused(api: str) -> None:
    with pytest.raises(ModelError, match="there is nothing to send"):
        sent([UserMessage(" ")], api)


# ---- what goes back


def test_thoughts_go_back_to_anthropic_signed_as_they_came() -> None:
    async def main() -> None:
        calls = (Call("add", '{"a":1}', "t"), Call("add", '{"a":2}', "t"))
        with ModelServer(Says("Hm.", calls, "let me see"), Says("2")) as server:
            async with Anthropic("any", base_url=server.url, api_key="") as model:
                messages: list[Message] = [UserMessage("1+1")]
                await ask(model, messages)
                messages += [ResultMessage("2", "t"), ResultMessage("3", "t")]
                await ask(model, messages)
            blocks = server.requests[1].body["messages"][1]["content"]

        assert blocks == [
            {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"},
            {"type": "text", "text": "Hm."},
            {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}},
            {"type": "tool_use", "id": "call00002", "name": "add", "input": {"a": 2}},
        ]

    asyncio.run(main())


def test_reasoning_and_signatures_go_back_to_servers_that_sent_them_until_they_refuse() -> None:
    def reply(_: Any) -> Says:
        return Says("", (Call("add", '{"a":1}', "t"),), "let me see")

    async def main() -> list[Any]:
        refusal = Fails(400, "reasoning_content is not allowed")
        with ModelServer(reply, Says("2"), refusal, Says("2")) as server:
            async with OpenAIChat("any", base_url=server.openai, api_key="") as model:
                messages: list[Message] = [UserMessage("1+1")]
                await ask(model, messages)
                native = messages[1].native[0]  # type: ignore[union-attr]
                native["calls"][0]["extra_content"] = {"google": {"thought_signature": "s"}}
                messages.append(ResultMessage("2", "t"))
                await ask(model, messages)
                messages.append(UserMessage("sure?"))
                await ask(model, messages)
            return [request.body["messages"] for request in server.requests[1:]]

    bodies = asyncio.run(main())

    assert [body[1].get("reasoning_content") for body in bodies] == ["let me see"] * 2 + [None]
    for body in bodies:
        assert body[1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_a_conversation_moves_from_one_provider_to_another() -> None:
    async def main() -> None:
        said = Says("Hm.", (Call("add", '{"a":1}', "t"),), "let me see")
        with ModelServer(said, said, Says("2"), Says("2")) as server:
            async with (
                OpenAIChat("any", base_url=server.openai, api_key="") as one,
                Anthropic("any", base_url=server.url, api_key="", cache=False) as other,
            ):
                from_one: list[Message] = [UserMessage("1+1")]
                from_other: list[Message] = [UserMessage("1+1")]
                await ask(one, from_one)
                await ask(other, from_other)
                await ask(other, [*from_one, ResultMessage("2", "t")])
                await ask(one, [*from_other, ResultMessage("2", "t")])
            blocks = server.requests[2].body["messages"][1]["content"]
            message = server.requests[3].body["messages"][1]

        assert [block["type"] for block in blocks] == ["text", "tool_use"]
        assert set(message) == {"role", "content", "tool_calls"}

    asyncio.run(main())
