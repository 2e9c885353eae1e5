"""Microsoft's Agent Framework's own agent, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Agent, FunctionMiddleware, FunctionTool, Message
from agent_framework.openai import OpenAIChatCompletionClient
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
    last_results,
    messages,
    says,
)

from support.model_server import Received
from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.agent_framework import FoldToolsMiddleware

SCOPES = {"ada": EVERYTHING, "bob": READER}


def tools_of(world: World, **more: Any) -> list[Any]:
    def tool(name: str) -> FunctionTool:
        async def run(**arguments: Any) -> str:
            return await world.arun(name, arguments)

        found = world.tool(name)
        return FunctionTool(
            name=name,
            description=found.description,
            func=run,
            input_model=dict(found.parameters),
            **more.get(name, {}),
        )

    return [tool(each.name) for each in world.tools]


def model_of(server: ModelServer) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model="any", api_key="key", base_url=server.openai)


def agent_of(server: ModelServer, tools: list[Any], *middleware: Any) -> Agent:
    fold = FoldToolsMiddleware(FOLD, core=CORE)
    return Agent(client=model_of(server), tools=tools, middleware=[fold, *middleware])


class TestAgentFramework(Scenario):
    def said(self, request: Received) -> list[Any]:
        # A session's history says which agent spoke.
        return [{**each, "name": None} for each in messages(request)]

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
        sessions: list[Any] = []

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            fold = FoldToolsMiddleware(
                settings, scope=lambda request: SCOPES[request.session.state["user"]], core=CORE
            )
            agent = Agent(
                client=model_of(server),
                tools=list(tools),
                middleware=[] if settings is None else [fold],
            )
            if not sessions:
                sessions.append(agent.create_session())
                sessions[0].state["user"] = "ada" if scope is EVERYTHING else "bob"
            if pieces is None:
                return (await agent.run(text, session=sessions[0])).text
            stream = agent.run(text, session=sessions[0], stream=True)
            async for update in stream:
                if update.text:
                    pieces.append(update.text)
            return "".join(pieces)

        return ask


def test_function_middleware_hears_of_the_real_tool() -> None:
    heard: list[str] = []

    class Hears(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            heard.append(context.function.name)
            await call_next()

    world = World()
    with ModelServer(*OURS) as server:
        asyncio.run(agent_of(server, tools_of(world), Hears()).run(TASK))

    assert heard == ["tool_search", "forge__create_issue"]


def test_an_approval_is_asked_for_the_real_tool() -> None:
    world = World()
    tools = tools_of(world, forge__create_issue={"approval_mode": "always_require"})

    async def main() -> str:
        agent = agent_of(server, tools)
        session = agent.create_session()
        first = await agent.run(TASK, session=session)
        (asked_for,) = first.user_input_requests
        assert asked_for.function_call.name == "forge__create_issue"
        assert world.calls == []
        yes = asked_for.to_function_approval_response(approved=True)
        return (await agent.run(Message(role="user", contents=[yes]), session=session)).text

    with ModelServer(SEARCH, CREATE, DONE) as server:
        assert asyncio.run(main()) == "Done."

    assert world.calls == REPORTED
    assert '"number": 3' in last_results(server.requests[2])[0]


def test_a_typed_answer_stays_typed() -> None:
    class Report(BaseModel):
        number: int

    async def main() -> Any:
        agent = agent_of(server, tools_of(World()))
        return (await agent.run(TASK, options={"response_format": Report})).value

    with ModelServer(SEARCH, CREATE, says(text='{"number": 3}')) as server:
        assert asyncio.run(main()) == Report(number=3)


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS, DONE) as server:
        run_page("adapters/agent-framework.md", client=model_of(server), tools=tools_of(world))

    assert world.calls == REPORTED


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        return (await Agent(client=model_of(server), tools=functions).run(text)).text

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)
