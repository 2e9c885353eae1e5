"""Google ADK's own runner, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from pages import run_page
from three_functions import Ask, check
from world import (
    BRIDGE,
    CORE,
    FOLD,
    HIDDEN_FROM_READER,
    READER,
    ModelServer,
    World,
    asked,
    last_results,
    says,
    tool_names,
)

from toolfold import EVERYTHING
from toolfold.adapters.google_adk import FoldToolsPlugin


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        model = LiteLlm(model="openai/any", api_base=server.openai, api_key="key")
        agent = LlmAgent(name="assistant", model=model, tools=functions)
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


ISSUE = {"repo": "acme/website", "title": "It is broken"}
SEARCH = asked(1, "tool_search", query="open an issue in the tracker")
CREATE = asked(2, "tool_call", name="forge__create_issue", arguments=ISSUE)
DONE = says(text="Done.")


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
        return json.loads(await self._world.arun(self.name, args))


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
    message = types.Content(role="user", parts=[types.Part(text="Report it.")])
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


def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        said = run(server, world)

    assert said[-1].content.parts[0].text == "Done."
    assert sorted(tool_names(server.requests[0])) == sorted([*CORE, *BRIDGE])
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]
    assert '"number": 3' in last_results(server.requests[2])[0]
    called = [call.name for event in said for call in event.get_function_calls()]
    assert called == ["tool_search", "forge__create_issue"]
    written = server.requests[2].body["messages"][-2]["tool_calls"][0]["function"]
    assert written["name"] == "tool_call"
    assert json.loads(written["arguments"]) == {"name": "forge__create_issue", "arguments": ISSUE}


def test_a_streamed_run_folds_and_streams() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, says(text="It is reported now.")) as server:
        agent = LlmAgent(name="assistant", model=model_of(server), tools=tools_of(world))
        said = asyncio.run(events(agent, streaming=True))

    pieces = [e.content.parts[0].text for e in said if e.partial and e.content.parts[0].text]
    assert len(pieces) > 1
    assert "".join(pieces) == "It is reported now."
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_a_model_corrects_its_mistakes() -> None:
    world = World()
    wrong = [
        asked(1, "tool_call", name="forge__create_issue", arguments={"title": "x"}),
        asked(3, "forge__create_isue", **ISSUE),
    ]
    with ModelServer(*wrong, CREATE, DONE) as server:
        said = run(server, world)

    assert said[-1].content.parts[0].text == "Done."
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert "Did you mean forge__create_issue" in last_results(server.requests[2])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_two_users_at_once_each_find_what_they_may_use() -> None:
    world = World()
    hidden = asked(2, "tool_describe", name=HIDDEN_FROM_READER)
    direct = asked(3, HIDDEN_FROM_READER, **ISSUE)

    async def main() -> None:
        plugins = [folded()]
        async with asyncio.TaskGroup() as group:
            for server, user in ((one, "ada"), (two, "bob")):
                model, tools = model_of(server), tools_of(world)
                agent = LlmAgent(name="assistant", model=model, tools=tools)
                group.create_task(events(agent, user, plugins))

    script = (SEARCH, hidden, direct, CREATE, DONE)
    with ModelServer(SEARCH, CREATE, DONE) as one, ModelServer(*script) as two:
        asyncio.run(main())

    assert world.calls == [("forge__create_issue", ISSUE)]
    assert HIDDEN_FROM_READER in last_results(one.requests[1])[0]
    answers = [last_results(request)[0] for request in two.requests[1:]]
    assert HIDDEN_FROM_READER not in answers[0]
    for answer in answers[1:]:
        assert f'{HIDDEN_FROM_READER}\\" is not available in this session' in answer


def test_callbacks_hear_of_the_real_tool_and_may_answer_for_it() -> None:
    heard: list[str] = []

    def before(tool: BaseTool, args: dict[str, Any], tool_context: Any) -> Any:
        heard.append(tool.name)
        return {"error": "not on a Sunday"} if tool.name == "forge__create_issue" else None

    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        run(server, world, before_tool_callback=before)

    assert heard == ["tool_search", "forge__create_issue"]
    assert world.calls == []
    assert "not on a Sunday" in last_results(server.requests[2])[0]


def test_a_transfer_to_another_agent_goes_through() -> None:
    world = World()
    over = asked(1, "transfer_to_agent", agent_name="tracker")
    with ModelServer(over, CREATE, DONE) as server:
        tracker = LlmAgent(
            name="tracker", description="Tracks.", model=model_of(server), tools=tools_of(world)
        )
        run(server, World(), sub_agents=[tracker])

    assert "transfer_to_agent" in tool_names(server.requests[0])
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_below_the_gate_nothing_changes() -> None:
    with ModelServer(DONE, DONE) as server:
        for plugins in ([], [FoldToolsPlugin()]):
            tools = tools_of(World())[:2]
            agent = LlmAgent(name="assistant", model=model_of(server), tools=tools)
            asyncio.run(events(agent, plugins=plugins))

    assert server.requests[0].body == server.requests[1].body


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        run_page("adapters/google-adk.md", model=model_of(server), tools=tools_of(world))

    assert world.calls == [("forge__create_issue", ISSUE)]
