"""A small real MCP server that can misbehave on demand.

    python odd.py [stdio|http PORT] [FLAG…]

Flags: `rubbish` prints what is no message first, `hang` never answers, `die` ends at once,
`old` speaks only the revision with a handshake, `many=N` lists N tools in pages,
`changing` changes its tools every `TICK` seconds, `plain` is quiet and quick.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

warnings.filterwarnings("ignore")

import anyio  # noqa: E402
import mcp_types as t  # noqa: E402
from expected import RICH  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from mcp.server.lowlevel.server import NotificationOptions  # noqa: E402
from mcp.server.subscriptions import (  # noqa: E402
    InMemorySubscriptionBus,
    ListenHandler,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError  # noqa: E402

FLAGS = set(sys.argv[1:])
MANY = next((int(f[5:]) for f in FLAGS if f.startswith("many=")), 0)
TICK = float(os.environ.get("TICK", "0.05"))
TEXT = {"type": "object", "properties": {"x": {"type": "string", "description": "A text."}}}
HINTS = {
    "echo": {"readOnlyHint": True},
    "die_once": {"idempotentHint": True},
    "wipe": {"destructiveHint": True},
}
ABOUT = {
    "echo": os.environ.get("ABOUT", "Say a text back."),
    "slow": "Take a while.",
    "elicit": "Ask the user for a value.",
    "progress": "Report progress five times.",
    "logs": "Write log messages.",
    "rich": "Return every kind of content.",
    "pid": "Tell the process id.",
    "roots": "List the client's folders.",
    "sample": "Ask the client's model.",
    "flood": "Send many notifications.",
    "die": "End the process in the middle of the call.",
    "die_once": "End the process in the middle of the first call.",
    "child": "Start a process that outlives the server.",
    "wipe": "Destroy everything.",
    "grow": "Add a tool to the list.",
    "fail": "Answer with an error of the protocol.",
    "env": "Tell an environment variable.",
}
extra: list[str] = []
bus = InMemorySubscriptionBus()


def tool(name: str) -> t.Tool:
    return t.Tool.model_validate(
        {
            "name": name,
            "title": name.title(),
            "description": ABOUT.get(name, f"The tool {name}."),
            "inputSchema": TEXT,
            **({"annotations": HINTS[name]} if name in HINTS else {}),
            **({"outputSchema": {"type": "object"}} if name == "rich" else {}),
        }
    )


async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
    if not MANY:
        return t.ListToolsResult(tools=[tool(n) for n in (*ABOUT, *extra)])
    start = int((params and params.cursor) or 0)
    end = min(start + 500, MANY)
    return t.ListToolsResult(
        tools=[tool(f"tool_{i}") for i in range(start, end)],
        next_cursor=str(end) if end < MANY else None,
    )


def said(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)])


async def elicit(ctx: Any, p: Any, x: str) -> Any:
    schema = {"type": "object", "properties": {"v": {"type": "string"}}}
    if ctx.protocol_version == "2026-07-28":
        if p.input_responses is None:
            asked = t.ElicitRequest(
                params=t.ElicitRequestFormParams(message=f"ask:{x}", requested_schema=schema)
            )
            return t.InputRequiredResult(input_requests={"q": asked}, request_state="st-" + x)
        answer = p.input_responses["q"]
        return said(f"{x}->{answer.action}:{json.dumps(answer.content)} {p.request_state}")
    answer = await ctx.session.elicit_form(f"ask:{x}", schema, related_request_id=ctx.request_id)
    return said(f"{x}->{answer.action}:{json.dumps(answer.content)}")


async def progress(ctx: Any, p: Any, x: str) -> Any:
    for i in range(5):
        await ctx.session.report_progress(i, 5, f"{x}{i}")
    return said(x)


async def logs(ctx: Any, p: Any, x: str) -> Any:
    for level in ("debug", "error"):
        await ctx.session.send_log_message(
            level, {"who": x, "level": level}, related_request_id=ctx.request_id
        )
    return said(x)


async def slow(ctx: Any, p: Any, x: str) -> Any:
    mark = os.environ.get("MARK")
    try:
        if mark:
            write(mark, f"started {x}")
        await anyio.sleep(float(x or 30))
    except BaseException:
        if mark:
            write(mark, f"cancelled {x}")
        raise
    return said("slept")


def write(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


async def roots(ctx: Any, p: Any, x: str) -> Any:
    found = await ctx.session.list_roots()
    return said(json.dumps([str(root.uri) for root in found.roots]))


async def sample(ctx: Any, p: Any, x: str) -> Any:
    asked = [t.SamplingMessage(role="user", content=t.TextContent(text=x))]
    answer = await ctx.session.create_message(
        asked, max_tokens=5, related_request_id=ctx.request_id
    )
    return said(f"{x}->{answer.content.text}")


async def flood(ctx: Any, p: Any, x: str) -> Any:
    for i in range(int(x)):
        await ctx.session.send_log_message("info", {"n": i})
        if i % 10 == 0:
            await ctx.session.send_tool_list_changed()
    return said("flooded")


async def die(ctx: Any, p: Any, x: str) -> Any:
    os.kill(os.getpid(), 9)


async def die_once(ctx: Any, p: Any, x: str) -> Any:
    if not os.path.exists(x):  # noqa: ASYNC240
        write(x, "died")
        os.kill(os.getpid(), 9)
    return said(f"alive {os.getpid()}")


async def child(ctx: Any, p: Any, x: str) -> Any:
    return said(str(subprocess.Popen(["sleep", "600"]).pid))  # noqa: ASYNC220


async def grow(ctx: Any, p: Any, x: str) -> Any:
    extra.append(x)
    await changed(ctx)
    return said(x)


async def changed(ctx: Any) -> None:
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()


async def fail(ctx: Any, p: Any, x: str) -> Any:
    raise MCPError(code=-32050, message=x, data={"why": x})


SPECIAL: dict[str, Callable[[Any, Any, str], Awaitable[Any]]] = {
    "elicit": elicit, "progress": progress, "logs": logs, "slow": slow, "roots": roots,
    "sample": sample, "flood": flood, "die": die, "die_once": die_once, "child": child,
    "grow": grow, "fail": fail,
}  # fmt: skip


async def call_tool(ctx: Any, p: Any) -> Any:
    x = str((p.arguments or {}).get("x", ""))
    if p.name in SPECIAL:
        return await SPECIAL[p.name](ctx, p, x)
    if p.name == "pid":
        return said(str(os.getpid()))
    if p.name == "env":
        return said(os.environ.get(x, "(unset)"))
    return said(f"{os.environ.get('WHO', '')}{x}")


async def list_resources(ctx: Any, p: Any) -> t.ListResourcesResult:
    who = os.environ.get("WHO", "odd")
    return t.ListResourcesResult(
        resources=[
            t.Resource(uri="odd:///shared", name="shared"),
            t.Resource(uri=f"odd:///{who}", name=who),
        ]
    )


async def list_templates(ctx: Any, p: Any) -> t.ListResourceTemplatesResult:
    who = os.environ.get("WHO", "odd")
    return t.ListResourceTemplatesResult(
        resource_templates=[t.ResourceTemplate(uri_template=f"{who}:///{{name}}/x", name="each")]
    )


async def read_resource(ctx: Any, p: Any) -> t.ReadResourceResult:
    text = f"{os.environ.get('WHO', 'odd')} has {p.uri}"
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=p.uri, text=text)])


subscribed: set[str] = set()


async def subscribe(ctx: Any, p: Any) -> t.EmptyResult:
    subscribed.add(str(p.uri))
    await ctx.session.send_resource_updated(str(p.uri))
    return t.EmptyResult()


async def unsubscribe(ctx: Any, p: Any) -> t.EmptyResult:
    subscribed.discard(str(p.uri))
    return t.EmptyResult()


async def list_prompts(ctx: Any, p: Any) -> t.ListPromptsResult:
    argument = t.PromptArgument(name="who", required=True)
    return t.ListPromptsResult(
        prompts=[t.Prompt(name="greet", description="Greet somebody.", arguments=[argument])]
    )


async def get_prompt(ctx: Any, p: Any) -> t.GetPromptResult:
    text = t.TextContent(text=f"hello {(p.arguments or {}).get('who')}")
    return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=text)])


async def complete(ctx: Any, p: Any) -> t.CompleteResult:
    name = getattr(p.ref, "name", None) or getattr(p.ref, "uri", None)
    return t.CompleteResult(completion=t.Completion(values=[f"{name}:{p.argument.value}!"]))


async def set_level(ctx: Any, p: Any) -> t.EmptyResult:
    return t.EmptyResult()


class Old(Server[Any]):
    """A server that says its lists may change."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(True, True, True))


