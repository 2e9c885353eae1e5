"""Haystack's own agent, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool, create_tool_from_function
from haystack.utils import Secret
from pages import run_page
from scenario import Conversation, Scenario
from three_functions import Ask, check
from world import (
    BRIDGE,
    CORE,
    CREATE,
    DONE,
    FOLD,
    HIDDEN_FROM_READER,
    OURS,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    World,
    last_results,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.haystack import FoldedChatGenerator, FoldedToolset


def tools_of(world: World) -> list[Any]:
    def tool(name: str) -> Tool:
        async def arun(**arguments: Any) -> str:
            return await world.arun(name, arguments)

        found = world.tool(name)
        return Tool(
            name=name,
            description=found.description,
            parameters=dict(found.parameters),
            function=lambda **arguments: world.run(name, arguments),
            async_function=arun,
        )

    return [tool(each.name) for each in world.tools]


def model_of(server: ModelServer) -> OpenAIChatGenerator:
    key = Secret.from_token("key")
    return OpenAIChatGenerator(api_key=key, model="any", api_base_url=server.openai, max_retries=0)


def agent_of(server: ModelServer, world: World, **more: Any) -> Agent:
    tools = FoldedToolset(tools_of(world), FOLD, core=CORE)
    return Agent(chat_generator=FoldedChatGenerator(model_of(server)), tools=tools, **more)


def said(text: str) -> list[ChatMessage]:
    return [ChatMessage.from_user(text)]


class TestHaystack(Scenario):
    # It refuses broken schemas itself.
    test_a_broken_schema_harms_its_own_tool_alone = None

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
        history: list[ChatMessage] = []

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            if settings is None:
                agent = Agent(chat_generator=model_of(server), tools=list(tools))
            else:
                folded = FoldedToolset(list(tools), settings, scope=scope, core=CORE)
                agent = Agent(chat_generator=FoldedChatGenerator(model_of(server)), tools=folded)

            async def heard(chunk: Any) -> None:
                if chunk.content and pieces is not None:
                    pieces.append(chunk.content)

            callback = None if pieces is None else heard
            done = await agent.run_async([*history, *said(text)], streaming_callback=callback)
            history[:] = done["messages"]
            return done["last_message"].text

        return ask


def test_a_synchronous_run_folds_and_its_messages_hold_the_real_call() -> None:
    world = World()
    with ModelServer(*OURS) as server:
        done = agent_of(server, world, system_prompt="You help.").run(said(TASK))

    assert done["last_message"].text == "Done."
    names = [call.tool_name for message in done["messages"] for call in message.tool_calls]
    assert names == ["tool_search", "forge__create_issue"]
    assert world.calls == REPORTED


def test_a_run_stops_at_the_real_tool() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE) as server:
        agent = agent_of(server, world, exit_conditions=["forge__create_issue"])
        done = agent.run(said(TASK))

    assert '"number": 3' in done["last_message"].tool_call_result.result
    assert world.calls == REPORTED


def test_another_users_tools_are_given_with_the_run() -> None:
    world = World()
    reader = Scope(deny=(HIDDEN_FROM_READER,))
    with ModelServer(*OURS) as server:
        agent = agent_of(server, world)
        agent.run(said(TASK), tools=agent.tools.within(reader))

    assert HIDDEN_FROM_READER not in last_results(server.requests[1])[0]
    assert world.calls == []


def test_a_run_that_is_given_some_tools_by_name_finds_no_others() -> None:
    world = World()
    with ModelServer(*OURS) as server:
        names = [tool.name for tool in world.tools if tool.name != HIDDEN_FROM_READER]
        agent_of(server, world).run(said(TASK), tools=names)

    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert HIDDEN_FROM_READER not in last_results(server.requests[1])[0]
    assert world.calls == []


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS, DONE) as server:
        run_page("adapters/haystack.md", generator=model_of(server), tools=tools_of(world))

    assert world.calls == REPORTED


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        tools = [create_tool_from_function(each) for each in functions]
        agent = Agent(chat_generator=model_of(server), tools=tools)
        done = await asyncio.to_thread(agent.run, messages=said(text))
        return done["last_message"].text

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking, blocking=True)
