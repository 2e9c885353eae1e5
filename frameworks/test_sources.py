"""Tools of other frameworks behind our own gateway: a real process, asked by a real MCP client."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

MODULES = {
    "langchain": """
        from langchain_core.tools import tool
        from toolfold.adapters.langchain import tool_registry

        @tool
        def open_issue(repo: str, title: str) -> str:
            "Open an issue in the tracker."
            return f"{repo}: {title}"

        registry = tool_registry([open_issue])
    """,
    "llama_index": """
        from llama_index.core.tools import FunctionTool
        from toolfold.adapters.llama_index import tool_registry

        def send_mail(to: str, subject: str = "Hello") -> str:
            "Send a mail to somebody."
            if "@" not in to:
                raise ValueError("that is no address")
            return f"{subject} to {to}"

        registry = tool_registry([FunctionTool.from_defaults(send_mail)])
    """,
    "fastmcp": """
        from fastmcp import FastMCP
        from toolfold.adapters.fastmcp import server_registry

        server = FastMCP("weather")

        @server.tool
        def forecast(city: str) -> dict[str, str]:
            "Say what the sky will be like."
            return {"city": city, "sky": "clear"}

        registry = server_registry(server)
    """,
}


def test_the_gateway_serves_tools_of_langchain_llama_index_and_fastmcp(tmp_path: Path) -> None:
    lines = ["tools: {tool_search: {enabled: on}}", "functions:"]
    for name, text in MODULES.items():
        body = "\n".join(line.removeprefix(" " * 8) for line in text.splitlines())
        (tmp_path / f"{name}_tools.py").write_text(body)
        lines.append(f"  {name}: ./{name}_tools.py")
    config = tmp_path / "toolfold.yaml"
    config.write_text("\n".join(lines))

    async def main() -> dict[str, Any]:
        arguments = ["-m", "toolfold", "serve", "--config", str(config)]
        env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
        async with Client(StdioTransport(sys.executable, arguments, env=env)) as client:

            async def ask(tool: str, **given: Any) -> Any:
                return await client.call_tool(tool, given, raise_on_error=False)

            return {
                "listed": [tool.name for tool in await client.list_tools()],
                "found": await ask("tool_search", query="open an issue | send a mail | the sky"),
                "issue": await ask(
                    "tool_call",
                    name="langchain__open_issue",
                    arguments={"repo": "acme", "title": "It is broken"},
                ),
                "mail": await ask(
                    "tool_call", name="llama_index__send_mail", arguments={"to": "a@b.c"}
                ),
                "wrong": await ask(
                    "tool_call", name="llama_index__send_mail", arguments={"to": "nobody"}
                ),
                "sky": await ask("tool_call", name="fastmcp__forecast", arguments={"city": "Rome"}),
                "less": await ask("tool_call", name="langchain__open_issue", arguments={}),
            }

    came = asyncio.run(main())

    assert came["listed"] == ["tool_search", "tool_describe", "tool_call"]
    found = _text(came["found"])
    assert "langchain__open_issue(repo: string, title: string)" in found
    assert "llama_index__send_mail(to: string" in found
    assert "fastmcp__forecast(city: string)" in found
    assert _text(came["issue"]) == "acme: It is broken"
    assert _text(came["mail"]) == "Hello to a@b.c"
    assert came["wrong"].is_error
    assert "that is no address" in _text(came["wrong"])
    assert came["sky"].structured_content == {"city": "Rome", "sky": "clear"}
    assert came["less"].is_error
    assert "missing argument" in _text(came["less"])


def _text(result: Any) -> str:
    return "".join(part.text for part in result.content)
