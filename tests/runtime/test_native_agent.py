"""`toolfold.runtime`: agents whose provider defers the tools, and our search answers."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.asking import client
from support.judges import judged_anthropic, judged_openai
from support.model_server import Fails, ModelServer, Raw, Received, Says, event, response
from toolfold import Settings
from toolfold.absent import AbsentSource
from toolfold.runtime import Agent, Anthropic, Limits, OpenAIChat, OpenAIResponses, Registry
from toolfold.runtime.conversation import Conversation, Done
from toolfold.runtime.message_json import message_from_json, message_to_json
from toolfold.runtime.messages import Call, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.model import ModelError, Reply
from toolfold.sources import CallContext, Source
from toolfold.sources.calls import PendingCall
from toolfold.tool import Tool

NATIVE = Settings(enabled="on", strategy="native")
NEEDS = {
    "get_exchange_rate": "Get the exchange rate between two currencies.",
    "send_mail": "Send an electronic mail to a person.",
    "create_invoice": "Create an invoice for a customer.",
    "water_plants": "Water the plants of the garden.",
    "book_train": "Book a ticket for a train.",
}
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}


def tools() -> Registry:
    registry = Registry()

    async def run(call: PendingCall) -> str:
        return f"{call.tool.name} ran"

    for name, description in NEEDS.items():
        registry.add(Tool(name, description, SCHEMA), run)

    registry.add(Tool("clock", "Tell the time.", {"type": "object"}), run, core=True)
    return registry


ids = itertools.count(1)


def new_model() -> str:
    """The name of a model of which no other test has learned anything."""
    return f"model-{next(ids)}"


def searches(query: str, name: str = "tool_search") -> Callable[[Received], Any]:
    """A model that searches, in the way that the request offers."""

    def step(request: Received) -> Any:
        offered = [tool.get("type") for tool in request.body.get("tools", ())]
        id = f"call_{next(ids)}"
        if "tool_search" not in offered:
            return Says("", (Call(name, json.dumps({"query": query}), id),), thinking="hm")
        item = {
            "id": f"tsc_{id}",
            "type": "tool_search_call",
            "execution": "client",
            "call_id": id,
            "status": "completed",
            "arguments": {"query": query},
        }
        whole = response(Says())
        whole["output"] = [item]
        begun = {**item, "arguments": {}, "status": "in_progress"}
        told: list[Any] = [
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        return Raw([event(e, e["type"]) for e in told])

    return step


def calls(name: str, **arguments: str) -> Callable[[Received], Any]:
    """A model that calls a tool by its own name, where the provider loaded it, or by the bridge."""

    def step(request: Received) -> Any:
        names = [t.get("name") or t.get("function", {}).get("name") for t in request.body["tools"]]
        id = f"call_{next(ids)}"
        is_native = "tool_call" not in names
        if is_native:
            return Says("", (Call(name, json.dumps(arguments), id),), thinking="now")
        through = {"name": name, "arguments": arguments}
        return Says("", (Call("tool_call", json.dumps(through), id),))

    return step


def judged(body: Any, headers: Any = None) -> Any:
    """A body, after the makers' own types have taken it."""
    left = {key: value for key, value in body.items() if key != "stream"}
    if "input" in body:
        judged_openai(left)
    elif "max_tokens" in body and "stream_options" not in body:
        judged_anthropic(left, beta="anthropic-beta" in (headers or {}))
    return body


def held(api: str, *script: Any, ask: tuple[str, ...] = ("Go.",), **options: Any) -> list[Received]:
    """The requests of a conversation."""

    async def main() -> list[Received]:
        with ModelServer(*script) as server:
            given: dict[str, Any] = {"settings": NATIVE, **options}
            async with client(server, api, new_model(), **given.pop("client", {})) as model:
                sources = given.pop("sources", None) or tools()
                conversation = Agent(model, sources, **given).conversation()
                for text in ask:
                    await conversation.ask(text)
            return server.requests

    return asyncio.run(main())


# ---- who defers


def test_an_agent_lets_its_provider_defer_where_that_is_known_to_work() -> None:
    def strategy(model: Any) -> str:
        return Agent(model, tools(), settings=Settings(enabled="on")).assemble().report.strategy

    assert strategy(Anthropic("claude-sonnet-5-5", api_key="")) == "native"
    assert strategy(OpenAIResponses("gpt-6-sol", api_key="")) == "native"
    assert strategy(OpenAIChat("gpt-6-sol", api_key="")) == "bridge"
    assert strategy(OpenAIResponses("gpt-5.4-nano", api_key="")) == "bridge"
    elsewhere = "https://openrouter.ai/api"
    assert strategy(Anthropic("claude-sonnet-5-5", api_key="", base_url=elsewhere)) == "bridge"


