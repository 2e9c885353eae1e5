"""Pydantic AI's local tool search: words that name and description share with the query.

One layer is timed: `search`, as its toolset calls it. A model reads the names as JSON, and from
then on the definitions of these tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from protocol import Found, Tool, definitions, serve, timed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets._tool_search import keywords_search_fn


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Define the tools and return the search."""
    by_name = {tool["name"]: tool for tool in tools}
    defined = [
        ToolDefinition(
            name=name,
            description=tool.get("description"),
            parameters_json_schema=tool.get("parameters") or {"type": "object"},
        )
        for name, tool in by_name.items()
    ]
    context: Any = None

    def search(query: str) -> Found:
        found, ms = timed(lambda: list(keywords_search_fn(context, [query], defined))[:limit])
        answer = json.dumps({"discovered_tools": [{"name": name} for name in found]})
        return Found(
            found, {"search": ms}, len(answer) + definitions([by_name[n] for n in found]), found
        )

    return search


if __name__ == "__main__":
    serve(load)
