"""LangChain's own `create_agent` and LangGraph, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ProviderToolSearchMiddleware,
)
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from pages import run_page
from pydantic import BaseModel
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
    as_responses,
    asked,
    call,
    called,
    last_results,
    says,
    tool_names,
)

from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.langchain import FoldToolsMiddleware, tool_registry
from toolfold.runtime import Agent, ScriptedModel


@dataclass
class User:
    scope: Scope = EVERYTHING


def tools_of(world: World) -> list[StructuredTool]:
    def tool(name: str) -> StructuredTool:
        async def arun(**arguments: Any) -> str:
            return await world.arun(name, arguments)

        found = world.tool(name)
        return StructuredTool(
            name=name,
            description=found.description,
            args_schema=dict(found.parameters),
            func=lambda **arguments: world.run(name, arguments),
            coroutine=arun,
        )

    return [tool(each.name) for each in world.tools]


def chat(server: ModelServer) -> ChatOpenAI:
    return ChatOpenAI(model="any", base_url=server.openai, api_key="key", max_retries=0)


def responses(server: ModelServer) -> ChatOpenAI:
    return ChatOpenAI(
        model="any",
        base_url=server.openai,
        api_key="key",
        max_retries=0,
        use_responses_api=True,
        output_version="responses/v1",
    )


def claude(server: ModelServer) -> ChatAnthropic:
    return ChatAnthropic(model="any", base_url=server.url, api_key="key", max_retries=0)


def folded(settings: Settings = FOLD) -> FoldToolsMiddleware:
    return FoldToolsMiddleware(settings, scope=lambda runtime: runtime.context.scope, core=CORE)


def agent_of(model: Any, world: World, *middleware: Any, **more: Any) -> Any:
    return create_agent(
        model,
        tools_of(world),
        middleware=[*middleware, folded()],
        context_schema=User,
        system_prompt="You help.",
        **more,
    )


def play(model: Any) -> list[Any]:
    return as_responses(*OURS) if model is responses else list(OURS)


def user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


class TestLangChain(Scenario):
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
        kept, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            agent = create_agent(
                ChatOpenAI(
                    model="any",
                    base_url=server.openai,
                    api_key="key",
                    max_retries=0,
                    streaming=pieces is not None,
                ),
                tools,
                middleware=[] if settings is None else [folded(settings)],
                context_schema=User,
                checkpointer=kept,
            )
            if pieces is None:
                state = await agent.ainvoke(user(text), thread, context=User(scope))
                return state["messages"][-1].text
            stream = agent.astream(user(text), thread, context=User(scope), stream_mode="messages")
            async for chunk, _ in stream:
                if chunk.type == "AIMessageChunk" and chunk.text:
                    pieces.append(chunk.text)
            return agent.get_state(thread).values["messages"][-1].text

        return ask


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("model", [chat, responses, claude])
def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it(model: Any, is_async: bool) -> None:
    world = World()
    with ModelServer(*play(model)) as server:
        agent = agent_of(model(server), world)
        if is_async:
            state = asyncio.run(agent.ainvoke(user(TASK), context=User()))
        else:
            state = agent.invoke(user(TASK), context=User())

    assert state["messages"][-1].text == "Done."
    assert tool_names(server.requests[0]) == [*CORE, *BRIDGE]
    assert "Not all of your tools are listed" in str(server.requests[0].body)
    assert "forge__create_issue(repo: string" in last_results(server.requests[1])[0]
    assert world.calls == REPORTED
    assert '"number": 3' in last_results(server.requests[2])[0]


@pytest.mark.parametrize("model", [chat, responses, claude])
def test_the_graph_sees_the_real_tool_and_the_model_its_own_words(model: Any) -> None:
    world = World()
    with ModelServer(*play(model)) as server:
        state = agent_of(model(server), world).invoke(user(TASK), context=User())

    calls = [c for m in state["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]
    assert [(c["name"], c["args"]) for c in calls[1:]] == REPORTED
    assert state["messages"][-2].name == "forge__create_issue"
    assert called(server.requests[2]) == [
        ("tool_search", {"query": QUERY}),
        ("tool_call", {"name": "forge__create_issue", "arguments": ISSUE}),
    ]


def test_calls_beside_each_other_all_get_their_answers() -> None:
    world = World()
    both = says(
        call("tool_search", "a", query="open an issue"),
        call("tool_search", "b", query="send a mail"),
        call("tool_call", "c", name="forge__create_issue", arguments=ISSUE),
    )
    with ModelServer(both, DONE) as server:
        agent = agent_of(chat(server), world, checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke(user(TASK), config, context=User())
        kept = agent.get_state(config).values["toolfold"]

    assert len(last_results(server.requests[1])) == 3
    assert {"forge__create_issue", "mail__send_mail"} <= set(kept["revealed"])


def test_a_persons_approval_is_asked_for_the_real_tool_over_a_checkpoint() -> None:
    world, kept = World(), InMemorySaver()
    config = {"configurable": {"thread_id": "1"}}
    approval = HumanInTheLoopMiddleware(interrupt_on={"forge__create_issue": True})
    with ModelServer(*OURS) as server:
        first = agent_of(chat(server), world, approval, checkpointer=kept).invoke(
            user(TASK), config, context=User()
        )
        (asked_for,) = first["__interrupt__"][0].value["action_requests"]
        assert (asked_for["name"], asked_for["args"]) == ("forge__create_issue", ISSUE)
        assert world.calls == []
        # Another process, as it were: only the checkpoint is the same.
        state = agent_of(chat(server), world, approval, checkpointer=kept).invoke(
            Command(resume={"decisions": [{"type": "approve"}]}), config, context=User()
        )

    assert state["messages"][-1].text == "Done."
    assert world.calls == REPORTED


def test_a_revealed_tool_stays_listed_over_a_checkpoint() -> None:
    world, kept = World(), InMemorySaver()
    config = {"configurable": {"thread_id": "1"}}
    reveal = Settings(enabled="on", strategy="reveal")
    with ModelServer(SEARCH, DONE, DONE) as server:
        for _ in range(2):
            agent = create_agent(
                chat(server),
                tools_of(world),
                middleware=[FoldToolsMiddleware(reveal)],
                checkpointer=kept,
            )
            agent.invoke(user(TASK), config)

    assert "forge__create_issue" not in tool_names(server.requests[0])
    assert "forge__create_issue" in tool_names(server.requests[1])
    assert tool_names(server.requests[2]) == tool_names(server.requests[1])


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_in_a_graph_folds_streams_and_is_resumed_there(is_async: bool) -> None:
    world, thread = World(), {"configurable": {"thread_id": "1"}}
    approval = HumanInTheLoopMiddleware(interrupt_on={"forge__create_issue": True})
    more: dict[str, Any] = {"context": User(), "stream_mode": "updates", "subgraphs": True}

    async def steps(graph: Any, given: Any) -> list[Any]:
        if is_async:
            return [step async for step in graph.astream(given, thread, **more)]
        return list(graph.stream(given, thread, **more))

    async def main() -> tuple[list[Any], list[Any], Any]:
        graph = StateGraph(MessagesState, context_schema=User)
        graph.add_node("agent", agent_of(chat(server), world, approval))
        graph.add_edge(START, "agent")
        graph.add_edge("agent", END)
        compiled = graph.compile(checkpointer=InMemorySaver())
        first = await steps(compiled, user(TASK))
        assert world.calls == []
        resume = Command(resume={"decisions": [{"type": "approve"}]})
        return first, await steps(compiled, resume), compiled.get_state(thread).values

    with ModelServer(*OURS) as server:
        first, _, values = asyncio.run(main())

    (asked_for,) = first[-1][1]["__interrupt__"][0].value["action_requests"]
    assert (asked_for["name"], asked_for["args"]) == ("forge__create_issue", ISSUE)
    assert values["messages"][-1].text == "Done."
    assert world.calls == REPORTED


def test_an_agent_that_is_another_ones_tool_folds_its_own() -> None:
    world = World()
    ask = asked(7, "ask_tracker", request="Report it.")
    with ModelServer(ask, *OURS, DONE) as server:
        tracker = agent_of(chat(server), world)

        def ask_tracker(request: str) -> str:
            """Ask whoever keeps the tracker."""
            return tracker.invoke(user(request), context=User())["messages"][-1].text

        desk = create_agent(
            chat(server), [ask_tracker, *tools_of(World())], middleware=[FoldToolsMiddleware(FOLD)]
        )
        assert desk.invoke(user(TASK))["messages"][-1].text == "Done."

    assert world.calls == REPORTED


def half_way(url: str, kept: str) -> None:
    """Begin a conversation in a process of its own, up to the question for a person."""
    with SqliteSaver.from_conn_string(kept) as saver:
        model = ChatOpenAI(model="any", base_url=url, api_key="key", max_retries=0)
        state = agent_of(model, World(), *APPROVED, checkpointer=saver).invoke(
            user(TASK), THREAD, context=User()
        )
        assert state["__interrupt__"]


THREAD: Any = {"configurable": {"thread_id": "1"}}
APPROVED = (HumanInTheLoopMiddleware(interrupt_on={"forge__create_issue": True}),)


@pytest.mark.timeout(300)  # a process that imports LangChain
@pytest.mark.parametrize("is_async", [False, True])
def test_a_conversation_goes_on_in_another_process(tmp_path: Path, is_async: bool) -> None:
    world, kept = World(), str(tmp_path / "kept.sqlite")
    resume = Command(resume={"decisions": [{"type": "approve"}]})
    program = "import sys, test_langchain; test_langchain.half_way(*sys.argv[1:])"

    async def main() -> Any:
        async with AsyncSqliteSaver.from_conn_string(kept) as saver:
            agent = agent_of(chat(server), world, *APPROVED, checkpointer=saver)
            return await agent.ainvoke(resume, THREAD, context=User())

    with ModelServer(*OURS) as server:
        subprocess.run(
            [sys.executable, "-c", program, server.openai, kept],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )
        if is_async:
            state = asyncio.run(main())
        else:
            with SqliteSaver.from_conn_string(kept) as saver:
                agent = agent_of(chat(server), world, *APPROVED, checkpointer=saver)
                state = agent.invoke(resume, THREAD, context=User())

    assert state["messages"][-1].text == "Done."
    assert world.calls == REPORTED
    assert [name for name, _ in called(server.requests[2])] == ["tool_search", "tool_call"]


def test_traces_tell_of_the_real_tool() -> None:
    class Hears(BaseCallbackHandler):
        heard: ClassVar[list[tuple[str, Any]]] = []

        def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            self.heard.append((serialized["name"], more["inputs"]))

    with ModelServer(*OURS) as server:
        agent_of(chat(server), World()).invoke(user(TASK), {"callbacks": [Hears()]}, context=User())

    assert Hears.heard == REPORTED


def test_a_typed_answer_stays_typed() -> None:
    class Report(BaseModel):
        """What was done."""

        number: int

    world = World()
    with ModelServer(SEARCH, CREATE, asked(3, "Report", number=3)) as server:
        agent = agent_of(claude(server), world, response_format=Report)
        state = agent.invoke(user(TASK), context=User())

    assert state["structured_response"] == Report(number=3)


@pytest.mark.parametrize("is_async", [False, True])
def test_what_another_middleware_takes_away_cannot_be_found(is_async: bool) -> None:
    class Without(AgentMiddleware):
        def _left(self, request: Any) -> Any:
            left = [tool for tool in request.tools if tool.name != HIDDEN_FROM_READER]
            return request.override(tools=left)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(self._left(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(self._left(request))

    world = World()
    direct = asked(4, HIDDEN_FROM_READER, **ISSUE)
    with ModelServer(SEARCH, CREATE, direct, DONE) as server:
        agent = agent_of(chat(server), world, Without())
        if is_async:
            asyncio.run(agent.ainvoke(user(TASK), context=User()))
        else:
            agent.invoke(user(TASK), context=User())

    assert HIDDEN_FROM_READER not in last_results(server.requests[1])[0]
    assert world.calls == []


def test_its_own_search_raises_where_a_provider_has_none_and_ours_does_not() -> None:
    world = World()
    with ModelServer(DONE) as server:
        model = ChatOpenAI(model="any", base_url=server.openai, api_key="key")
        object.__setattr__(model, "_get_ls_params", lambda **_: {"ls_provider": "ollama"})
        own = ProviderToolSearchMiddleware(searchable_tools=["forge__create_issue"])
        with pytest.raises(ValueError, match="server-side tool search"):
            create_agent(model, tools_of(world), middleware=[own]).invoke(user("?"))
        state = agent_of(model, world).invoke(user("?"), context=User())

    assert state["messages"][-1].text == "Done."


def test_its_tools_are_a_source_for_our_own_agent() -> None:
    world = World()
    registry = tool_registry(tools_of(world))

    async def main() -> str:
        agent = Agent(ScriptedModel([]), registry, settings=FOLD)
        result = await agent.call("tool_call", {"name": "forge__create_issue", "arguments": ISSUE})
        return result.text

    assert '"number": 3' in asyncio.run(main())
    assert world.calls == REPORTED


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*OURS, DONE, SEARCH, CREATE, DONE) as server:
        run_page("adapters/langchain.md", model=chat(server), tools=tools_of(world))

    assert world.calls == REPORTED * 2


def test_tools_of_an_mcp_server_fold_as_any_others(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)

    async def main() -> Any:
        entry = {"transport": "stdio", "command": sys.executable, "args": [str(program)]}
        tools = await MultiServerMCPClient({"tracker": entry}).get_tools()
        agent = create_agent(chat(server), tools, middleware=[FoldToolsMiddleware(FOLD)])
        return await agent.ainvoke(user(TASK))

    create = asked(2, "tool_call", name="create_issue", arguments=ISSUE)
    with ModelServer(SEARCH, create, DONE) as server:
        state = asyncio.run(main())

    assert tool_names(server.requests[0]) == BRIDGE
    assert "create_issue(repo: string, title: string)" in last_results(server.requests[1])[0]
    assert last_results(server.requests[2]) == ["acme/website: It is broken"]
    assert state["messages"][-2].name == "create_issue"