# ---- one search, one call


def test_anthropic_gets_references_and_the_tool_is_called_by_its_own_name() -> None:
    requests = held(
        "anthropic",
        searches("exchange rate"),
        calls("get_exchange_rate", to="eur"),
        Says("1.1"),
    )
    bodies = [judged(request.body) for request in requests]

    assert bodies[0]["tools"] == bodies[1]["tools"] == bodies[2]["tools"]
    deferred = [tool["name"] for tool in bodies[0]["tools"] if tool.get("defer_loading")]
    assert deferred == list(NEEDS)
    found = bodies[1]["messages"][2]["content"][0]
    assert found["content"][0] == {"type": "tool_reference", "tool_name": "get_exchange_rate"}
    use, result = bodies[2]["messages"][3]["content"][-1], bodies[2]["messages"][4]["content"][0]
    assert (use["name"], use["input"]) == ("get_exchange_rate", {"to": "eur"})
    assert result["content"] == "get_exchange_rate ran"
    assert [len(marks(body)) <= 4 for body in bodies] == [True] * 3


def marks(body: Any) -> list[str]:
    """The marks of a request: none on a deferred tool."""
    marked = [tool for tool in body["tools"] if "cache_control" in tool]
    assert not any(tool.get("defer_loading") for tool in marked)
    return json.dumps(body).split("cache_control")[1:]


def test_openai_gets_definitions_and_the_call_keeps_its_namespace() -> None:
    requests = held(
        "responses",
        searches("exchange rate"),
        calls("get_exchange_rate", to="eur"),
        Says("1.1"),
        Says("Bye."),
        ask=("Go.", "Thanks."),
    )
    bodies = [judged(request.body) for request in requests]

    assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
    assert [tool["type"] for tool in bodies[0]["tools"]] == ["function", "tool_search"]
    search, output = bodies[1]["input"][1:3]
    assert search["type"] == "tool_search_call"
    assert search["arguments"] == {"query": "exchange rate"}
    assert search["id"].startswith("tsc_")
    assert output["type"] == "tool_search_output"
    assert output["tools"][0]["name"] == "get_exchange_rate"
    assert output["tools"][0]["strict"] is False
    call = next(item for item in bodies[3]["input"] if item.get("type") == "function_call")
    assert (call["name"], call["namespace"]) == ("get_exchange_rate", "get_exchange_rate")
    for before, after in itertools.pairwise(bodies):
        assert after["input"][: len(before["input"])] == before["input"]


