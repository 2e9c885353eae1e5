"""Pydantic AI's own agent, before a model by a script, with 207 tools."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pages import run_page
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, ToolSearch
from pydantic_ai.exceptions import ModelRetry, UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset
from scenario import Conversation, Scenario
from world import (
    BRIDGE,
    CORE,
    CREATE,
    DONE,
    FOLD,
    HIDDEN_FROM_READER,
    ISSUE,
    MCP_SERVER,
    OURS,
    QUERY,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    World,
    asked,
    last_results,
    messages,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.pydantic_ai import FoldedToolset, FoldTools, search_strategy


@dataclass
class User:
    scope: Scope = EVERYTHING


def scope_of(ctx: RunContext[User]) -> Scope:
    return ctx.deps.scope


def toolset_of(world: World, **more: Any) -> FunctionToolset[User]:
    def tool(name: str) -> Tool[User]:
        async def run(**arguments: Any) -> str:
            return await world.arun(name, arguments)

        found = world.tool(name)
        made = Tool.from_schema(run, name, found.description, dict(found.parameters))
        for key, value in more.get(name, {}).items():
            setattr(made, key, value)
        return made

    return FunctionToolset([tool(each.name) for each in world.tools])


def chat(server: ModelServer) -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=server.openai, api_key="key")
    return OpenAIChatModel("any", provider=provider)


def claude(server: ModelServer) -> AnthropicModel:
    provider = AnthropicProvider(base_url=server.url, api_key="key")
    return AnthropicModel("any", provider=provider)


def folded_agent(model: Any, toolset: Any, **more: Any) -> Agent[User, Any]:
    fold = FoldTools[User](FOLD, scope_of, CORE)
    more["capabilities"] = [*more.get("capabilities", ()), fold]
    return Agent(model, deps_type=User, toolsets=[toolset], **more)


class TestPydanticAI(Scenario):
    def tools(self, world: World) -> list[Any]:
        return list(toolset_of(world).tools.values())

    def begin(
        self,
        server: ModelServer,
        tools: list[Any],
        *,
        settings: Settings | None = FOLD,
        scope: Scope = EVERYTHING,
    ) -> Conversation:
        history: list[Any] = []

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            fold = () if settings is None else [FoldTools[User](settings, scope_of, CORE)]
            toolset = FunctionToolset(tools)
            agent = Agent(chat(server), deps_type=User, toolsets=[toolset], capabilities=fold)
            given: Any = {"deps": User(scope), "message_history": history}
            if pieces is None:
                result = await agent.run(text, **given)
                history[:] = result.all_messages()
                return result.output
            async with agent.run_stream(text, **given) as run:
                async for piece in run.stream_text(delta=True, debounce_by=None):
                    pieces.append(piece)
                return await run.get_output()

        return ask


@pytest.mark.parametrize("model", [chat, claude])
def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it(model: Any) -> None:
    world = World()
    with ModelServer(*OURS) as server:
        agent = folded_agent(model(server), toolset_of(world))
        result = agent.run_sync("Report that the site is broken.", deps=User())

    assert result.output == "Done."
    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == REPORTED
    assert '"number": 3' in last_results(server.requests[2])[0]


def test_a_toolset_alone_can_be_folded_and_others_stay_as_they_are() -> None:
    world = World()
    with ModelServer(*OURS) as server:
        agent = Agent(
            chat(server),
            deps_type=User,
            toolsets=[FoldedToolset(toolset_of(world), FOLD)],
            tools=[Tool(lambda: "now", name="clock", takes_ctx=False)],
        )
        agent.run_sync(TASK, deps=User())

    assert sorted(tool_names(server.requests[0])) == sorted(["clock", *BRIDGE])
    assert world.calls == REPORTED


def test_a_real_tools_own_retries_are_its_own() -> None:
    tries: list[str] = []

    def weather(city: str) -> str:
        """Say what the weather is like."""
        tries.append(city)
        raise ModelRetry(f"there is no {city}")

    again = [asked(i, "tool_call", name="weather", arguments={"city": "X"}) for i in range(4)]
    with ModelServer(*again) as server:
        toolset = FunctionToolset([Tool(weather, max_retries=2)])
        agent = folded_agent(chat(server), toolset)
        with pytest.raises(UnexpectedModelBehavior, match="'weather' exceeded max retries"):
            agent.run_sync("?", deps=User())

    assert tries == ["X", "X", "X"]
    assert "there is no X" in last_results(server.requests[1])[0]


def test_an_approval_is_asked_for_the_real_tool_and_given_to_it() -> None:
    world = World()
    toolset = toolset_of(world, forge__create_issue={"requires_approval": True})
    with ModelServer(CREATE, DONE) as server:
        agent = folded_agent(chat(server), toolset, output_type=[str, DeferredToolRequests])
        first = agent.run_sync(TASK, deps=User())
        assert isinstance(first.output, DeferredToolRequests)
        assert world.calls == []
        (id,) = [call.tool_call_id for call in first.output.approvals]
        assert first.output.metadata[id] == {"tool_name": "forge__create_issue", "args": ISSUE}
        second = agent.run_sync(
            deps=User(),
            message_history=first.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={id: True}),
        )

    assert second.output == "Done."
    assert world.calls == REPORTED


def test_hooks_hear_of_the_real_tool() -> None:
    heard: list[str] = []

    class Hears(AbstractCapability[User]):
        async def before_tool_execute(
            self, ctx: Any, *, call: Any, tool_def: Any, args: Any
        ) -> Any:
            heard.append(tool_def.name)
            return args

    with ModelServer(*OURS) as server:
        agent = folded_agent(chat(server), toolset_of(World()), capabilities=[Hears()])
        agent.run_sync(TASK, deps=User())

    assert heard == ["tool_search", "tool_call", "forge__create_issue"]


@pytest.mark.parametrize("how", ["prepared", "wrapped"])
def test_what_another_capability_takes_away_cannot_be_found(how: str) -> None:
    class Without(AbstractCapability[User]):
        async def prepare_tools(self, ctx: Any, tool_defs: Any) -> Any:
            return [t for t in tool_defs if how != "prepared" or t.name != HIDDEN_FROM_READER]

        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return toolset.filtered(lambda _, t: how != "wrapped" or t.name != HIDDEN_FROM_READER)

    world = World()
    with ModelServer(*OURS) as server:
        agent = folded_agent(chat(server), toolset_of(world), capabilities=[Without()])
        agent.run_sync(TASK, deps=User())

    assert HIDDEN_FROM_READER not in last_results(server.requests[1])[0]
    assert world.calls == []


def test_its_own_tool_search_ranks_as_we_do() -> None:
    world = World()
    script = [
        asked(1, "search_tools", queries=["open an issue in the tracker"]),
        asked(2, "forge__create_issue", **ISSUE),
        asked(3, "search_tools", queries=["perform an exorcism"]),
        DONE,
    ]
    with ModelServer(*script) as server:
        agent = Agent(
            chat(server),
            deps_type=User,
            toolsets=[toolset_of(world).defer_loading()],
            capabilities=[ToolSearch(strategy=search_strategy(scope=scope_of))],
        )
        agent.run_sync(TASK, deps=User())

    assert tool_names(server.requests[0]) == ["search_tools"]
    found = json.loads(last_results(server.requests[1])[0])["discovered_tools"]
    assert found[0] == {"name": "forge__create_issue"}
    assert len(found) <= 5
    assert world.calls == REPORTED
    assert "No matching tools" in last_results(server.requests[3])[0]


def test_its_native_search_on_our_side_finds_by_ours_and_the_list_stays() -> None:
    world = World()
    script = (
        asked(1, "search_tools", queries=[QUERY]),
        asked(2, "forge__create_issue", **ISSUE),
        DONE,
    )
    with ModelServer(*script) as server:
        provider = AnthropicProvider(base_url=server.url, api_key="key")
        agent = Agent(
            AnthropicModel("claude-sonnet-4-6", provider=provider),
            deps_type=User,
            toolsets=[toolset_of(world).defer_loading()],
            capabilities=[ToolSearch(strategy=search_strategy())],
        )
        agent.run_sync(TASK, deps=User())

    tools = server.requests[0].body["tools"]
    assert sum(tool.get("defer_loading", False) for tool in tools) == len(world.tools)
    assert server.requests[2].body["tools"] == tools
    (result,) = messages(server.requests[1])[-1]["content"]
    assert result["content"][0] == {"type": "tool_reference", "tool_name": "forge__create_issue"}
    assert world.calls == REPORTED


def test_a_typed_answer_stays_typed() -> None:
    class Report(BaseModel):
        """What was done."""

        number: int

    with ModelServer(SEARCH, CREATE, asked(3, "final_result", number=3)) as server:
        agent = folded_agent(chat(server), toolset_of(World()), output_type=Report)
        result = agent.run_sync(TASK, deps=User())

    assert result.output == Report(number=3)
    assert "final_result" in tool_names(server.requests[0])


def test_tools_of_an_mcp_server_fold_as_any_others(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    create = asked(2, "tool_call", name="create_issue", arguments=ISSUE)
    with ModelServer(SEARCH, create, DONE) as server:
        tracker = MCPToolset(StdioTransport(sys.executable, [str(program)]))
        result = folded_agent(chat(server), tracker).run_sync(TASK, deps=User())

    assert tool_names(server.requests[0]) == BRIDGE
    assert "acme/website: It is broken" in last_results(server.requests[2])[0]
    assert result.output == "Done."


def test_the_guide_runs() -> None:
    with ModelServer(*OURS, DONE) as server:
        run_page("adapters/pydantic-ai.md", model=chat(server), many=toolset_of(World()))
