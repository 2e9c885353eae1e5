"""FastMCP's `BM25SearchTransform` on a server of its own, with a warm index.

Three layers are timed, the inner ones on the same objects the outer one uses:

    index    the query on the built index, nothing else
    search   the transform's search over the tools at hand: it digests their text on every call to
             see whether the index is stale, then asks the index
    bridge   the server's `call_tool("search_tools", ...)`, what a client's call runs: it lists the
             server's tools, searches, and serializes the hits; no transport, one event loop

Names come from the bridge's answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool as ServerTool
from protocol import Found, Tool, serve, timed

_SCHEMAS = {"inputSchema", "input_schema", "parameters"}
"""The keys of which one holds what a tool takes."""


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Put the tools on a server and return its search."""
    transform = BM25SearchTransform(max_results=limit)
    server = FastMCP("bench")
    served = [
        ServerTool(
            name=tool["name"],
            description=tool.get("description") or "",
            parameters=tool.get("parameters") or {"type": "object", "properties": {}},
        )
        for tool in tools
    ]
    for tool in served:
        server.add_tool(tool)
    server.add_transform(transform)
    loop = asyncio.new_event_loop()

    def run(work: Callable[[], Any]) -> tuple[Any, float]:
        return timed(lambda: loop.run_until_complete(work()))

    def search(query: str) -> Found:
        answer, bridge_ms = run(lambda: server.call_tool("search_tools", {"query": query}))
        _, search_ms = run(lambda: transform._search(served, query))
        _, index_ms = timed(lambda: transform._index.query(query, limit))
        names = [hit["name"] for hit in answer.structured_content["result"]]
        text = "".join(part.text for part in answer.content)
        times = {"index": index_ms, "search": search_ms, "bridge": bridge_ms}
        ready = [
            hit["name"] for hit in answer.structured_content["result"] if _SCHEMAS & hit.keys()
        ]
        return Found(names, times, len(text), ready)

    return search


if __name__ == "__main__":
    serve(load)
