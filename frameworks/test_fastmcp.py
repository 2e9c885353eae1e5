"""FastMCP's own server over HTTP and its own client, with 207 tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.auth import require_scopes
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.middleware import Middleware
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool as ServerTool
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.tests import run_server_async
from openai import AsyncOpenAI
from pages import run_page
from scenario import Conversation, Scenario
from world import (
    CORE,
    FOLD,
    HIDDEN_FROM_READER,
    ISSUE,
    READER,
    REPORTED,
    ModelServer,
    World,
)

from toolfold import EVERYTHING, Scope, Settings, estimate
from toolfold.adapters.fastmcp import FoldTransform, server_registry
from toolfold.runtime import Agent, ScriptedModel
from toolfold.sources.function_modules import FunctionModule, load_functions


def clock() -> str:
    "Say what time it is."
    return "noon"


TOKENS = {
    "admin": {"client_id": "admin", "scopes": ["write"]},
    "reader": {"client_id": "reader", "scopes": ["read"]},
}


class WorldTool(ServerTool):
    world: Any

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(await self.world.arun(self.name, arguments))


def tools_of(world: World, *, guarded: bool = True) -> list[WorldTool]:
    """Return the world's tools; those that a reader may not use ask for the right to write."""
    return [
        WorldTool(
            name=tool.name,
            description=tool.description,
            parameters=dict(tool.parameters),
            world=world,
            auth=require_scopes("write") if guarded and tool not in READER else None,
        )
        for tool in world.tools
    ]


def server_of(world: World, *transforms: Any, auth: Any = None) -> FastMCP:
    tools = tools_of(world, guarded=auth is not None)
    return FastMCP("office", auth=auth, tools=tools, transforms=list(transforms))


def folded() -> FoldTransform:
    return FoldTransform(FOLD, core=CORE)


class TestFastMCP(Scenario):
    """An agent as its clients have one: FastMCP's client, and OpenAI's before the model."""

    is_guided = False
    answers_unknown = False

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
        said: list[Any] = []
        token = "admin" if scope is EVERYTHING else "reader"

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            office = FastMCP("office", auth=StaticTokenVerifier(TOKENS), tools=list(tools))
            if settings is not None:
                office.add_transform(FoldTransform(settings, core=CORE))
            said.append({"role": "user", "content": text})
            async with (
                run_server_async(office) as url,
                Client(url, auth=token) as client,
                AsyncOpenAI(base_url=server.openai, api_key="key", max_retries=0) as openai,
            ):
                while True:
                    listed = [function_of(tool) for tool in await client.list_tools()]
                    reply = await reply_of(openai, said, listed, pieces)
                    said.append(reply.to_dict())
                    if not reply.tool_calls:
                        return reply.content or ""
                    said.extend([await result_of(client, each) for each in reply.tool_calls])

        return ask


def function_of(tool: Any) -> Any:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


async def reply_of(openai: Any, said: list[Any], tools: list[Any], pieces: Any) -> Any:
    given = {"model": "any", "messages": said, "tools": tools}
    if pieces is None:
        return (await openai.chat.completions.create(**given)).choices[0].message
    async with openai.chat.completions.stream(**given) as stream:
        async for event in stream:
            if event.type == "content.delta":
                pieces.append(event.delta)
        return (await stream.get_final_completion()).choices[0].message


async def result_of(client: Client[Any], call: Any) -> Any:
    arguments = json.loads(call.function.arguments)
    content = await text(client, call.function.name, **arguments)
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def run(
    server: FastMCP, *parts: tuple[str | None, Callable[[Client[Any]], Awaitable[Any]]]
) -> list:
    """Serve over HTTP, and let clients with their tokens do something, all at once."""

    async def main() -> list[Any]:
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(run_server_async(server))
            clients = [
                await stack.enter_async_context(Client(url, auth=token)) for token, _ in parts
            ]
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(part(client))  # type: ignore[arg-type]
                    for client, (_, part) in zip(clients, parts, strict=True)
                ]
            return [task.result() for task in tasks]

    return asyncio.run(main())


async def text(client: Client[Any], tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments, raise_on_error=False)
    return "".join(part.text for part in result.content)


def test_a_mistake_is_an_error_with_the_next_step() -> None:
    async def talk(client: Client[Any]) -> tuple[Any, str, str]:
        bad = await client.call_tool(
            "tool_call", {"name": "forge__create_issue", "arguments": {}}, raise_on_error=False
        )
        near = await text(client, "tool_call", name="forge__create_isue", arguments=ISSUE)
        none = await text(client, "tool_search", query="perform an exorcism")
        return bad, near, none

    world = World()
    ((bad, near, none),) = run(server_of(world, folded()), (None, talk))

    assert bad.is_error
    assert "forge__create_issue(repo: string" in bad.content[0].text
    assert "Did you mean forge__create_issue" in near
    assert "No tool matches" in none
    assert world.calls == []


