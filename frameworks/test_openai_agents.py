"""The OpenAI Agents SDK's own Runner, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    set_tracing_disabled,
    tool_input_guardrail,
)
from openai import AsyncOpenAI
from pages import run_page
from world import (
    BRIDGE,
    CORE,
    FOLD,
    HIDDEN_FROM_READER,
    READER,
    ModelServer,
    World,
    as_responses,
    asked,
    last_results,
    says,
    tool_names,
    tools_tokens,
)

from toolfold import EVERYTHING, Scope
from toolfold.adapters.openai_agents import FoldedAgent

set_tracing_disabled(True)

ISSUE = {"repo": "acme/website", "title": "It is broken"}
SEARCH = asked(1, "tool_search", query="open an issue in the tracker")
CREATE = asked(2, "tool_call", name="forge__create_issue", arguments=ISSUE)
DONE = says(text="Done.")


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


def run(agent: Any, text: Any = "Report it.", user: User | None = None) -> Any:
    return asyncio.run(Runner.run(agent, text, context=user or User()))


def play(model: Any) -> list[Any]:
    script = [SEARCH, CREATE, DONE]
    return as_responses(*script) if model is responses else script


@pytest.mark.parametrize("model", [chat, responses])
def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it(model: Any) -> None:
    world = World()
    with ModelServer(*play(model)) as server:
        result = run(agent_of(model(server), tools_of(world)))

    assert result.final_output == "Done."
    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]
    assert '"number": 3' in last_results(server.requests[2])[0]
    called = [i.raw_item.name for i in result.new_items if i.type == "tool_call_item"]
    assert called == ["tool_search", "forge__create_issue"]
    sent = json.dumps(server.requests[2].body)
    assert r"{\"name\": \"forge__create_issue\", \"arguments\"" in sent


def test_a_streamed_run_folds_and_streams() -> None:
    world = World()

    async def main() -> list[str]:
        result = Runner.run_streamed(
            agent_of(chat(server), tools_of(world)), "Report it.", context=User()
        )
        return [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event"
            and event.data.type == "response.output_text.delta"
        ]

    with ModelServer(SEARCH, CREATE, says(text="It is reported now.")) as server:
        pieces = asyncio.run(main())

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
        result = run(agent_of(chat(server), tools_of(world)))

    assert result.final_output == "Done."
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert "Did you mean forge__create_issue" in last_results(server.requests[2])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_a_folded_tool_called_by_its_name_runs() -> None:
    world = World()
    with ModelServer(asked(1, "forge__create_issue", **ISSUE), DONE) as server:
        run(agent_of(chat(server), tools_of(world)))

    assert world.calls == [("forge__create_issue", ISSUE)]


def test_two_conversations_at_once_share_nothing() -> None:
    world = World()

    async def main() -> None:
        mine = agent_of(chat(one), tools_of(world))
        other = mine.clone(model=agent_of(chat(two), []).model)
        async with asyncio.TaskGroup() as group:
            group.create_task(Runner.run(mine, "Report it.", context=User()))
            group.create_task(Runner.run(other, "Report it.", context=User(READER)))

    with ModelServer(SEARCH, CREATE, DONE) as one, ModelServer(SEARCH, CREATE, DONE) as two:
        asyncio.run(main())

    assert world.calls == [("forge__create_issue", ISSUE)]
    assert HIDDEN_FROM_READER in last_results(one.requests[1])[0]
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
        run(agent_of(chat(server), tools_of(world)), user=User(READER))

    assert world.calls == []
    answers = [last_results(request)[0] for request in server.requests[1:]]
    assert HIDDEN_FROM_READER not in answers[0]
    for answer in answers[1:]:
        assert f'"{HIDDEN_FROM_READER}" is not available in this session' in answer
    assert "forge__update_issue" not in str(server.requests[-1].body)


def test_an_approval_is_asked_for_the_real_tool() -> None:
    world = World()
    tools = tools_of(world, forge__create_issue={"needs_approval": True})

    async def main() -> Any:
        agent = agent_of(chat(server), tools)
        first = await Runner.run(agent, "Report it.", context=User())
        (waiting,) = first.interruptions
        assert waiting.raw_item.name == "forge__create_issue"
        assert json.loads(waiting.raw_item.arguments) == ISSUE
        assert world.calls == []
        state = first.to_state()
        state.approve(waiting)
        return await Runner.run(agent, state)

    with ModelServer(SEARCH, CREATE, DONE) as server:
        second = asyncio.run(main())

    assert second.final_output == "Done."
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_a_guardrail_of_the_real_tool_guards_it() -> None:
    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("not on a Sunday")

    world = World()
    tools = tools_of(world, forge__create_issue={"tool_input_guardrails": [never]})
    with ModelServer(SEARCH, CREATE, DONE) as server:
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
    assert world.calls == [("forge__create_issue", ISSUE)]


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
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_below_the_gate_nothing_changes() -> None:
    tools = tools_of(World())[:2]
    with ModelServer(DONE, DONE) as server:
        model = chat(server)
        asyncio.run(Runner.run(Agent(name="a", model=model, tools=tools), "?"))
        model = chat(server)
        asyncio.run(Runner.run(FoldedAgent(name="a", model=model, tools=tools), "?"))

    assert server.requests[0].body == server.requests[1].body


def test_two_hundred_tools_cost_a_fraction() -> None:
    with ModelServer(DONE, DONE) as server:
        plain = Agent(name="a", model=chat(server), tools=tools_of(World()))
        asyncio.run(Runner.run(plain, "?", run_config=RunConfig()))
        run(agent_of(chat(server), tools_of(World())))

    whole, less = map(tools_tokens, server.requests)
    assert whole > 20_000
    assert less < whole / 30


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE, DONE) as server:
        run_page("adapters/openai-agents.md", model=chat(server), tools=tools_of(world))

    assert world.calls == [("forge__create_issue", ISSUE)]
