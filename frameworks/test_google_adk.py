"""Google ADK's own runner, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pages import run_page
from pydantic import BaseModel
from scenario import Conversation, Scenario
from three_functions import Ask, check
from world import (
    CORE,
    CREATE,
    DONE,
    FOLD,
    OURS,
    READER,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    World,
    asked,
    last_results,
    says,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.google_adk import FoldToolsPlugin


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        agent = LlmAgent(name="assistant", model=model_of(server), tools=functions)
        runner = InMemoryRunner(agent, app_name="test")
        session = await runner.session_service.create_session(app_name="test", user_id="ada")
        said = ""
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(
            user_id="ada", session_id=session.id, new_message=message
        ):
            if event.is_final_response() and event.content and event.content.parts:
                said = event.content.parts[0].text or ""
        return said

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)


class WorldTool(BaseTool):
    def __init__(self, world: World, name: str) -> None:
        found = world.tool(name)
        super().__init__(name=name, description=found.description)
        self._world, self._parameters = world, dict(found.parameters)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self._parameters,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return {"result": await self._world.arun(self.name, args)}


def tools_of(world: World) -> list[Any]:
    return [WorldTool(world, tool.name) for tool in world.tools]


SCOPES = {"ada": EVERYTHING, "bob": READER}


def folded() -> FoldToolsPlugin:
    return FoldToolsPlugin(FOLD, scope=lambda ctx: SCOPES[ctx.user_id], core=CORE)


def model_of(server: ModelServer) -> LiteLlm:
    return LiteLlm(model="openai/any", api_base=server.openai, api_key="key")


async def events(
    agent: LlmAgent, user: str = "ada", plugins: Any = None, streaming: bool = False
) -> list[Any]:
    given = [folded()] if plugins is None else plugins
    runner = InMemoryRunner(agent, app_name="test", plugins=given)
    session = await runner.session_service.create_session(app_name="test", user_id=user)
    message = types.Content(role="user", parts=[types.Part(text=TASK)])
    mode = StreamingMode.SSE if streaming else StreamingMode.NONE
    return [
        event
        async for event in runner.run_async(
            user_id=user,
            session_id=session.id,
            new_message=message,
            run_config=RunConfig(streaming_mode=mode),
        )
    ]


def run(server: ModelServer, world: World, user: str = "ada", **more: Any) -> list[Any]:
    agent = LlmAgent(name="assistant", model=model_of(server), tools=tools_of(world), **more)
    return asyncio.run(events(agent, user))


class TestGoogleADK(Scenario):
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
        sessions = InMemorySessionService()

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            agent = LlmAgent(name="assistant", model=model_of(server), tools=list(tools))
            fold = () if settings is None else [FoldToolsPlugin(settings, scope=scope, core=CORE)]
            app = App(name="test", root_agent=agent, plugins=list(fold))
            runner = Runner(app=app, session_service=sessions)
            whose = {"user_id": "ada", "session_id": "1"}
            if await sessions.get_session(app_name="test", **whose) is None:
                await sessions.create_session(app_name="test", **whose)
            said = ""
            async for event in runner.run_async(
                **whose,
                new_message=types.Content(role="user", parts=[types.Part(text=text)]),
                run_config=RunConfig(streaming_mode=_MODES[pieces is not None]),
            ):
                texts = [part.text for part in (event.content and event.content.parts) or ()]
                written = "".join(text for text in texts if text)
                if event.partial and pieces is not None and written:
                    pieces.append(written)
                elif event.is_final_response():
                    said = written
            return said

        return ask


_MODES = {False: StreamingMode.NONE, True: StreamingMode.SSE}


def test_the_events_of_the_session_hold_the_real_call() -> None:
    with ModelServer(*OURS) as server:
        said = run(server, World())

    called = [call.name for event in said for call in event.get_function_calls()]
    assert called == ["tool_search", "forge__create_issue"]


def test_callbacks_hear_of_the_real_tool_and_may_answer_for_it() -> None:
    heard: list[str] = []

    def before(tool: BaseTool, args: dict[str, Any], tool_context: Any) -> Any:
        heard.append(tool.name)
        return {"error": "not on a Sunday"} if tool.name == "forge__create_issue" else None

    world = World()
    with ModelServer(*OURS) as server:
        run(server, world, before_tool_callback=before)

    assert heard == ["tool_search", "forge__create_issue"]
    assert world.calls == []
    assert "not on a Sunday" in last_results(server.requests[2])[0]


def test_a_confirmation_is_asked_for_the_real_tool() -> None:
    closed: list[str] = []

    def close_shop(reason: str) -> str:
        """Close the shop for the day."""
        closed.append(reason)
        return "closed"

    async def main() -> Any:
        tools = [FunctionTool(close_shop, require_confirmation=True), *tools_of(World())]
        agent = LlmAgent(name="assistant", model=model_of(server), tools=tools)
        runner = InMemoryRunner(agent, app_name="test", plugins=[folded()])
        session = await runner.session_service.create_session(app_name="test", user_id="ada")

        async def say(part: types.Part) -> list[Any]:
            message = types.Content(role="user", parts=[part])
            whose = {"user_id": "ada", "session_id": session.id}
            return [event async for event in runner.run_async(**whose, new_message=message)]

        first = await say(types.Part(text=TASK))
        calls = [call for event in first for call in event.get_function_calls()]
        asking = next(call for call in calls if call.name == "adk_request_confirmation")
        asked_for = asking.args["originalFunctionCall"]
        assert (asked_for["name"], asked_for["args"]) == ("close_shop", {"reason": "It is late"})
        assert closed == []
        yes = types.FunctionResponse(id=asking.id, name=asking.name, response={"confirmed": True})
        return await say(types.Part(function_response=yes))

    close = asked(2, "tool_call", name="close_shop", arguments={"reason": "It is late"})
    with ModelServer(close, DONE, DONE) as server:
        last = asyncio.run(main())

    assert closed == ["It is late"]
    assert last[-1].content.parts[0].text == "Done."


@pytest.mark.parametrize("user", ["ada", "bob"])
def test_a_typed_answer_stays_typed_whoever_may_use_what(user: str) -> None:
    class Report(BaseModel):
        number: int

    with ModelServer(SEARCH, says(text='{"number": 3}')) as server:
        said = run(server, World(), user, output_schema=Report)

    texts = [part.text for event in said if event.content for part in event.content.parts]
    assert [json.loads(text) for text in texts if text] == [{"number": 3}]
    assert server.requests[0].body["response_format"]["type"] == "json_schema"


def test_traces_tell_of_the_real_tool() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    with ModelServer(*OURS) as server:
        run(server, World())

    names = [span.name for span in spans.get_finished_spans() if "execute_tool" in span.name]
    assert names == ["execute_tool tool_search", "execute_tool forge__create_issue"]


def test_a_transfer_to_another_agent_goes_through() -> None:
    world = World()
    over = asked(1, "transfer_to_agent", agent_name="tracker")
    with ModelServer(over, CREATE, DONE) as server:
        tracker = LlmAgent(
            name="tracker", description="Tracks.", model=model_of(server), tools=tools_of(world)
        )
        run(server, World(), sub_agents=[tracker])

    assert "transfer_to_agent" in tool_names(server.requests[0])
    assert world.calls == REPORTED


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS) as server:
        run_page("adapters/google-adk.md", model=model_of(server), tools=tools_of(world))

    assert world.calls == REPORTED
