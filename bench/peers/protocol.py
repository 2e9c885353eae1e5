"""The JSON-lines conversation between the bench and a peer's driver.

The first line in is `{"tools": PATH, "limit": K}`; the answer is `{"ready": N, "build_ms": T}`.
Every later line in is `{"queries": [...]}`; the answer is `{"names": [[...]], "characters": [...],
"ready": [[...]], "ms_LAYER": [...]}` with one entry a query, in order. Times are taken inside the
driver, so pipes and JSON are not in them. Only the standard library is imported here: a peer's
environment has nothing of ours.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

__all__ = ["Found", "definitions", "document", "serve", "timed"]

Tool = dict[str, Any]


class Found(NamedTuple):
    """What one query gave."""

    names: list[str]
    ms: dict[str, float]
    """Milliseconds by layer: `search`, `bridge`, ..."""
    characters: int = 0
    """How long the answer is that a model reads; 0 where there is none."""
    ready: Sequence[str] = ()
    """Those of the names that a model has then read the parameters of, too."""


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `work` returns and the milliseconds it took."""
    start = perf_counter()
    value = work()
    return value, (perf_counter() - start) * 1000


def document(tool: Tool) -> str:
    """Return the text to index of a tool, for libraries that bring no idea of a tool."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.:/-]+", " ", tool["name"])
    parameters: dict[str, Any] = tool.get("parameters") or {}
    properties: dict[str, Any] = parameters.get("properties") or {}
    parts = [name, tool.get("description") or ""]
    for key, schema in properties.items():
        parts.append(key.replace("_", " "))
        # A schema may also be plain `true`.
        if hasattr(schema, "get"):
            parts.append(str(schema.get("description") or ""))
    return " ".join(parts)


def definitions(tools: Sequence[Tool]) -> int:
    """Return how long the definitions of tools are, as a model's list has them."""
    keys = ("name", "description", "parameters")
    listed = [
        {"type": "function", "function": {key: tool.get(key) for key in keys}} for tool in tools
    ]
    return len(json.dumps(listed, ensure_ascii=False, separators=(",", ":")))


def serve(load: Callable[[Sequence[Tool], int], Callable[[str], Found]]) -> None:
    """Answer requests until standard input ends.

    Args:
        load: Takes the tools and the limit, returns the function that answers one query.
    """
    # A library that prints must not break the conversation.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(value: dict[str, Any]) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    request = json.loads(sys.stdin.readline())
    with open(request["tools"], encoding="utf-8") as lines:
        tools = [json.loads(line) for line in lines]
    search, build_ms = timed(lambda: load(tools, request["limit"]))
    search("warm up")
    answer({"ready": len(tools), "build_ms": build_ms})
    for line in sys.stdin:
        found = [search(query) for query in json.loads(line)["queries"]]
        layers = list(found[0].ms) if found else []
        ms = {f"ms_{layer}": [each.ms[layer] for each in found] for layer in layers}
        characters = [each.characters for each in found]
        names, ready = [each.names for each in found], [list(each.ready) for each in found]
        answer({"names": names, "characters": characters, "ready": ready, **ms})