def test_two_clients_at_once_each_find_what_they_may_see() -> None:
    world = World()

    async def talk(client: Client[Any]) -> list[str]:
        return [
            await text(client, "tool_search", query="open an issue in the tracker"),
            await text(client, "tool_describe", name=HIDDEN_FROM_READER),
            await text(client, "tool_call", name=HIDDEN_FROM_READER, arguments=ISSUE),
        ]

    server = server_of(world, folded(), auth=StaticTokenVerifier(TOKENS))
    admin, reader = run(server, ("admin", talk), ("reader", talk))

    assert HIDDEN_FROM_READER in admin[0]
    assert HIDDEN_FROM_READER not in reader[0]
    assert "forge__list_issues" in reader[0]
    for answer in reader[1:]:
        assert f'"{HIDDEN_FROM_READER}" is not available in this session' in answer
    assert world.calls == REPORTED


def test_a_client_may_not_call_by_name_what_it_may_not_see() -> None:
    async def talk(client: Client[Any]) -> str:
        with pytest.raises(ToolError) as caught:
            await client.call_tool(HIDDEN_FROM_READER, ISSUE)
        return str(caught.value)

    world = World()
    run(server_of(world, folded(), auth=StaticTokenVerifier(TOKENS)), ("reader", talk))

    assert world.calls == []


def test_middleware_hears_of_the_real_tool() -> None:
    heard: list[str] = []

    class Hears(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            heard.append(context.message.name)
            return await call_next(context)

    server = server_of(World(), folded())
    server.add_middleware(Hears())
    run(server, (None, lambda c: text(c, "tool_call", name="forge__create_issue", arguments=ISSUE)))

    assert heard == ["tool_call", "forge__create_issue"]


def test_what_is_hidden_by_another_transform_cannot_be_found() -> None:
    server = server_of(World(), folded())
    server.disable(names={"forge__create_issue"}, components={"tool"})
    ((found),) = run(server, (None, lambda c: text(c, "tool_search", query="open an issue")))

    assert "forge__create_issue" not in found


def test_a_tools_progress_reaches_the_client_through_the_bridge() -> None:
    server = FastMCP("bakery", transforms=[FoldTransform(FOLD)])

    @server.tool
    async def bake(loaves: int, ctx: Context) -> dict[str, int]:
        "Bake some bread."
        await ctx.report_progress(1, 2, "half way")
        return {"baked": loaves}

    heard: list[Any] = []

    async def talk(client: Client[Any]) -> Any:
        async def hears(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        given = {"name": "bake", "arguments": {"loaves": 3}}
        return await client.call_tool("tool_call", given, progress_handler=hears)

    ((result),) = run(server, (None, talk))

    assert heard == [(1, 2, "half way")]
    assert result.structured_content == {"baked": 3}


def test_below_the_gate_nothing_changes() -> None:
    async def listed(client: Client[Any]) -> list[Any]:
        return [tool.model_dump() for tool in await client.list_tools()]

    plain = FastMCP("few")
    gated = FastMCP("few", transforms=[FoldTransform()])
    for server in (plain, gated):
        server.tool(clock)

    assert run(plain, (None, listed)) == run(gated, (None, listed))


def test_two_hundred_tools_cost_a_fraction_of_its_own_search_too() -> None:
    async def tokens(client: Client[Any]) -> int:
        tools = [t.model_dump(exclude_none=True, by_alias=True) for t in await client.list_tools()]
        return estimate(str(tools))

    async def found(client: Client[Any]) -> int:
        name = next(t.name for t in await client.list_tools() if "search" in t.name)
        return estimate(await text(client, name, query="open an issue in the tracker"))

    plain, ours, theirs = (
        run(server_of(World(), *transforms), (None, tokens))[0]
        for transforms in ([], [FoldTransform(FOLD)], [BM25SearchTransform()])
    )
    assert plain > 20_000
    assert ours < plain / 40
    ours, theirs = (
        run(server_of(World(), transform), (None, found))[0]
        for transform in (FoldTransform(Settings(enabled="on")), BM25SearchTransform())
    )
    assert ours < theirs / 2


def test_a_server_object_is_a_source_for_our_own_agent() -> None:
    world = World()
    registry = server_registry(server_of(world))

    async def main() -> str:
        agent = Agent(ScriptedModel([]), registry, settings=FOLD)
        result = await agent.call("tool_call", {"name": "forge__create_issue", "arguments": ISSUE})
        return result.text

    assert '"number": 3' in asyncio.run(main())
    assert world.calls == REPORTED


def test_the_guide_runs() -> None:
    world = World()
    run_page("adapters/fastmcp.md", mcp=server_of(world), FastMCP=FastMCP)

    assert world.calls == REPORTED


def test_a_module_of_the_gateways_functions_may_hold_a_server(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from fastmcp import FastMCP\n"
        "from toolfold.adapters.fastmcp import server_registry\n"
        "server = FastMCP('clock')\n"
        "@server.tool\n"
        "def now() -> str:\n"
        "    'Say what time it is.'\n"
        "    return 'noon'\n"
        "registry = server_registry(server)\n"
    )
    source = load_functions(FunctionModule("office", "./tools.py", folder=tmp_path))

    async def main() -> str:
        agent = Agent(ScriptedModel([]), source, settings=FOLD)
        return (await agent.call("tool_call", {"name": "office__now", "arguments": {}})).text

    assert asyncio.run(main()) == "noon"
