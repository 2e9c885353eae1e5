"""What clients of several replicas want of one server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from toolfold.sources.mcp.mcp_source import McpSource
from toolfold.sources.mcp.server import Server

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(asked["method"] + "\\n")
    if "id" in asked:
        can = {"resources": {"subscribe": True}}
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_a_resource_is_watched_until_nobody_wants_it_at_any_replica(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    server = Server(
        "s", command=sys.executable, args=("-I", "-S", "-c", SERVER, str(asked)), handshake=True
    )

    def count(method: str) -> int:
        return asked.read_text("utf-8").split().count(method)

    async def main() -> None:
        async with McpSource(server) as source:
            await source.wishes.subscribe("a://x")
            await source.wishes.subscribe("a://x", "another replica")
            assert count("resources/subscribe") == 1
            await source.wishes.unsubscribe("a://x")
            await source.wishes.unsubscribe("a://x")
            assert count("resources/unsubscribe") == 0
            await source.wishes.unsubscribe("a://x", "another replica")
            assert count("resources/unsubscribe") == 1

    asyncio.run(asyncio.wait_for(main(), 30))
