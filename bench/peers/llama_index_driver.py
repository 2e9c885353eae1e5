"""LlamaIndex's retriever over tools, with its BM25: it needs no model of its own.

One layer is timed: `search`, the retriever as an agent asks it. What it finds is given to the
model as tools, with their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llama_index.core.objects import ObjectRetriever, SimpleToolNodeMapping
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.retrievers.bm25 import BM25Retriever
from protocol import Found, Tool, definitions, serve, timed


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Index the tools and return the search."""
    by_name = {tool["name"]: tool for tool in tools}
    made = [
        FunctionTool(
            lambda: None,
            metadata=ToolMetadata(name=name, description=tool.get("description") or "-"),
        )
        for name, tool in by_name.items()
    ]
    mapping = SimpleToolNodeMapping.from_objects(made)
    ranked = BM25Retriever.from_defaults(
        nodes=mapping.to_nodes(made), similarity_top_k=min(limit, len(made))
    )
    retriever = ObjectRetriever(ranked, mapping)

    def search(query: str) -> Found:
        found, ms = timed(lambda: retriever.retrieve(query))
        names = [tool.metadata.name or "" for tool in found]
        return Found(names, {"search": ms}, definitions([by_name[name] for name in names]), names)

    return search


if __name__ == "__main__":
    serve(load)
