"""LlamaIndex's own agent with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent
from llama_index.core.agent.workflow import ToolCall as ToolCallEvent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata, ToolOutput
from llama_index.llms.openai_like import OpenAILike
from pages import run_page
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
    TASK,
    ModelServer,
    World,
    asked,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.llama_index import FoldedFunctionAgent, tool_registry
from toolfold.runtime import Agent, ScriptedModel


def model_of(server: ModelServer) -> OpenAILike:
    return OpenAILike(
        model="any",
        api_base=server.openai,
        api_key="key",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )


@dataclass
class WorldMetadata(ToolMetadata):
    parameters: dict[str, Any] = field(default_factory=dict)

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.parameters


class WorldTool(AsyncBaseTool):
    def __init__(self, world: World, name: str) -> None:
        found = world.tool(name)
        self._world = world
        self._metadata = WorldMetadata(found.description, name, parameters=dict(found.parameters))

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    def call(self, **arguments: Any) -> ToolOutput:
        raise NotImplementedError

    async def acall(self, **arguments: Any) -> ToolOutput:
        name = self._metadata.get_name()
        text = await self._world.arun(name, arguments)
        return ToolOutput(tool_name=name, content=text, raw_input=arguments, raw_output=text)


def tools_of(world: World) -> list[Any]:
    return [WorldTool(world, tool.name) for tool in world.tools]


class TestLlamaIndex(Scenario):
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
        memory = ChatMemoryBuffer.from_defaults(token_limit=1_000_000)

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            given: Any = {
                "tools": list(tools),
                "llm": model_of(server),
                "streaming": pieces is not None,
            }
            if settings is None:
                agent = FunctionAgent(**given)
            else:
                agent = FoldedFunctionAgent(**given, settings=settings, scope=scope, core=CORE)
            handler = agent.run(text, memory=memory, max_iterations=20)
            try:
                async for event in handler.stream_events():
                    if pieces is not None and isinstance(event, AgentStream) and event.delta:
                        pieces.append(event.delta)
                return str(await handler)
            except asyncio.CancelledError:
                await handler.cancel_run()
                raise

        return ask


def test_the_events_of_the_workflow_are_of_the_real_tool() -> None:
    async def main() -> list[str]:
        agent = FoldedFunctionAgent(
            tools=tools_of(World()), llm=model_of(server), settings=FOLD, streaming=False
        )
        handler = agent.run(TASK)
        return [e.tool_name async for e in handler.stream_events() if type(e) is ToolCallEvent]

    with ModelServer(*OURS) as server:
        assert asyncio.run(main()) == ["tool_search", "forge__create_issue"]


def test_an_agent_of_a_workflow_folds_its_own_and_hands_over() -> None:
    world = World()

    async def main() -> str:
        desk, tracker = (
            FoldedFunctionAgent(
                name=name,
                description=name,
                tools=tools_of(world),
                llm=model_of(server),
                settings=FOLD,
                scope=scope,
                streaming=False,
            )
            for name, scope in (("desk", READER), ("tracker", EVERYTHING))
        )
        return str(await AgentWorkflow(agents=[desk, tracker], root_agent="desk").run(TASK))

    over = asked(9, "handoff", to_agent="tracker", reason="It is theirs.")
    with ModelServer(over, *OURS) as server:
        assert asyncio.run(main()) == "Done."

    assert "handoff" in tool_names(server.requests[0])
    assert world.calls == REPORTED


def test_a_result_that_is_the_answer_stays_so() -> None:
    world = World()
    tools = tools_of(world)
    next(t for t in tools if t.metadata.name == "forge__create_issue").metadata.return_direct = True

    async def main() -> str:
        agent = FoldedFunctionAgent(
            tools=tools, llm=model_of(server), settings=FOLD, streaming=False
        )
        return str(await agent.run(TASK))

    with ModelServer(CREATE) as server:
        assert '"number": 3' in asyncio.run(main())


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS, DONE) as server:
        run_page("adapters/llama-index.md", llm=model_of(server), tools=tools_of(world))

    assert world.calls == REPORTED


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        agent = FunctionAgent(tools=functions, llm=model_of(server), streaming=False)
        return str(await agent.run(text))

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)


def test_its_tools_are_a_source_for_our_own_agent() -> None:
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    registry = tool_registry([FunctionTool.from_defaults(add), FunctionTool.from_defaults(fail)])

    async def main() -> tuple[str, bool]:
        agent = Agent(ScriptedModel([]), registry, settings=Settings(enabled="on"))
        done = await agent.call("tool_call", {"name": "add", "arguments": {"a": 2, "b": 3}})
        failed = await agent.call("tool_call", {"name": "fail", "arguments": {}})
        return done.text, failed.is_error

    assert asyncio.run(main()) == ("5", True)
    assert registry.tools()[0].parameters["required"] == ["a"]