def test_definitions_may_come_in_with_the_conversation() -> None:
    requests = held(
        "anthropic",
        searches("exchange rate"),
        searches("exchange rate"),
        calls("get_exchange_rate"),
        Says("1.1"),
        settings=replace(NATIVE, inline=True),
        client={"headers": {"anthropic-beta": "mine-1"}, "cache": False},
    )
    bodies = [judged(request.body, request.headers) for request in requests]

    assert requests[1].headers["anthropic-beta"] == "mine-1,inline-tools-2026-09-15"
    roles = [message["role"] for message in bodies[3]["messages"]]
    assert roles == [
        "user",
        "assistant",
        "user",
        "system",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    user, system = bodies[1]["messages"][2:4]
    assert [block["type"] for block in user["content"]] == ["tool_result", "text"]
    added = system["content"][0]["tool"]["definition"]
    assert added["name"] == "get_exchange_rate"


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_a_search_that_finds_nothing_or_asks_wrongly_is_answered_in_words(api: str) -> None:
    requests = held(api, searches("zzzz qqqq"), searches(""), Says("Nothing."))

    for request in requests:
        judged(request.body)
    said = json.dumps(requests[-1].body)
    assert "No tool" in said or "no tool" in said
    assert '"tool_reference"' not in said


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_the_search_may_have_a_prefix(api: str) -> None:
    prefixed = replace(NATIVE, bridge_prefix="my")

    requests = held(api, searches("exchange rate", "my_search"), Says("Found."), settings=prefixed)

    found = json.dumps(judged(requests[1].body))
    assert "get_exchange_rate" in found.split("exchange rate", 1)[1]
    assert "is not available" not in found


# ---- what is said beside what was found


class Away(Source):
    """A source that is not there."""

    name = "vault"

    def tools(self) -> Sequence[Tool]:
        return ()

    async def call(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> Any:
        raise AssertionError("it has nothing to call")

    def absence(self) -> AbsentSource | None:
        return AbsentSource("vault", "it is locked")


APIS = ("anthropic", "inline", "responses")


def held_by(api: str, *script: Any, sources: Any = ()) -> list[Any]:
    """The bodies of a native conversation, each taken by its maker's types."""
    requests = held(
        "anthropic" if api == "inline" else api,
        *script,
        sources=sources or (tools(),),
        settings=replace(NATIVE, inline=api == "inline"),
    )
    return [judged(request.body, request.headers) for request in requests]


@pytest.mark.parametrize("api", APIS)
def test_the_model_hears_that_it_goes_round_in_circles(api: str) -> None:
    bodies = held_by(api, *[searches("exchange rate")] * 4, Says("Enough."))

    said = [json.dumps(body).count("You have made the same calls") for body in bodies]
    assert said == [0, 0, 0, 1, 2]
    for before, after in itertools.pairwise(told(body) for body in bodies):
        assert after[: len(before)] == before


@pytest.mark.parametrize("api", APIS)
def test_the_model_hears_of_sources_that_are_not_there(api: str) -> None:
    query = "exchange rate | open the vault"
    bodies = held_by(api, searches(query), Says("1.1"), sources=(tools(), Away()))

    assert "get_exchange_rate" in json.dumps(told(bodies[1]))
    assert "vault is not running: it is locked." in json.dumps(told(bodies[1]))


def test_a_note_stands_behind_all_results_of_its_message() -> None:
    def both(request: Received) -> Any:
        found = searches("exchange rate | open the vault")(request).calls
        return Says("", (*found, Call("clock", "{}", "call_clock")))

    bodies = held_by("anthropic", both, Says("1.1"), sources=(tools(), Away()))

    kinds = [block["type"] for block in bodies[1]["messages"][-1]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]


def told(body: Any) -> Any:
    """What a request says, without the marks for a cache, which move."""

    def unmarked(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
        return [unmarked(inner) for inner in value] if isinstance(value, list) else value

    return unmarked(body.get("input") or body["messages"])


# ---- what it costs


@pytest.mark.parametrize("api", APIS)
def test_a_deferred_definition_is_counted_once_it_is_found_and_no_sooner(api: str) -> None:
    """Where the server counts nothing, as many that speak an API do not."""

    async def main() -> list[int]:
        script = (searches("exchange rate"), searches("exchange rate"), Says("1.1"))
        with ModelServer(*script) as server:
            async with client(server, "anthropic" if api == "inline" else api) as model:
                how = replace(NATIVE, inline=api == "inline")
                conversation = Agent(model, large, settings=how).conversation()
                return [
                    happened.usage.prompt
                    async for happened in conversation.send("Go.")
                    if isinstance(happened, Reply)
                ]

    large = Registry()

    async def run(call: PendingCall) -> str:
        return "ran"

    wide = {"to": {"type": "string", "description": "Whom it is for. " * 100}}
    for name, description in NEEDS.items():
        large.add(Tool(name, description, {"type": "object", "properties": wide}), run)

    before, found, again = asyncio.run(main())
    assert before < 200
    assert 400 < found - before < 600
    assert again - found < 50


# ---- a provider that pauses


def paused(*content: Any) -> Raw:
    """A reply of Anthropic's that the provider broke off, to go on when it comes back."""
    told: list[Any] = [{"type": "message_start", "message": {"usage": {"input_tokens": 7}}}]
    for index, block in enumerate(content):
        told += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    told.append({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}})
    told.append({"type": "message_stop"})
    return Raw([event(e, e["type"]) for e in told])


LOOK = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
FIRST = {"type": "text", "text": "I look it up. "}


def asked_once(*script: Any, **options: Any) -> tuple[Done, list[Any]]:
    async def main() -> tuple[Done, list[Any]]:
        with ModelServer(*script) as server:
            async with client(server, "anthropic", cache=False) as model:
                agent = Agent(model, tools(), settings=NATIVE, **options)
                done = await agent.conversation().ask("Go.")
            return done, [judged(request.body) for request in server.requests]

    return asyncio.run(main())


def test_a_turn_that_the_provider_paused_goes_on_with_what_it_said() -> None:
    done, bodies = asked_once(paused(FIRST, LOOK), Says("It is 1.1."))

    assert bodies[1]["messages"] == [
        *bodies[0]["messages"],
        {"role": "assistant", "content": [FIRST, LOOK]},
    ]
    assert (done.text, done.stop, done.round_trips) == ("I look it up. It is 1.1.", "end", 2)


def test_a_pause_without_a_word_is_no_empty_answer() -> None:
    done, bodies = asked_once(paused(LOOK), Says("1.1"))

    assert bodies[1]["messages"][1:] == [{"role": "assistant", "content": [LOOK]}]
    assert (done.text, done.asked_again) == ("1.1", 0)


def test_a_provider_that_pauses_for_ever_comes_to_the_limit_of_turns() -> None:
    done, bodies = asked_once(*[paused(LOOK)] * 3, limits=Limits(turns=3))

    assert (done.stop, len(bodies)) == ("turns", 3)


# ---- it is refused


REFUSALS = {
    "anthropic": "tools.2.defer_loading: Extra inputs are not permitted",
    "responses": "Unknown tool type: 'tool_search'",
}


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_a_provider_that_refuses_gets_the_bridge_once_and_for_the_whole_conversation(
    api: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    requests = held(
        api,
        Fails(400, REFUSALS[api]),
        searches("exchange rate"),
        calls("get_exchange_rate"),
        Says("1.1"),
        Says("Bye."),
        ask=("Go.", "Thanks."),
    )
    bodies = [judged(request.body) for request in requests]

    names = [[tool.get("name") for tool in body["tools"]] for body in bodies]
    assert names[1:] == [["clock", "tool_search", "tool_describe", "tool_call"]] * 4
    assert "get_exchange_rate ran" in json.dumps(bodies[3])
    assert caplog.text.count("does not take deferred tools") == 1


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_the_next_conversation_with_who_refused_begins_with_the_bridge(api: str) -> None:
    bodies, _ = asked_twice(api, Fails(400, REFUSALS[api]), Says("1."), Says("2."))

    assert [is_deferring(body) for body in bodies] == [True, False, False]


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_who_refuses_the_bridge_as_well_is_asked_anew_in_the_next_conversation(api: str) -> None:
    refusal = Fails(400, REFUSALS[api])
    bodies, failures = asked_twice(api, refusal, refusal, Says("2."))

    assert [is_deferring(body) for body in bodies] == [True, False, True]
    assert failures == 1


def test_another_model_of_the_same_server_is_asked_whether_it_defers() -> None:
    refusal = Fails(400, REFUSALS["anthropic"])
    bodies, _ = asked_twice("anthropic", refusal, Says("1."), Says("2."), same_model=False)

    assert [is_deferring(body) for body in bodies] == [True, False, True]


def asked_twice(api: str, *script: Any, same_model: bool = True) -> tuple[list[Any], int]:
    """The bodies of two conversations with one server, and how many of them failed."""

    async def main() -> tuple[list[Any], int]:
        failures = 0
        first = new_model()
        with ModelServer(*script) as server:
            for name in (first, first if same_model else new_model()):
                async with client(server, api, name) as model:
                    try:
                        await Agent(model, tools(), settings=NATIVE).run("Go.")
                    except ModelError:
                        failures += 1
            return [judged(request.body) for request in server.requests], failures

    return asyncio.run(main())


def is_deferring(body: Any) -> bool:
    return "tool_call" not in [tool.get("name") for tool in body["tools"]]


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_a_refusal_in_mid_conversation_says_anew_what_was_found(api: str) -> None:
    requests = held(
        api,
        searches("exchange rate"),
        calls("get_exchange_rate"),
        Fails(400, REFUSALS[api]),
        Says("1.1"),
    )

    said = json.dumps(judged(requests[-1].body))
    for word in ("tool_reference", "tool_search_output", "defer_loading", "namespace"):
        assert f'"{word}"' not in said
    assert "get_exchange_rate(" in said


def test_another_error_is_an_error() -> None:
    with pytest.raises(Exception, match="messages: too long"):
        held("anthropic", Fails(400, "messages: too long"))


# ---- the conversation moves


@settings(max_examples=10)
@given(
    apis=st.lists(
        st.sampled_from(["anthropic", "inline", "responses", "openai"]), min_size=2, max_size=5
    ),
    tight=st.booleans(),
)
def test_whatever_provider_comes_next_gets_a_request_that_its_types_take(
    apis: list[str], tight: bool
) -> None:
    """Search, call and answer with each, one after the other, compacted or not."""
    limits = Limits(discovery_tokens=1, result_tokens=1) if tight else Limits()
    wanted = list(NEEDS)

    async def main() -> None:
        registry = tools()
        conversation: Conversation | None = None
        for turn, kind in enumerate(apis):
            name = wanted[turn]
            script = (searches(NEEDS[name]), calls(name), Says(f"{turn}."))
            with ModelServer(*script) as server:
                async with client(server, "anthropic" if kind == "inline" else kind) as model:
                    how = replace(NATIVE, inline=kind == "inline")
                    agent = Agent(model, registry, settings=how, limits=limits)
                    conversation = conversation or agent.conversation()
                    conversation.agent = agent
                    done = await conversation.ask(f"Please: {NEEDS[name]}")
                assert done.text == f"{turn}."
                assert len(server.requests) == 3
                for request in server.requests:
                    checked(judged(request.body, request.headers))
        assert conversation is not None
        ran = [m.text for m in conversation.messages if isinstance(m, ResultMessage)]
        assert [text for text in ran if text.endswith(" ran")] == [
            f"{name} ran" for name in wanted[: len(apis)]
        ]

    asyncio.run(main())


@pytest.mark.parametrize("to", ["anthropic", "responses"])
@pytest.mark.parametrize("of", ["anthropic", "responses", "openai"])
def test_a_conversation_that_was_put_away_goes_on_anywhere(of: str, to: str) -> None:
    async def main() -> Any:
        script = (searches("exchange rate"), calls("get_exchange_rate", to="eur"), Says("1.1"))
        with ModelServer(*script) as server:
            async with client(server, of) as model:
                before = Agent(model, tools(), settings=NATIVE).conversation()
                await before.ask("Go.")
        with ModelServer(Says("Hello again.")) as server:
            async with client(server, to) as model:
                after = Agent(model, tools(), settings=NATIVE).conversation()
                after.messages = [message_from_json(message_to_json(m)) for m in before.messages]
                await after.ask("Are you there?")
        return server.requests[0].body

    body = asyncio.run(main())

    checked(judged(body))
    listed = [tool.get("name") for tool in body["tools"]]
    assert ("tool_call" in listed) == (of == "openai")


def test_a_long_conversation_that_was_put_away_keeps_the_namespaces_of_its_calls() -> None:
    many = Registry()

    async def run(call: PendingCall) -> str:
        return "ran"

    for i in range(700):
        many.add(Tool(f"t{i}", "Does it.", SCHEMA), run)
    found = tuple(f"t{i}" for i in range(700))

    async def main() -> Any:
        with ModelServer(Says("Hello again.")) as server:
            async with client(server, "responses") as model:
                after = Agent(model, many, settings=NATIVE).conversation()
                after.messages = [
                    UserMessage("Go."),
                    ModelMessage("", (Call("tool_search", '{"query": "all"}', "c1"),)),
                    ResultMessage("Many.", "c1", "tool_search", found=found),
                    ModelMessage("", (Call("t0", "{}", "c2"),)),
                    ResultMessage("ran", "c2", "t0"),
                ]
                await after.ask("Are you there?")
        return server.requests[0].body

    checked(judged(asyncio.run(main())))


def checked(body: Any) -> None:
    """References have definitions, calls have outputs, calls of loaded tools a namespace."""
    if "input" in body:
        items = body["input"]
        loaded = {
            tool["name"]
            for item in items
            if item.get("type") == "tool_search_output"
            for tool in item["tools"]
        }
        made = [i["call_id"] for i in items if str(i.get("type")).endswith("_call")]
        answered = [i["call_id"] for i in items if str(i.get("type")).endswith("_output")]
        assert sorted(made) == sorted(answered)
        for item in items:
            if item.get("type") == "function_call" and item["name"] in loaded:
                assert item.get("namespace") == item["name"]
        return
    defined = {tool.get("name") for tool in body["tools"]}
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            content = block.get("content") if block["type"] == "tool_result" else None
            for inner in content if isinstance(content, list) else ():
                if inner["type"] == "tool_reference":
                    assert inner["tool_name"] in defined
