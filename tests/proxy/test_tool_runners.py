"""The official SDKs' own tool runners and helpers: they end as they do without the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import pydantic
import pytest
from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesToolRunner,
)

from support.model_server import ModelServer, Received, Says
from support.proxies import proxied
from support.proxy_requests import PATHS, request
from support.proxying import mcp_tools
from toolfold import Settings
from toolfold.proxy.threads import thread_refusal
from toolfold.runtime.messages import Call

VERBS = ("read", "write", "rename", "delete", "copy", "upload", "resize", "archive", "sign", "tag")
NAMES = [
    f"{verb}_{kind}" for verb in VERBS for kind in ("file", "page", "mail", "row", "key", "job")
]
OURS = ["tool_search", "tool_describe", "tool_call"]
FOLDING = Settings(enabled="on")


class Where(pydantic.BaseModel):
    """What every tool takes."""

    path: str


def call(name: str, number: int, /, **arguments: Any) -> Call:
    return Call(name, json.dumps(arguments, separators=(",", ":")), f"call_{number:020}")


def said(name: str) -> str:
    return name.replace("_", " a ")


def search(number: int, query: str) -> Says:
    return Says(calls=[call("tool_search", number, query=query)])


DIRECT = (
    Says(calls=[call("rename_file", 1, path="a"), call("tag_mail", 2, path="b")]),
    Says(calls=[call("archive_row", 3, path="c")]),
    Says("Done."),
)
SEARCHED = (
    search(91, "rename a file"),
    Says(
        calls=[
            call("tool_call", 1, name="rename_file", arguments={"path": "a"}),
            call("tool_call", 2, name="tag_mail", arguments={"path": "b"}),
        ]
    ),
    search(92, "archive a row"),
    DIRECT[1],
    DIRECT[2],
)
RAN = [("archive_row", "c"), ("rename_file", "a"), ("tag_mail", "b")]


@dataclass
class Ran:
    """The real functions, and what was called of them."""

    made: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def run(self, name: str, path: str) -> str:
        self.made.append((name, path))
        return f"did {name}"


def both(play: Callable[[str, str, Ran], Any]) -> list[tuple[Any, list[tuple[str, str]]]]:
    """Let a client run without the proxy and with it; return how each ended, and what it ran."""
    alone, behind = Ran(), Ran()
    with ModelServer(*DIRECT) as model:
        direct = play(model.url, model.openai, alone)
    with ModelServer(*SEARCHED) as model, proxied(model.url, settings=FOLDING) as proxy:
        folded = play(proxy.url, proxy.openai, behind)
    assert [names_in(one) for one in model.requests] == [OURS] * len(SEARCHED)
    assert "rename_file" in model.requests[1].raw.decode()
    return [(direct, sorted(alone.made)), (folded, sorted(behind.made))]


def names_in(received: Received) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in received.body["tools"]]


def assert_same(ended: Sequence[tuple[Any, list[tuple[str, str]]]]) -> None:
    (direct, ran_direct), (proxied_, ran_proxied) = ended
    assert ran_direct == ran_proxied == RAN
    assert direct == proxied_


both_ways = pytest.mark.parametrize("streamed", [False, True])
three_ways = pytest.mark.parametrize("way", ["whole", "streamed", "eager"])


# ---- Anthropic


ANTHROPIC: Any = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "go"}]}


def told(runner: Any) -> Any:
    """Return the conversation as a runner of Anthropic's has it."""
    return json.loads(pydantic.TypeAdapter(Any).dump_json(runner._params["messages"]))


def more(way: str) -> dict[str, Any]:
    return {
        "whole": {},
        "streamed": {"stream": True},
        "eager": {"stream": True, "run_tools_eagerly": True},
    }[way]


@three_ways
def test_anthropics_tool_runner(way: str) -> None:
    def play(url: str, _: str, ran: Ran) -> Any:
        def tool(name: str) -> Any:
            def run(path: str) -> str:
                return ran.run(name, path)

            return anthropic.beta_tool(run, name=name, description=said(name), input_schema=Where)

        client = anthropic.Anthropic(api_key="key", base_url=url, max_retries=0)
        with client:
            runner: Any = client.beta.messages.tool_runner(
                **ANTHROPIC, tools=list(map(tool, NAMES)), **more(way)
            )
            last = runner.until_done()
            return last.content[0].text, told(runner)

    assert_same(both(play))


@three_ways
def test_anthropics_async_tool_runner(way: str) -> None:
    async def run(url: str, ran: Ran) -> Any:
        def tool(name: str) -> Any:
            async def run(path: str) -> str:
                return ran.run(name, path)

            return anthropic.beta_async_tool(
                run, name=name, description=said(name), input_schema=Where
            )

        async with anthropic.AsyncAnthropic(api_key="key", base_url=url, max_retries=0) as client:
            runner: Any = client.beta.messages.tool_runner(
                **ANTHROPIC, tools=list(map(tool, NAMES)), **more(way)
            )
            last = await runner.until_done()
            return last.content[0].text, told(runner)

    assert_same(both(lambda url, _, ran: asyncio.run(run(url, ran))))


# ---- OpenAI


def described(name: str, shape: str) -> Any:
    if shape == "openai-chat":
        return openai.pydantic_function_tool(Where, name=name, description=said(name))
    made: Any = openai.pydantic_function_tool(Where, name=name)["function"]
    return {"type": "function", **made, "description": said(name)}


