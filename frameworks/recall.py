"""The frameworks' own tool searches and ours, on the same requests: recall at five hits.

    python frameworks/recall.py .adapters                       # a table of all that are installed
    python frameworks/recall.py langchain azure-mcp FOLDER      # one of them, as a line of JSON

Each search runs in its framework's environment, as the framework calls it. A request's recall
is the share of its tools among the first five names.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HITS = 5
CORPORA = ("azure-mcp", "azure-asked")
Tools = Sequence[dict[str, Any]]
Search = Callable[[str], Sequence[str]]


def toolfold(tools: Tools) -> Search:
    """Our search, as every adapter asks it."""
    from toolfold.adapters._folding import ranked_names

    return lambda query: ranked_names(tools, query, limit=HITS)


def pydantic_ai(tools: Tools) -> Search:
    """Pydantic AI's local search: words that name and description share with the query."""
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets._tool_search import keywords_search_fn

    defined = [
        ToolDefinition(
            name=tool["name"],
            description=tool.get("description"),
            parameters_json_schema=tool.get("parameters") or {"type": "object"},
        )
        for tool in tools
    ]
    return lambda query: list(keywords_search_fn(None, [query], defined))  # type: ignore[arg-type]


def fastmcp(tools: Tools) -> Search:
    """FastMCP's BM25 transform."""
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools.base import Tool

    served = [
        Tool(
            name=tool["name"],
            description=tool.get("description") or "",
            parameters=tool.get("parameters") or {"type": "object"},
        )
        for tool in tools
    ]
    transform = BM25SearchTransform(max_results=HITS)
    return lambda query: [tool.name for tool in asyncio.run(transform._search(served, query))]


def haystack(tools: Tools) -> Search:
    """Haystack's `SearchableToolset`, BM25 over names and descriptions."""
    from haystack.tools import SearchableToolset, Tool

    catalog = [
        Tool(
            name=tool["name"],
            description=tool.get("description") or "",
            parameters=tool.get("parameters") or {"type": "object", "properties": {}},
            function=lambda **_: None,
        )
        for tool in tools
    ]
    toolset = SearchableToolset(catalog, top_k=HITS)
    toolset.warm_up()
    store: Any = toolset._document_store
    return lambda query: [
        found.meta["tool_name"] for found in store.bm25_retrieval(query=query, top_k=HITS)
    ]


def llama_index(tools: Tools) -> Search:
    """LlamaIndex's retriever over tools, with its BM25: it needs no model of its own."""
    from llama_index.core.objects import ObjectRetriever, SimpleToolNodeMapping
    from llama_index.core.tools import FunctionTool, ToolMetadata
    from llama_index.retrievers.bm25 import BM25Retriever

    made = [
        FunctionTool(
            lambda: None,
            metadata=ToolMetadata(name=t["name"], description=t.get("description") or "-"),
        )
        for t in tools
    ]
    mapping = SimpleToolNodeMapping.from_objects(made)
    ranked = BM25Retriever.from_defaults(nodes=mapping.to_nodes(made), similarity_top_k=HITS)
    retriever = ObjectRetriever(ranked, mapping)
    return lambda query: [tool.metadata.name or "" for tool in retriever.retrieve(query)]


SEARCHES = {
    "toolfold": toolfold,
    "pydantic_ai": pydantic_ai,
    "fastmcp": fastmcp,
    "haystack": haystack,
    "llama_index": llama_index,
}


def measured(name: str, folder: Path) -> dict[str, Any]:
    """Return how well a search does on a corpus."""
    search = SEARCHES[name](_rows(folder / "tools.jsonl"))
    queries = [row for row in _rows(folder / "queries.jsonl") if row["gold"]]
    shares = []
    for row in queries:
        found = set(list(search(row["query"]))[:HITS])
        shares.append(len(found & set(row["gold"])) / len(row["gold"]))
    return {"recall@5": sum(shares) / len(shares), "queries": len(shares)}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def table(environments: Path, corpora: Path) -> None:
    """Print the table."""
    print(f"| search | {' | '.join(f'{c}: recall@5' for c in CORPORA)} |")
    print(f"|---|{'---|' * len(CORPORA)}")
    for name in SEARCHES:
        home = environments / ("pydantic_ai" if name == "toolfold" else name) / "bin" / "python"
        if not home.exists():
            print(f"{name}: not installed, `make adapter-{name}` does it", file=sys.stderr)
            continue
        cells = []
        for corpus in CORPORA:
            command = [str(home), __file__, name, corpus, str(corpora / corpus)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                cells.append("not installed")
                print(ran.stderr.strip().splitlines()[-1:], file=sys.stderr)
            else:
                cells.append(f"{json.loads(ran.stdout.splitlines()[-1])['recall@5']:.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Print the table, or one search's figures."""
    if len(arguments) == 3:
        print(json.dumps(measured(arguments[0], Path(arguments[2]))))
        return
    root = Path(__file__).resolve().parents[1]
    named = os.environ.get("TOOLFOLD_CORPORA")
    corpora = Path(named) if named else root.parent / "shared" / "corpora"
    if not all((corpora / corpus).is_dir() for corpus in CORPORA):
        print("skipped: set TOOLFOLD_CORPORA to the folder that holds azure-mcp/ and azure-asked/")
        return
    table(Path(arguments[0] if arguments else root / ".adapters"), corpora)


if __name__ == "__main__":
    main(sys.argv[1:])
