"""`toolfold.runtime`: a model that ends without a word and without a call is asked once more."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.asking import APIS, client
from support.model_server import ModelServer
from support.model_server import Says as Said
from toolfold.runtime import Agent, Limits, Registry, Reply, ScriptedModel, TextDelta, calls, says
from toolfold.runtime.conversation import Conversation
from toolfold.runtime.messages import Call, ModelMessage, ResultMessage, UserMessage

NUDGE = "(Your last reply was empty. Answer in words, or call a tool.)"

registry = Registry()


@registry.tool(core=True)
def add(a: int) -> int:
    """Add one."""
    return a + 1


def held(*script: Any, **options: Any) -> Conversation:
    return Agent(ScriptedModel(script), registry, **options).conversation()


@pytest.mark.parametrize("empty", ["", " \n", "<think>Hm, what to say?</think>\n"])
def test_it_is_asked_once_more_and_the_report_counts_it(empty: str) -> None:
    conversation = held(says(empty), says("Hello."))

    done = asyncio.run(conversation.ask("Hi"))

    assert (done.text, done.stop, done.round_trips, done.asked_again) == ("Hello.", "end", 2, 1)
    assert conversation.messages == [
        UserMessage("Hi"),
        ModelMessage(empty),
        UserMessage("", NUDGE),
        ModelMessage("Hello."),
    ]
    assert conversation.prompt() == [UserMessage("Hi", NUDGE), ModelMessage("Hello.")]


def test_it_is_asked_once_and_not_twice() -> None:
    conversation = held(says(""), says(""))

    done = asyncio.run(conversation.ask("Hi"))

    assert (done.text, done.stop, done.round_trips, done.asked_again) == ("", "end", 2, 1)


def test_what_was_asked_again_is_streamed_like_any_other_reply() -> None:
    async def main() -> list[Any]:
        return [event async for event in held(says(""), says("Hello.")).send("Hi")]

    events = asyncio.run(main())

    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hello."]
    assert [e.message.text for e in events if isinstance(e, Reply)] == ["", "Hello."]


def test_after_a_tool_it_is_asked_behind_the_result_and_each_message_has_its_once() -> None:
    conversation = held(calls(("add", {"a": 1})), says(""), says("2"), says(""), says("3"))

    first = asyncio.run(conversation.ask("1+1"))
    second = asyncio.run(conversation.ask("And again?"))

    assert (first.text, first.asked_again, second.text, second.asked_again) == ("2", 1, "3", 1)
    kinds = [type(message) for message in conversation.prompt()[:4]]
    assert kinds == [UserMessage, ModelMessage, ResultMessage, UserMessage]
    assert conversation.prompt()[3] == UserMessage("", NUDGE)


def test_a_limit_is_not_exceeded_to_ask_again() -> None:
    done = asyncio.run(held(says(""), limits=Limits(turns=1)).ask("Hi"))

    assert (done.stop, done.round_trips, done.asked_again) == ("end", 1, 0)


@pytest.mark.parametrize("stop", ["length", "content_filter"])
def test_a_reply_that_was_cut_off_or_refused_has_its_reason_and_is_not_asked_again(
    stop: str,
) -> None:
    async def main() -> tuple[str, int]:
        with ModelServer(Said("", stop=stop)) as server:
            async with client(server) as model:
                done = await Agent(model, registry).conversation().ask("Hi")
                return done.stop, done.asked_again

    assert asyncio.run(main()) == ({"length": "length"}.get(stop, "refused"), 0)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("api", APIS)
def test_every_api_gets_our_word_behind_what_it_was_asked_and_no_empty_reply(
    api: str, streamed: bool
) -> None:
    async def main() -> list[Any]:
        call = Said("", (Call("add", '{"a": 1}', "c1"),))
        with ModelServer(call, Said(thinking="hm"), Said("2")) as server:
            async with client(server, api, parameters={"stream": streamed}) as model:
                done = await Agent(model, registry).conversation().ask("1+1")
                assert (done.text, done.asked_again) == ("2", 1)
            return [request.body for request in server.requests]

    body = asyncio.run(main())[-1]

    said = body["input" if api == "responses" else "messages"]
    assert NUDGE in json.dumps(said[-1])
    if api == "openai":
        assert [message["role"] for message in said[-3:]] == ["user", "assistant", "tool"]
        assert said[-1]["content"] == f"2\n\n{NUDGE}"
    elif api == "anthropic":
        assert [block["type"] for block in said[-1]["content"]] == ["tool_result", "text"]
    else:
        assert said[-1] == {"role": "user", "content": NUDGE}
