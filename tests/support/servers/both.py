"""A server of both families of revisions, each tool of which can ask in one way alone.

    python both.py [stdio|http]

Over HTTP it prints its address. `asks_midway` asks in the middle of a call, as most servers
do; `asks_between` answers with its question. `revision` tells what it is spoken to in.
"""

from __future__ import annotations

import socket
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")

import anyio  # noqa: E402
import mcp_types as t  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402

SCHEMA = {"type": "object", "properties": {"v": {"type": "string"}}}


def said(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(type="text", text=text)])


async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
    names = ("asks_midway", "asks_between", "revision")
    tools = [t.Tool(name=n, description=n, input_schema={"type": "object"}) for n in names]
    return t.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, p: Any) -> Any:
    if p.name == "revision":
        return said(ctx.protocol_version)
    if p.name == "asks_midway":
        answer = await ctx.session.elicit_form("midway?", SCHEMA, related_request_id=ctx.request_id)
        return said(f"midway {answer.content}")
    if p.input_responses is None:
        params = t.ElicitRequestFormParams(message="between?", requested_schema=SCHEMA)
        return t.InputRequiredResult(input_requests={"q": t.ElicitRequest(params=params)})
    return said(f"between {p.input_responses['q'].content}")


server = Server("both", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def over_http() -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    app = server.streamable_http_app()
    config = uvicorn.Config(app, log_level="critical")
    await uvicorn.Server(config).serve(sockets=[listening])


anyio.run(over_http if "http" in sys.argv else over_stdio)
