"""The OpenAI Agents SDK's own Runner, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    TracingProcessor,
    set_trace_processors,
    set_tracing_disabled,
    tool_input_guardrail,
)
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI
from pages import run_page
from pydantic import BaseModel
from scenario import Conversation, Scenario
from world import (
    BRIDGE,
    CORE,
    CREATE,
    DONE,
    FOLD,
    ISSUE,
    MCP_SERVER,
    OURS,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    World,
    as_responses,
    asked,
    last_results,
    says,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.openai_agents import FoldedAgent

set_tracing_disabled(True)


@dataclass
class User:
    scope: Scope = EVERYTHING


def tools_of(world: World, **more: Any) -> list[Any]:
    def tool(name: str) -> FunctionTool:
        async def run(context: Any, arguments: str) -> str:
            return await world.arun(name, json.loads(arguments))

        found = world.tool(name)
        return FunctionTool(
            name=name,
            description=found.description,
            params_json_schema=dict(found.parameters),
            on_invoke_tool=run,
            strict_json_schema=False,
            **more.get(name, {}),
        )

    return [tool(each.name) for each in world.tools]


def chat(server: ModelServer) -> Any:
    client = AsyncOpenAI(base_url=server.openai, api_key="key", max_retries=0)
    return OpenAIChatCompletionsModel("any", client)


def responses(server: ModelServer) -> Any:
    client = AsyncOpenAI(base_url=server.openai, api_key="key", max_retries=0)
    return OpenAIResponsesModel("any", client)


def agent_of(model: Any, tools: list[Any], **more: Any) -> FoldedAgent[User]:
    return FoldedAgent(
        name="assistant",
        instructions="You help.",
        model=model,
        tools=tools,
        settings=FOLD,
        core=CORE,
        scope=lambda run: run.context.scope,
        **more,
    )


def run(agent: Any, text: Any = TASK, user: User | None = None) -> Any:
    return asyncio.run(Runner.run(agent, text, context=user or User()))


def play(model: Any) -> list[Any]:
    script = [SEARCH, CREATE, DONE]
    return as_responses(*script) if model is responses else script


class TestOpenAIAgents(Scenario):
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
        session = SQLiteSession("1")

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            more = {"name": "assistant", "model": chat(server), "tools": list(tools)}
            if settings is None:
                agent = Agent(**more)
            else:
                agent = FoldedAgent(
                    **more, settings=settings, core=CORE, scope=lambda run: run.context.scope
                )
            given = {"context": User(scope), "session": session, "max_turns": 20}
            if pieces is None:
                return (await Runner.run(agent, text, **given)).final_output
            result = Runner.run_streamed(agent, text, **given)
            async for event in result.stream_events():
                if (
                    event.type == "raw_response_event"
                    and event.data.type == "response.output_text.delta"
                ):
                    pieces.append(event.data.delta)
            return result.final_output

        return ask


@pytest.mark.parametrize("model", [chat, responses])
def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it(model: Any) -> None:
    world = World()
    with ModelServer(*play(model)) as server:
        result = run(agent_of(model(server), tools_of(world)))

    assert result.final_output == "Done."
    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == REPORTED
    assert '"number": 3' in last_results(server.requests[2])[0]
    called = [i.raw_item.name for i in result.new_items if i.type == "tool_call_item"]
    assert called == ["tool_search", "forge__create_issue"]
    sent = json.dumps(server.requests[2].body)
    assert r"{\"name\": \"forge__create_issue\", \"arguments\"" in sent


def test_an_approval_is_asked_for_the_real_tool() -> None:
    world = World()
    tools = tools_of(world, forge__create_issue={"needs_approval": True})

    async def main() -> Any:
        agent = agent_of(chat(server), tools)
        first = await Runner.run(agent, TASK, context=User())
        (waiting,) = first.interruptions
        assert waiting.raw_item.name == "forge__create_issue"
        assert json.loads(waiting.raw_item.arguments) == ISSUE
        assert world.calls == []
        state = first.to_state()
        state.approve(waiting)
        return await Runner.run(agent, state)

    with ModelServer(*OURS) as server:
        second = asyncio.run(main())

    assert second.final_output == "Done."
    assert world.calls == REPORTED


def test_a_guardrail_of_the_real_tool_guards_it() -> None:
    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("not on a Sunday")

    world = World()
    tools = tools_of(world, forge__create_issue={"tool_input_guardrails": [never]})
    with ModelServer(*OURS) as server:
        run(agent_of(chat(server), tools))

    assert world.calls == []
    assert last_results(server.requests[2]) == ["not on a Sunday"]


@pytest.mark.parametrize(
    "behaviour", ["stop_on_first_tool", {"stop_at_tool_names": ["forge__create_issue"]}]
)
def test_a_run_stops_at_the_real_tool_and_not_at_a_search(behaviour: Any) -> None:
    world = World()
    with ModelServer(SEARCH, CREATE) as server:
        result = run(agent_of(chat(server), tools_of(world), tool_use_behavior=behaviour))

    assert '"number": 3' in result.final_output
    assert world.calls == REPORTED


def test_traces_hold_the_real_tools_call_in_its_place() -> None:
    class Hears(TracingProcessor):
        def __init__(self) -> None:
            self.spans: list[Any] = []

        def on_span_end(self, span: Any) -> None:
            self.spans.append(span.span_data)

        def on_span_start(self, span: Any) -> None: ...
        def on_trace_start(self, trace: Any) -> None: ...
        def on_trace_end(self, trace: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

    hears = Hears()
    set_trace_processors([hears])
    set_tracing_disabled(False)
    try:
        with ModelServer(*OURS) as server:
            run(agent_of(chat(server), tools_of(World())))
    finally:
        set_tracing_disabled(True)

    functions = [span for span in hears.spans if span.type == "function"]
    assert [span.name for span in functions] == ["tool_search", "forge__create_issue"]
    assert json.loads(functions[1].input) == ISSUE
    assert '"number": 3' in functions[1].output
    assert [span.type for span in hears.spans].count("generation") == 3
    (agent,) = [span for span in hears.spans if span.type == "agent"]
    assert "forge__create_issue" in agent.tools


def test_a_typed_answer_stays_typed() -> None:
    class Report(BaseModel):
        number: int

    with ModelServer(SEARCH, CREATE, says(text='{"number": 3}')) as server:
        result = run(agent_of(chat(server), tools_of(World()), output_type=Report))

    assert result.final_output == Report(number=3)
    assert server.requests[0].body["response_format"]["type"] == "json_schema"


def test_tools_of_an_mcp_server_fold_as_any_others(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)

    async def main() -> Any:
        params = {"command": sys.executable, "args": [str(program)]}
        async with MCPServerStdio(params) as tracker:  # type: ignore[arg-type]
            agent = agent_of(chat(server), [], mcp_servers=[tracker])
            return await Runner.run(agent, TASK, context=User())

    create = asked(2, "tool_call", name="create_issue", arguments=ISSUE)
    with ModelServer(SEARCH, create, DONE) as server:
        result = asyncio.run(main())

    assert tool_names(server.requests[0]) == BRIDGE
    assert "acme/website: It is broken" in last_results(server.requests[2])[0]
    assert result.final_output == "Done."


def test_a_handoff_goes_through_and_each_agent_folds_its_own() -> None:
    world = World()
    over = asked(1, "transfer_to_tracker")
    with ModelServer(over, CREATE, DONE) as server:
        tracker = agent_of(chat(server), tools_of(world))
        tracker.name = "tracker"
        desk = agent_of(chat(server), tools_of(world), handoffs=[tracker])
        result = run(desk)

    assert result.last_agent is tracker
    assert "transfer_to_tracker" in tool_names(server.requests[0])
    assert tool_names(server.requests[1]) == [*CORE, *BRIDGE]
    assert world.calls == REPORTED


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS, DONE) as server:
        run_page("adapters/openai-agents.md", model=chat(server), tools=tools_of(world))

    assert world.calls == REPORTED