@three_ways
def test_openais_responses_tool_runner(way: str) -> None:
    def play(_: str, url: str, ran: Ran) -> Any:
        def tool(name: str) -> RegisteredFunction:
            return RegisteredFunction(
                described(name, "openai-responses"),
                lambda given: ran.run(name, str(given["path"])),
            )

        runner = ResponsesToolRunner(functions=list(map(tool, NAMES)))
        with openai.OpenAI(api_key="key", base_url=url, max_retries=0) as client:
            asked: Any = {"model": "m", "input": "go", "store": False}
            last = runner.run(client, asked, stream=way != "whole", eager=way == "eager")
        return last.output_text

    assert_same(both(play))


@three_ways
def test_openais_async_responses_tool_runner(way: str) -> None:
    async def run(url: str, ran: Ran) -> Any:
        def tool(name: str) -> AsyncRegisteredFunction:
            async def run(given: dict[str, object]) -> str:
                return ran.run(name, str(given["path"]))

            return AsyncRegisteredFunction(described(name, "openai-responses"), run)

        runner = AsyncResponsesToolRunner(functions=list(map(tool, NAMES)))
        async with openai.AsyncOpenAI(api_key="key", base_url=url, max_retries=0) as client:
            asked: Any = {"model": "m", "input": "go", "store": False}
            last = await runner.run(client, asked, stream=way != "whole", eager=way == "eager")
        return last.output_text

    assert_same(both(lambda _, url, ran: asyncio.run(run(url, ran))))


@both_ways
def test_openais_parsed_completions(streamed: bool) -> None:
    def play(_: str, url: str, ran: Ran) -> Any:
        messages: list[Any] = [{"role": "user", "content": "go"}]
        tools = [described(name, "openai-chat") for name in NAMES]
        asked: Any = {"model": "m", "messages": messages, "tools": tools}
        with openai.OpenAI(api_key="key", base_url=url, max_retries=0) as client:
            while True:
                if streamed:
                    with client.chat.completions.stream(**asked) as stream:
                        made: Any = stream.get_final_completion().choices[0].message
                else:
                    made = client.beta.chat.completions.parse(**asked).choices[0].message
                messages.append(made.model_dump(exclude_none=True, exclude={"parsed"}))
                for one in made.tool_calls or ():
                    where = one.function.parsed_arguments
                    assert isinstance(where, Where)
                    said = ran.run(one.function.name, where.path)
                    messages.append({"role": "tool", "tool_call_id": one.id, "content": said})
                if not made.tool_calls:
                    return json.loads(pydantic.TypeAdapter(Any).dump_json(messages))

    assert_same(both(play))


@both_ways
def test_openais_parsed_responses(streamed: bool) -> None:
    def play(_: str, url: str, ran: Ran) -> Any:
        items: list[Any] = [{"role": "user", "content": "go"}]
        tools = [described(name, "openai-responses") for name in NAMES]
        asked: Any = {"model": "m", "input": items, "tools": tools, "store": False}
        with openai.OpenAI(api_key="key", base_url=url, max_retries=0) as client:
            while True:
                if streamed:
                    with client.responses.stream(**asked) as stream:
                        made: Any = stream.get_final_response()
                else:
                    made = client.responses.parse(**asked)
                items += made.output
                calls = [item for item in made.output if item.type == "function_call"]
                for one in calls:
                    said = ran.run(one.name, json.loads(one.arguments)["path"])
                    kind = "function_call_output"
                    items.append({"type": kind, "call_id": one.call_id, "output": said})
                if not calls:
                    told = pydantic.TypeAdapter(Any).dump_json(items)
                    return [(i.get("call_id"), i.get("name")) for i in json.loads(told)]

    assert_same(both(play))


# ---- threads


RUNNER = {"x-stainless-helper": "BetaToolRunner, message-thread"}
BEGUN = {"thread": {"type": "create"}}
GOING_ON = {"thread": {"type": "continue", "previous_message_id": "msg_1"}}


def thread(**given: Any) -> dict[str, Any]:
    return request("anthropic-messages", **given)


def test_a_runner_is_told_to_send_its_conversation_whole() -> None:
    with ModelServer(Says("Hi.")) as model, proxied(model.url, settings=FOLDING) as proxy:
        reply = proxy.ask("/v1/messages", thread(**BEGUN), RUNNER)
        record = proxy.seen.one()
    assert (reply.status, reply.body) == (400, thread_refusal())
    assert reply.json["error"]["details"]["error_code"] == "thread_unsupported_request"
    assert (record.outcome, record.error) == ("refused", reply.json["error"]["message"])
    assert model.requests == []


@pytest.mark.parametrize(
    ("body", "headers", "settings"),
    [
        (thread(**BEGUN), {}, FOLDING),
        (thread(**BEGUN), {"x-stainless-helper": "message-thread"}, FOLDING),
        (thread(**BEGUN), RUNNER, Settings()),
        (thread(**GOING_ON, tools=[]), RUNNER, FOLDING),
        (thread(**GOING_ON, tools=mcp_tools("anthropic-messages")), {}, FOLDING),
    ],
    ids=["asked for", "by the SDK's threads", "below the gate", "going on", "with tools"],
)
def test_other_threads_pass_as_they_came(
    body: dict[str, Any], headers: dict[str, str], settings: Settings
) -> None:
    with ModelServer(Says("Hi.")) as model, proxied(model.url, settings=settings) as proxy:
        reply = proxy.ask(PATHS["anthropic-messages"], json.dumps(body).encode(), headers)
    assert reply.status == 200
    assert [one.raw for one in model.requests] == [json.dumps(body).encode()]
