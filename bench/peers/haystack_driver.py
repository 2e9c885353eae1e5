"""Haystack's `SearchableToolset`: BM25 over names and descriptions; what it finds joins the list.

Two layers are timed: `search`, the toolset's index alone, and `bridge`, its `search_tools` as an
agent calls it. A model reads a line of names, and from then on the definitions of these tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haystack.tools import SearchableToolset
from haystack.tools import Tool as HaystackTool
from protocol import Found, Tool, definitions, serve, timed


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Put the tools into a toolset and return its search."""
    by_name = {tool["name"]: tool for tool in tools}
    catalog = [
        HaystackTool(
            name=tool["name"],
            description=tool.get("description") or "",
            parameters=tool.get("parameters") or {"type": "object", "properties": {}},
            function=lambda **_: None,
        )
        for tool in by_name.values()
    ]
    # Its own threshold would show fewer tools than eight as they are.
    toolset = SearchableToolset(catalog, top_k=limit, search_threshold=1)
    toolset.warm_up()
    store: Any = toolset._document_store

    def search(query: str) -> Found:
        if not query.strip():
            return Found([], {"search": 0.0, "bridge": 0.0})
        found, search_ms = timed(lambda: store.bm25_retrieval(query=query, top_k=limit))
        names = [document.meta["tool_name"] for document in found]
        run = toolset.spawn()
        tool: Any = next(iter(run))
        text, bridge_ms = timed(lambda: tool.invoke(tool_keywords=query))
        read = len(text) + definitions([by_name[name] for name in names])
        return Found(names, {"search": search_ms, "bridge": bridge_ms}, read, names)

    return search


if __name__ == "__main__":
    serve(load)
