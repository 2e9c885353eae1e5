"""Pydantic AI's own agent, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pages import run_page
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, ToolSearch
from pydantic_ai.exceptions import ModelRetry, UnexpectedModelBehavior
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset
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
    tools_tokens,
)

from toolfold import EVERYTHING, Scope
from toolfold.adapters.pydantic_ai import FoldedToolset, FoldTools, search_strategy

ISSUE = {"repo": "acme/website", "title": "It is broken"}


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


SEARCH = asked(1, "tool_search", query="open an issue in the tracker")
CREATE = asked(2, "tool_call", name="forge__create_issue", arguments=ISSUE)
DONE = says(text="Done.")


@pytest.mark.parametrize("model", [chat, claude])
def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it(model: Any) -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        agent = folded_agent(model(server), toolset_of(world))
        result = agent.run_sync("Report that the site is broken.", deps=User())

    assert result.output == "Done."
    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]
    assert '"number": 3' in last_results(server.requests[2])[0]


def test_a_toolset_alone_can_be_folded_and_others_stay_as_they_are() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        agent = Agent(
            chat(server),
            deps_type=User,
            toolsets=[FoldedToolset(toolset_of(world), FOLD)],
            tools=[Tool(lambda: "now", name="clock", takes_ctx=False)],
        )
        agent.run_sync("Report it.", deps=User())

    assert sorted(tool_names(server.requests[0])) == sorted(["clock", *BRIDGE])
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_a_streamed_run_folds_and_streams() -> None:
    world = World()

    async def main() -> list[str]:
        agent = folded_agent(chat(server), toolset_of(world))
        async with agent.run_stream("Report it.", deps=User()) as run:
            return [text async for text in run.stream_text(delta=True, debounce_by=None)]

    with ModelServer(SEARCH, CREATE, says(text="It is reported now.")) as server:
        pieces = asyncio.run(main())

    assert len(pieces) > 1
    assert "".join(pieces) == "It is reported now."
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_a_model_corrects_its_mistakes_however_many() -> None:
    world = World()
    wrong = [
        asked(1, "tool_call", name="forge__create_issue", arguments={"title": "x"}),
        asked(2, "tool_call", name="forge__create_isue", arguments=ISSUE),
        asked(3, "tool_call", name="forge__create_issue", arguments={"repo": 1}),
    ]
    with ModelServer(*wrong, CREATE, DONE) as server:
        agent = folded_agent(chat(server), toolset_of(world))
        result = agent.run_sync("Report it.", deps=User())

    assert result.output == "Done."
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert "forge__create_issue" in last_results(server.requests[2])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_a_folded_tool_called_by_its_name_runs() -> None:
    world = World()
    with ModelServer(asked(1, "forge__create_issue", **ISSUE), DONE) as server:
        agent = folded_agent(chat(server), toolset_of(world))
        agent.run_sync("Report it.", deps=User())

    assert world.calls == [("forge__create_issue", ISSUE)]


def test_two_conversations_at_once_share_nothing() -> None:
    world = World()
    vain = asked(1, "tool_search", query="fax a document to the moon")

    async def main() -> None:
        toolset = toolset_of(world)
        mine = folded_agent(chat(one), toolset)
        with mine.override(model=chat(one)):
            first = mine.run("Report it.", deps=User())
            second = folded_agent(chat(two), toolset).run("Report it.", deps=User(READER))
            async with asyncio.TaskGroup() as group:
                group.create_task(first)
                group.create_task(second)

    with ModelServer(vain, SEARCH, CREATE, DONE) as one, ModelServer(SEARCH, CREATE, DONE) as two:
        asyncio.run(main())

    assert world.calls == [("forge__create_issue", ISSUE)]
    assert HIDDEN_FROM_READER in last_results(one.requests[2])[0]
    assert HIDDEN_FROM_READER not in last_results(two.requests[1])[0]


def test_what_a_user_may_not_use_is_neither_found_called_nor_named() -> None:
    world = World()
    script = [
        SEARCH,
        asked(2, "tool_describe", name=HIDDEN_FROM_READER),
        asked(3, "tool_call", name=HIDDEN_FROM_READER, arguments=ISSUE),
        asked(4, HIDDEN_FROM_READER, **ISSUE),
        DONE,
    ]
    with ModelServer(*script) as server:
        agent = folded_agent(chat(server), toolset_of(world))
        agent.run_sync("Report it.", deps=User(READER))

    assert world.calls == []
    answers = [last_results(request)[0] for request in server.requests[1:]]
    assert HIDDEN_FROM_READER not in answers[0]
    for answer in answers[1:]:
        assert f'{HIDDEN_FROM_READER}\\" is not available in this session' in answer
    assert "forge__update_issue" not in str(server.requests[-1].body)


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
        first = agent.run_sync("Report it.", deps=User())
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
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_hooks_hear_of_the_real_tool() -> None:
    heard: list[str] = []

    class Hears(AbstractCapability[User]):
        async def before_tool_execute(
            self, ctx: Any, *, call: Any, tool_def: Any, args: Any
        ) -> Any:
            heard.append(tool_def.name)
            return args

    with ModelServer(SEARCH, CREATE, DONE) as server:
        agent = folded_agent(chat(server), toolset_of(World()), capabilities=[Hears()])
        agent.run_sync("Report it.", deps=User())

    assert heard == ["tool_search", "tool_call", "forge__create_issue"]


@pytest.mark.parametrize("how", ["prepared", "wrapped"])
def test_what_another_capability_takes_away_cannot_be_found(how: str) -> None:
    class Without(AbstractCapability[User]):
        async def prepare_tools(self, ctx: Any, tool_defs: Any) -> Any:
            return [t for t in tool_defs if how != "prepared" or t.name != HIDDEN_FROM_READER]

        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return toolset.filtered(lambda _, t: how != "wrapped" or t.name != HIDDEN_FROM_READER)

    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        agent = folded_agent(chat(server), toolset_of(world), capabilities=[Without()])
        agent.run_sync("Report it.", deps=User())

    assert HIDDEN_FROM_READER not in last_results(server.requests[1])[0]
    assert world.calls == []


def test_below_the_gate_nothing_changes() -> None:
    world = World()
    with ModelServer(DONE, DONE) as server:
        few = FunctionToolset[User]([Tool(lambda: "now", name="clock", takes_ctx=False)])
        Agent(chat(server), toolsets=[few]).run_sync("?")
        Agent(chat(server), toolsets=[FoldedToolset(few)]).run_sync("?")

    assert server.requests[0].body == server.requests[1].body
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
        agent.run_sync("Report it.", deps=User())

    assert tool_names(server.requests[0]) == ["search_tools"]
    found = json.loads(last_results(server.requests[1])[0])["discovered_tools"]
    assert found[0] == {"name": "forge__create_issue"}
    assert len(found) <= 5
    assert world.calls == [("forge__create_issue", ISSUE)]
    assert "No matching tools" in last_results(server.requests[3])[0]


def test_two_hundred_tools_cost_a_fraction() -> None:
    with ModelServer(DONE, DONE) as server:
        Agent(chat(server), deps_type=User, toolsets=[toolset_of(World())]).run_sync(
            "?", deps=User()
        )
        folded_agent(chat(server), toolset_of(World())).run_sync("?", deps=User())

    plain, folded = map(tools_tokens, server.requests)
    assert plain > 20_000
    assert folded < plain / 30


def test_the_guide_runs() -> None:
    with ModelServer(SEARCH, CREATE, DONE, DONE) as server:
        run_page("adapters/pydantic-ai.md", model=chat(server), many=toolset_of(World()))
