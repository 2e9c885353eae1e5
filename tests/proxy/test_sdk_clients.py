"""The official SDKs as clients: one answer each, however often the model searches inside."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from support.proxying import Asked, Between, Call, Say, Think, mcp_tools, texts_of

RENAME = "mcp__files__rename_file"
SEARCH = Call("tool_search", {"query": "rename a file"})
WRAPPED = Call("tool_call", {"name": RENAME, "arguments": {"path": "a.txt"}})


def play(*replies: list[Any]) -> Any:
    """Return a model that says these things, one after the other."""
    left = iter(replies)
    return lambda asked: next(left)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("piece", [0, 7])
def test_the_openai_sdk_reads_one_completion_of_two_rounds(streamed: bool, piece: int) -> None:
    wire = Between(play([Say("Looking."), SEARCH], [Say("There."), WRAPPED]), piece=piece)
    request: Any = {
        "model": "m",
        "messages": [{"role": "user", "content": "rename it"}],
        "tools": mcp_tools("openai-chat", own=("shell",)),
    }
    if streamed:
        with wire.openai().chat.completions.stream(**request) as stream:
            made = stream.get_final_completion()
    else:
        made = wire.openai().chat.completions.create(**request)
    [choice] = made.choices
    assert choice.message.content == "Looking.\n\nThere."
    assert choice.finish_reason == "tool_calls"
    [call] = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == (RENAME, {"path": "a.txt"})
    assert [tool.name for tool in wire.asked[0].tools] == [
        "shell", "tool_search", "tool_describe", "tool_call",
    ]  # fmt: skip
    assert RENAME in (wire.asked[1].text_of("tool_search") or "")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("piece", [0, 7])
def test_the_anthropic_sdk_reads_one_message_of_two_rounds(streamed: bool, piece: int) -> None:
    wire = Between(
        play([Think("Hm."), Say("Looking."), SEARCH], [Think("So."), Say("There."), WRAPPED]),
        piece=piece,
    )
    request: Any = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "rename it"}],
        "tools": mcp_tools("anthropic-messages", own=("Bash",)),
    }
    if streamed:
        with wire.anthropic().messages.stream(**request) as stream:
            made = stream.get_final_message()
    else:
        made = wire.anthropic().messages.create(**request)
    assert [block.type for block in made.content] == [
        "thinking", "text", "thinking", "text", "tool_use",
    ]  # fmt: skip
    assert made.stop_reason == "tool_use"
    call = made.content[-1]
    assert call.type == "tool_use"
    assert (call.name, call.input) == (RENAME, {"path": "a.txt"})
    last = wire.asked[-1]
    assert made.usage.input_tokens == len(last.body) // 4


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("piece", [0, 7])
def test_the_openai_sdk_reads_one_response_of_two_rounds(streamed: bool, piece: int) -> None:
    wire = Between(
        play([Think("Hm."), Say("Looking."), SEARCH], [Say("There."), WRAPPED]), piece=piece
    )
    request: Any = {
        "model": "m",
        "input": "rename it",
        "store": False,
        "tools": mcp_tools("openai-responses", own=("shell",)),
    }
    if streamed:
        with wire.openai().responses.stream(**request) as stream:
            numbers = [event.sequence_number for event in stream if event.type != "error"]
            made = stream.get_final_response()
        assert numbers == sorted(set(numbers))
    else:
        made = wire.openai().responses.create(**request)
    assert [item.type for item in made.output] == [
        "reasoning", "message", "message", "function_call",
    ]  # fmt: skip
    call = made.output[-1]
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments)) == (RENAME, {"path": "a.txt"})


@pytest.mark.parametrize("streamed", [False, True])
def test_later_requests_hold_what_the_model_saw_to_the_byte(streamed: bool) -> None:
    wire = Between(play([Say("Looking."), SEARCH], [WRAPPED], [Say("Done.")], [Say("Yes.")]))
    client = wire.openai()
    tools = mcp_tools("openai-chat", own=("shell",))
    messages: list[Any] = [{"role": "user", "content": "rename it"}]

    def ask() -> Any:
        if not streamed:
            return client.chat.completions.create(model="m", messages=messages, tools=tools)
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
            return stream.get_final_completion()

    message = ask().choices[0].message
    messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
    call_id = message.tool_calls[0].id
    messages.append({"role": "tool", "tool_call_id": call_id, "content": "renamed"})
    messages.append({"role": "assistant", "content": ask().choices[0].message.content})
    messages.append({"role": "user", "content": "sure?"})
    ask()
    assert_prefixes(wire.asked)
    last = json.loads(wire.asked[-1].body)["messages"]
    assert [m["role"] for m in last] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert last[3]["tool_calls"][0]["function"]["name"] == "tool_call"


def assert_prefixes(asked: list[Asked]) -> None:
    """Every request begins with what the one before it held, to the byte."""
    for one, next_one in pairwise(asked):
        before, after = texts_of(one.body), texts_of(next_one.body)
        assert after[: len(before)] == before