server: Server[Any] = Old(
    "odd",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
    on_subscriptions_listen=ListenHandler(bus),
    get_tool_input_schema=lambda name: None,
)


async def middleware(ctx: Any, call_next: Any) -> Any:
    if "old" in FLAGS and ctx.method == "server/discover":
        raise MCPError(code=-32601, message="Method not found")
    if ctx.method == "tools/call" and (ctx.params or {}).get("name") == "rich":
        rich = dict(RICH)
        return {"resultType": "complete", **rich} if ctx.protocol_version > "2026" else rich
    return await call_next(ctx)


server.middleware.append(middleware)


async def change() -> None:
    while True:
        await anyio.sleep(TICK)
        extra[:] = [f"now_{time.time_ns()}"]
        await bus.publish(ToolsListChanged())


async def over_stdio() -> None:
    from mcp.server.runner import serve_loop
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write), anyio.create_task_group() as group:
        if "changing" in FLAGS:
            group.start_soon(change)
        if "old" in FLAGS:
            options = server.create_initialization_options()
            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


def main() -> None:
    if "die" in FLAGS:
        sys.stderr.write("I cannot go on\n")
        sys.exit(3)
    if "rubbish" in FLAGS:
        os.write(1, b'hello\n{"jsonrpc":"2.0","id":999,"result":{}}\n{"a":1}\n\n\xff\xfe\n' * 50)
    if "hang" in FLAGS:
        time.sleep(3600)
    if len(sys.argv) > 2 and sys.argv[1] == "http":
        import uvicorn

        uvicorn.run(server.streamable_http_app(), port=int(sys.argv[2]), log_level="error")
    else:
        anyio.run(over_stdio)


main()
