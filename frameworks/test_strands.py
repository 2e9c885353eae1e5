"""Strands' own agent, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pages import run_page
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.tools.tools import PythonAgentTool
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
from toolfold.adapters.strands import FoldAgentPlugin


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        model = OpenAIModel(
            client_args={"base_url": server.openai, "api_key": "key"}, model_id="any"
        )
        agent = Agent(model=model, tools=[tool(each) for each in functions], callback_handler=None)
        return str(await agent.invoke_async(text)).strip()

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)


ISSUE = {"repo": "acme/website", "title": "It is broken"}
SEARCH = asked(1, "tool_search", query="open an issue in the tracker")
CREATE = asked(2, "tool_call", name="forge__create_issue", arguments=ISSUE)
DONE = says(text="Done.")
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


def agent_of(server: ModelServer, world: World, *plugins: Any, **more: Any) -> Agent:
    model = OpenAIModel(client_args={"base_url": server.openai, "api_key": "key"}, model_id="any")
    return Agent(
        model=model,
        tools=more.pop("tools", None) or tools_of(world),
        plugins=list(plugins),
        callback_handler=None,
        **more,
    )


def folded() -> FoldAgentPlugin:
    return FoldAgentPlugin(
        FOLD, scope=lambda request: SCOPES[request.invocation_state["user"]], core=CORE
    )


def run(agent: Agent, user: str = "ada") -> str:
    return str(
        asyncio.run(agent.invoke_async("Report it.", invocation_state={"user": user}))
    ).strip()


def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        agent = agent_of(server, world, folded(), system_prompt="You help.")
        assert run(agent) == "Done."

    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]
    assert '"number": 3' in last_results(server.requests[2])[0]
    uses = [b["toolUse"]["name"] for m in agent.messages for b in m["content"] if "toolUse" in b]
    assert uses == ["tool_search", "forge__create_issue"]
    written = server.requests[2].body["messages"][-2]["tool_calls"][0]["function"]
    assert written["name"] == "tool_call"
    assert json.loads(written["arguments"]) == {"name": "forge__create_issue", "arguments": ISSUE}


def test_a_streamed_run_folds_and_streams() -> None:
    world = World()

    async def main() -> list[str]:
        agent = agent_of(server, world, folded())
        events = agent.stream_async("Report it.", invocation_state={"user": "ada"})
        return [event["data"] async for event in events if "data" in event]

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
        assert run(agent_of(server, world, folded())) == "Done."

    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert "Did you mean forge__create_issue" in last_results(server.requests[2])[0]
    assert world.calls == [("forge__create_issue", ISSUE)]


def test_two_users_at_once_each_find_what_they_may_use() -> None:
    world = World()
    hidden = asked(2, "tool_describe", name=HIDDEN_FROM_READER)
    direct = asked(3, HIDDEN_FROM_READER, **ISSUE)

    async def main() -> None:
        plugin = folded()
        async with asyncio.TaskGroup() as group:
            for server, user in ((one, "ada"), (two, "bob")):
                agent = agent_of(server, world, plugin)
                group.create_task(agent.invoke_async("Report.", invocation_state={"user": user}))

    script = (SEARCH, hidden, direct, CREATE, DONE)
    with ModelServer(SEARCH, CREATE, DONE) as one, ModelServer(*script) as two:
        asyncio.run(main())

    assert world.calls == [("forge__create_issue", ISSUE)]
    assert HIDDEN_FROM_READER in last_results(one.requests[1])[0]
    answers = [last_results(request)[0] for request in two.requests[1:]]
    assert HIDDEN_FROM_READER not in answers[0]
    for answer in answers[1:]:
        assert f'"{HIDDEN_FROM_READER}" is not available in this session' in answer


def test_hooks_hear_of_the_real_tool_and_may_cancel_it() -> None:
    heard: list[str] = []

    def before(event: BeforeToolCallEvent) -> None:
        heard.append(event.tool_use["name"])
        if event.tool_use["name"] == "forge__create_issue":
            event.cancel_tool = "not on a Sunday"

    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        agent = agent_of(server, world, folded())
        agent.add_hook(before, BeforeToolCallEvent)
        run(agent)

    assert heard == ["tool_search", "forge__create_issue"]
    assert world.calls == []
    assert "not on a Sunday" in last_results(server.requests[2])[0]


def test_below_the_gate_nothing_changes() -> None:
    with ModelServer(DONE, DONE) as server:
        for plugins in ((), (FoldAgentPlugin(),)):
            run(agent_of(server, World(), *plugins, tools=tools_of(World())[:2]))

    assert server.requests[0].body == server.requests[1].body


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(SEARCH, CREATE, DONE) as server:
        model = OpenAIModel(
            client_args={"base_url": server.openai, "api_key": "key"}, model_id="any"
        )
        run_page("adapters/strands.md", model=model, tools=tools_of(world))

    assert world.calls == [("forge__create_issue", ISSUE)]
