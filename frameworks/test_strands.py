"""Strands' own agent, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pages import run_page
from pydantic import BaseModel
from scenario import Conversation, Scenario
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.tools.tools import PythonAgentTool
from three_functions import Ask, check
from world import (
    CORE,
    DONE,
    FOLD,
    ISSUE,
    OURS,
    READER,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    World,
    asked,
    last_results,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.strands import FoldAgentPlugin


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        agent = Agent(
            model=model_of(server), tools=[tool(each) for each in functions], callback_handler=None
        )
        return str(await agent.invoke_async(text)).strip()

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)


SCOPES = {"ada": EVERYTHING, "bob": READER}


def tools_of(world: World) -> list[Any]:
    def made(name: str) -> PythonAgentTool:
        async def run(tool_use: Any, **_: Any) -> Any:
            text = await world.arun(name, tool_use["input"])
            return {
                "toolUseId": tool_use["toolUseId"],
                "status": "success",
                "content": [{"text": text}],
            }

        found = world.tool(name)
        schema = {"json": dict(found.parameters)}
        spec = {"name": name, "description": found.description, "inputSchema": schema}
        return PythonAgentTool(name, spec, run)  # type: ignore[arg-type]

    return [made(each.name) for each in world.tools]


def model_of(server: ModelServer) -> OpenAIModel:
    client = {"base_url": server.openai, "api_key": "key"}
    return OpenAIModel(client_args=client, model_id="any")


def agent_of(server: ModelServer, world: World, **more: Any) -> Agent:
    return Agent(
        model=model_of(server),
        tools=tools_of(world),
        plugins=[folded()],
        callback_handler=None,
        **more,
    )


def folded(settings: Settings = FOLD) -> FoldAgentPlugin:
    return FoldAgentPlugin(
        settings, scope=lambda request: SCOPES[request.invocation_state["user"]], core=CORE
    )


def run(agent: Agent, user: str = "ada") -> str:
    return str(asyncio.run(agent.invoke_async(TASK, invocation_state={"user": user}))).strip()


class TestStrands(Scenario):
    def tools(self, world: World) -> list[Any]:
        return tools_of(world)

    def begin(
        self,
        server: ModelServer,
        tools: list[Any],
        *,
        settings: Settings | None = FOLD,
        scope: Scope = EVERYTHING,
    ) -> Conversation:
        said: list[Any] = []

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            plugins = [] if settings is None else [folded(settings)]
            agent = Agent(
                model=model_of(server),
                tools=list(tools),
                plugins=plugins,
                messages=said,
                callback_handler=None,
            )
            state = {"user": "ada" if scope is EVERYTHING else "bob"}
            if pieces is None:
                result = await agent.invoke_async(text, invocation_state=state)
                return str(result).strip()
            async for event in agent.stream_async(text, invocation_state=state):
                if "data" in event:
                    pieces.append(event["data"])
            return "".join(block.get("text", "") for block in agent.messages[-1]["content"])

        return ask


def test_the_agents_messages_hold_the_real_call() -> None:
    with ModelServer(*OURS) as server:
        agent = agent_of(server, World(), system_prompt="You help.")
        assert run(agent) == "Done."

    uses = [b["toolUse"]["name"] for m in agent.messages for b in m["content"] if "toolUse" in b]
    assert uses == ["tool_search", "forge__create_issue"]
    assert str(server.requests[0].body["messages"][0]).count("You help.") == 1


def test_hooks_hear_of_the_real_tool_and_may_cancel_it() -> None:
    heard: list[str] = []

    def before(event: BeforeToolCallEvent) -> None:
        heard.append(event.tool_use["name"])
        if event.tool_use["name"] == "forge__create_issue":
            event.cancel_tool = "not on a Sunday"

    world = World()
    with ModelServer(*OURS) as server:
        agent = agent_of(server, world)
        agent.add_hook(before, BeforeToolCallEvent)
        run(agent)

    assert heard == ["tool_search", "forge__create_issue"]
    assert world.calls == []
    assert "not on a Sunday" in last_results(server.requests[2])[0]


def test_a_person_is_asked_about_the_real_tool() -> None:
    def before(event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "forge__create_issue":
            answer = event.interrupt("may-it", reason=event.tool_use["input"])
            event.cancel_tool = False if answer == "yes" else "not on a Sunday"

    async def main() -> Any:
        agent = agent_of(server, world)
        agent.add_hook(before, BeforeToolCallEvent)
        state = {"user": "ada"}
        first = await agent.invoke_async(TASK, invocation_state=state)
        (waiting,) = first.interrupts
        assert waiting.reason == ISSUE
        assert world.calls == []
        answer = {"interruptResponse": {"interruptId": waiting.id, "response": "yes"}}
        return await agent.invoke_async([answer], invocation_state=state)

    world = World()
    with ModelServer(*OURS) as server:
        assert str(asyncio.run(main())).strip() == "Done."

    assert world.calls == REPORTED


@pytest.mark.parametrize("name", ["ada", "bob"])
def test_a_typed_answer_stays_typed_whoever_may_use_what(name: str) -> None:
    class Report(BaseModel):
        """What was done."""

        number: int

    async def main() -> Any:
        given: Any = {"invocation_state": {"user": name}, "structured_output_model": Report}
        return await agent_of(server, World()).invoke_async(TASK, **given)

    with ModelServer(SEARCH, asked(3, "Report", number=3), DONE) as server:
        assert asyncio.run(main()).structured_output == Report(number=3)

    assert "Report" in tool_names(server.requests[0])


def test_a_synchronous_run_folds_and_tells_traces_of_the_real_tool() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    with ModelServer(*OURS) as server:
        result = agent_of(server, World())(TASK, invocation_state={"user": "ada"})

    assert str(result).strip() == "Done."
    names = [span.name for span in spans.get_finished_spans() if "execute_tool" in span.name]
    assert names == ["execute_tool tool_search", "execute_tool forge__create_issue"]


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS) as server:
        run_page("adapters/strands.md", model=model_of(server), tools=tools_of(world))

    assert world.calls == REPORTED
