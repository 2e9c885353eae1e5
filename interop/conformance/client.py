"""The gateway before one of the suite's servers, used as the scenario wants it.

    python -m conformance.client URL

The suite starts this with the address of a server. A client of the protocol's library speaks
to `toolfold serve` over its pipes; the gateway, which is what is tried, speaks to the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult, Tool

from conformance.servers import TOOLFOLD

SECONDS = 50
STARTING = 12
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20).read()"


def configured(folder: Path, url: str, scenario: str, context: dict[str, Any]) -> Path:
    """Write the gateway's configuration for a scenario."""
    entry: dict[str, Any] = {"url": url, "type": "http", "prefix": "", "timeout": 30}
    if scenario.startswith("auth/"):
        entry["oauth"] = True
    if "client_id" in context:
        entry["oauth_client_id"] = context["client_id"]
        entry["oauth_client_secret"] = context.get("client_secret", "")
    settings = {
        "mcpServers": {"suite": entry},
        "serve": {"trust": "off", "state_dir": str(folder / "state")},
        "tools": {"tool_search": {"enabled": "off", "cache_dir": "off"}},
    }
    path = folder / "toolfold.yaml"
    path.write_text(json.dumps(settings), "utf-8")
    return path


async def accepted(context: Any, params: Any) -> ElicitResult:
    """Fill a form in with its defaults."""
    schema = getattr(params, "requested_schema", None) or {}
    fields = schema.get("properties", {})
    content = {key: field["default"] for key, field in fields.items() if "default" in field}
    return ElicitResult(action="accept", content=content)


VALUES = {"string": "text", "integer": 3, "number": 5, "boolean": True, "array": [], "object": {}}


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Return something for every parameter that a tool needs."""
    properties = schema.get("properties", {})
    return {
        name: VALUES.get(properties.get(name, {}).get("type"), "text")
        for name in schema.get("required", ())
    }


async def listed(client: Client) -> list[Tool]:
    """Return the tools once the gateway has reached the server; none where there are none."""
    end = time.monotonic() + STARTING
    while True:
        tools = (await client.list_tools()).tools
        if tools or time.monotonic() > end:
            return tools
        await asyncio.sleep(0.3)


async def used(client: Client, context: dict[str, Any]) -> None:
    """List everything, and make the calls that the scenario names, or one of each tool."""
    tools = await listed(client)
    given = context.get("toolCalls") or [
        {"name": tool.name, "arguments": arguments(tool.input_schema)} for tool in tools
    ]
    for call in given:
        try:
            done = await client.call_tool(call["name"], call["arguments"])
            print(call["name"], [getattr(block, "text", block.type) for block in done.content])
        except Exception as error:
            print(call["name"], repr(error))
    for listing, take in (
        (client.list_prompts, lambda found: [client.get_prompt(p.name) for p in found.prompts]),
        (
            client.list_resources,
            lambda found: [client.read_resource(r.uri) for r in found.resources],
        ),
    ):
        try:
            for one in take(await listing()):
                await one
        except Exception as error:
            print(repr(error))


async def main() -> None:
    """Start the gateway and use it."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as folder:
        config = configured(Path(folder), sys.argv[1], scenario, context)
        browser = f"{sys.executable} -c '{BROWSER}' %s"
        gateway = StdioServerParameters(
            command=TOOLFOLD,
            args=["serve", "--config", str(config)],
            env={**os.environ, "BROWSER": browser},
        )
        mode = "legacy" if revision <= "2025-11-25" else "auto"
        async with (
            asyncio.timeout(SECONDS),
            Client(stdio_client(gateway), mode=mode, elicitation_callback=accepted) as client,
        ):
            await used(client, context)


if __name__ == "__main__":
    asyncio.run(main())
