"""`toolfold.runtime.clients`, judged by the makers' own clients on the same server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from support.asking import CHAT_TOOLS, RESPONSES_TOOLS, TOOLS, ask
from support.model_server import ModelServer, Says
from toolfold.runtime.clients import Anthropic, OpenAIChat, OpenAIResponses
from toolfold.runtime.messages import Call, Message, ResultMessage, UserMessage
from toolfold.runtime.model import Usage

CALLS = st.builds(
    Call,
    st.text("abc_", min_size=1, max_size=5),
    st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3).map(json.dumps),
    st.text("xyz", min_size=1, max_size=3),
)
REPLIES = st.builds(
    Says,
    st.text(max_size=30),
    st.lists(CALLS, max_size=3),
    thinking=st.text(max_size=10),
    prompt=st.integers(5, 9),
    cached=st.integers(0, 5),
    completion=st.integers(1, 9),
    piece=st.integers(1, 9),
).filter(lambda reply: reply.text or reply.calls)


@pytest.fixture(scope="module")
def server() -> Any:
    with ModelServer(Says("Hi"), repeat=True) as running:
        yield running


@settings(max_examples=10)
@given(said=REPLIES)
def test_openais_own_client_reads_the_same_reply(server: ModelServer, said: Says) -> None:
    server.script[:] = [said]

    async def main() -> None:
        async with (
            openai.AsyncOpenAI(base_url=server.openai, api_key="k", max_retries=0) as judge,
            judge.chat.completions.stream(
                model="any",
                messages=[{"role": "user", "content": "hello"}],
                stream_options={"include_usage": True},
            ) as events,
        ):
            final = await events.get_final_completion()
        async with OpenAIChat("any", base_url=server.openai, api_key="k") as model:
            reply = await ask(model, [UserMessage("hello")])

        message, usage = final.choices[0].message, final.usage
        assert reply.message.text == (message.content or "")
        assert [(c.id, c.name, c.arguments) for c in reply.message.calls] == [
            (c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()
        ]
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        assert reply.usage == Usage(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.prompt_tokens_details.cached_tokens or 0,
        )
        stops = {"stop": "end", "tool_calls": "calls"}
        assert reply.stop == stops[final.choices[0].finish_reason]

    asyncio.run(main())


@settings(max_examples=10)
@given(said=REPLIES)
def test_anthropics_own_client_reads_the_same_reply(server: ModelServer, said: Says) -> None:
    server.script[:] = [said]

    async def main() -> None:
        async with (
            anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as judge,
            judge.messages.stream(
                model="any", max_tokens=100, messages=[{"role": "user", "content": "hello"}]
            ) as events,
        ):
            final = await events.get_final_message()
        async with Anthropic("any", base_url=server.url, api_key="k") as model:
            reply = await ask(model, [UserMessage("hello")])

        blocks = [without_nulls(block.to_dict()) for block in final.content]
        assert [without_nulls(block) for block in reply.message.native] == blocks
        assert reply.message.text == "".join(b["text"] for b in blocks if b["type"] == "text")
        assert [(c.id, c.name, json.loads(c.arguments)) for c in reply.message.calls] == [
            (b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"
        ]
        read = final.usage.cache_read_input_tokens or 0
        written = final.usage.cache_creation_input_tokens or 0
        assert reply.usage == Usage(
            final.usage.input_tokens + read + written, final.usage.output_tokens, read
        )
        assert reply.stop == {"end_turn": "end", "tool_use": "calls"}[final.stop_reason or ""]

    asyncio.run(main())


def has_ids_of_its_own(reply: Says) -> bool:
    """Whether no two calls share an id, which the judge of the next test refuses."""
    return len({call.id for call in reply.calls}) == len(reply.calls)


@settings(max_examples=10)
@given(said=REPLIES.filter(has_ids_of_its_own))
def test_openais_own_client_reads_the_same_response(server: ModelServer, said: Says) -> None:
    server.script[:] = [said]

    async def main() -> None:
        async with (
            openai.AsyncOpenAI(base_url=server.openai, api_key="k", max_retries=0) as judge,
            judge.responses.stream(model="any", input="hello") as events,
        ):
            final = await events.get_final_response()
        async with OpenAIResponses("any", base_url=server.openai, api_key="k") as model:
            reply = await ask(model, [UserMessage("hello")])

        output = [item.to_dict() for item in final.output]
        (kept,) = reply.message.native
        assert without_parsed(kept["output"]) == without_parsed(output)
        assert reply.message.text == final.output_text
        assert [(c.id, c.name, c.arguments) for c in reply.message.calls] == [
            (i["call_id"], i["name"], i["arguments"])
            for i in output
            if i["type"] == "function_call"
        ]
        usage = final.usage
        assert usage is not None
        cached = usage.input_tokens_details.cached_tokens
        assert reply.usage == Usage(usage.input_tokens, usage.output_tokens, cached)
        assert reply.stop == ("calls" if said.calls else "end")

    asyncio.run(main())


def without_parsed(value: Any) -> Any:
    """What the judge adds of its own, left out."""
    if isinstance(value, dict):
        left = {k: without_parsed(v) for k, v in value.items() if not k.startswith("parsed")}
        return without_nulls(left)
    return [without_parsed(inner) for inner in value] if isinstance(value, list) else value


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


TWO_CALLS = Says("Wait.", (Call("add", '{"a": 1}', "c1"), Call("sub", "{}", "c2")), "let me see")


def test_openais_own_client_sends_the_same_conversation() -> None:
    async def main() -> None:
        with ModelServer(TWO_CALLS, Says("2"), TWO_CALLS, Says("2")) as server:
            async with openai.AsyncOpenAI(base_url=server.openai, api_key="k") as judge:
                options: Any = {"model": "any", "max_tokens": 100, "tools": CHAT_TOOLS}
                said: list[Any] = [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Add 1."},
                ]
                first = await judge.chat.completions.create(messages=said, **options)
                said.append(first.choices[0].message)
                for i, call in enumerate(first.choices[0].message.tool_calls or ()):
                    said.append({"role": "tool", "tool_call_id": call.id, "content": f"{i}"})
                streamed = {"stream": True, "stream_options": {"include_usage": True}}
                stream = await judge.chat.completions.create(messages=said, **streamed, **options)
                assert [chunk async for chunk in stream]
            async with OpenAIChat("any", base_url=server.openai, api_key="k") as model:
                messages: list[Message] = [UserMessage("Add 1.")]
                more: Any = {"system": "Be brief.", "tools": CHAT_TOOLS}
                reply = await ask(model, messages, **more)
                messages += [
                    ResultMessage(f"{i}", call.id) for i, call in enumerate(reply.message.calls)
                ]
                await ask(model, messages, **more)
            theirs, ours = server.requests[1].body, server.requests[3].body

        assert without_nulls(ours) == without_nulls(theirs)

    asyncio.run(main())


def test_anthropics_own_client_sends_the_same_conversation() -> None:
    async def main() -> None:
        with ModelServer(TWO_CALLS, Says("2"), TWO_CALLS, Says("2")) as server:
            async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k") as judge:
                options: Any = {
                    "model": "any",
                    "max_tokens": 100,
                    "system": "Be brief.",
                    "tools": TOOLS,
                }
                said: list[Any] = [
                    {"role": "user", "content": [{"type": "text", "text": "Add 1."}]}
                ]
                async with judge.messages.stream(messages=said, **options) as events:
                    first = await events.get_final_message()
                said.append({"role": "assistant", "content": first.content})
                uses = [block for block in first.content if block.type == "tool_use"]
                results = [
                    {"type": "tool_result", "tool_use_id": use.id, "content": f"{i}"}
                    for i, use in enumerate(uses)
                ]
                said.append({"role": "user", "content": results})
                async with judge.messages.stream(messages=said, **options) as events:
                    await events.get_final_message()
            async with Anthropic("any", base_url=server.url, api_key="k", cache=False) as model:
                messages: list[Message] = [UserMessage("Add 1.")]
                more: Any = {"system": "Be brief.", "tools": TOOLS}
                reply = await ask(model, messages, **more)
                messages += [
                    ResultMessage(f"{i}", call.id) for i, call in enumerate(reply.message.calls)
                ]
                await ask(model, messages, **more)
            theirs, ours = server.requests[1].body, server.requests[3].body

        assert without_nulls(ours) == without_nulls(theirs)

    asyncio.run(main())


def test_openais_own_client_sends_the_same_conversation_to_responses() -> None:
    async def main() -> None:
        with ModelServer(TWO_CALLS, Says("2"), TWO_CALLS, Says("2")) as server:
            async with openai.AsyncOpenAI(base_url=server.openai, api_key="k") as judge:
                options: Any = {
                    "model": "any",
                    "max_output_tokens": 100,
                    "instructions": "Be brief.",
                    "tools": [{**tool, "strict": False} for tool in RESPONSES_TOOLS],
                    "store": False,
                    "include": ["reasoning.encrypted_content"],
                }
                said: list[Any] = [{"role": "user", "content": "Add 1."}]
                first = await judge.responses.create(input=said, **options)
                said += first.output
                calls = [item for item in first.output if item.type == "function_call"]
                said += [
                    {"type": "function_call_output", "call_id": call.call_id, "output": f"{i}"}
                    for i, call in enumerate(calls)
                ]
                stream = await judge.responses.create(input=said, stream=True, **options)
                assert [one async for one in stream]
            async with OpenAIResponses("any", base_url=server.openai, api_key="k") as model:
                messages: list[Message] = [UserMessage("Add 1.")]
                more: Any = {"system": "Be brief.", "tools": RESPONSES_TOOLS}
                reply = await ask(model, messages, **more)
                messages += [
                    ResultMessage(f"{i}", call.id) for i, call in enumerate(reply.message.calls)
                ]
                await ask(model, messages, **more)
            theirs, ours = server.requests[1].body, server.requests[3].body

        assert without_nulls(ours) == without_nulls(theirs)
        assert TypeAdapter(ResponseCreateParamsStreaming).validate_python(ours)

    asyncio.run(main())
