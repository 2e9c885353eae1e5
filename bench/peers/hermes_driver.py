"""Hermes Agent's own tool search, driven as its bridge drives it.

Every tool is registered as Hermes registers the tools of an MCP server: toolset `mcp-SERVER`, name
`mcp__SERVER__TOOL`. A tool of no server keeps its name. Two layers are timed:

    search   `search_catalog` on a catalog built once
    bridge   `handle_function_call("tool_search", ...)`, what a model's call runs: Hermes takes the
             session's tool definitions from its cache, builds the catalog anew, searches, and
             writes the answer as JSON

Names come from the bridge's answer. Hermes' home is a fresh folder, so its settings are defaults.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from protocol import Found, Tool, serve, timed


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Register the tools with Hermes and return its search."""
    # Hermes reads this while it is being imported.
    os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="hermes-home-")
    import model_tools
    from tools import tool_search
    from tools.mcp_tool import mcp_prefixed_tool_name
    from tools.registry import registry

    originals: dict[str, str] = {}
    toolsets: dict[str, None] = {}
    for tool in tools:
        server, name = tool.get("server"), tool["name"]
        if server:
            name = mcp_prefixed_tool_name(server, name.removeprefix(f"{server}."))
        while registry.get_entry(name):
            name += "_"
        toolset = f"mcp-{server or 'catalog'}"
        schema = {
            "name": name,
            "description": tool.get("description") or "",
            "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
        }
        registry.register(name=name, toolset=toolset, schema=schema, handler=_refuse)
        originals[name] = tool["name"]
        toolsets[toolset] = None

    enabled = list(toolsets)
    definitions = model_tools.get_tool_definitions(
        enabled_toolsets=enabled, quiet_mode=True, skip_tool_search_assembly=True
    )
    catalog = tool_search.build_catalog(tool_search.classify_tools(definitions)[1])
    # What is named like one of its core tools stays out of its search, and counts as not found.
    if len(catalog) < 0.99 * len(tools):
        raise RuntimeError(f"Hermes defers {len(catalog)} of {len(tools)} tools")

    def search(query: str) -> Found:
        _, search_ms = timed(lambda: tool_search.search_catalog(catalog, query, limit))
        arguments = {"query": query, "limit": limit}
        text, bridge_ms = timed(
            lambda: model_tools.handle_function_call(
                "tool_search", arguments, enabled_toolsets=enabled
            )
        )
        matches = json.loads(text)["matches"]
        names = [originals[match["name"]] for match in matches]
        # What a match takes is told by `tool_describe`, unless it stands here.
        ready = [originals[match["name"]] for match in matches if "parameters" in match]
        return Found(names, {"search": search_ms, "bridge": bridge_ms}, len(text), ready)

    return search


def _refuse(*_arguments: Any, **_keywords: Any) -> str:
    raise NotImplementedError("the bench searches tools and never calls them")


if __name__ == "__main__":
    serve(load)
