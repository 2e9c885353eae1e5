"""Tools and requests of the corpora in one small form that every training step shares.

A tool is a `Tool`: plain text fields and nothing of its schema but names and descriptions of parameters.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPORA = Path(
    os.environ.get("TOOLFOLD_CORPORA", Path(__file__).resolve().parents[2] / "shared" / "corpora")
)
TEST_SETS = (
    "toollinkos",
    "callnavi",
    "seal-tools",
    "stabletoolbench",
    "bfcl",
    "toolalpaca",
    "metatool",
)


@dataclass(frozen=True, slots=True)
class Tool:
    """The words of one tool."""

    name: str
    description: str
    parameters: tuple[tuple[str, str], ...] = ()
    server: str = ""

    def record(self) -> list[Any]:
        """Return the tool as a compact JSON value."""
        return [self.name, self.description, [list(p) for p in self.parameters], self.server]


@dataclass(frozen=True, slots=True)
class Request:
    """A query and the positions of the tools that serve it."""

    query: str
    gold: tuple[int, ...]
    split: str = ""
    category: str = ""


def bucket(text: str) -> int:
    """Assign a text to one of ten buckets, the same everywhere."""
    return hashlib.md5(text.encode()).digest()[0] % 10


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file, gzipped or not."""
    opened = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8")
    )
    with opened as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def schema_parameters(schema: Any, depth: int = 0) -> tuple[tuple[str, str], ...]:
    """List (name, description) of a JSON schema's properties, one nested level included."""
    found: list[tuple[str, str]] = []
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        for name, value in properties.items():
            value = value if isinstance(value, dict) else {}
            text = str(value.get("description") or "")
            options = value.get("enum")
            if isinstance(options, list):
                text += " " + " ".join(str(o) for o in options[:12])
            found.append((str(name), text.strip()))
            if depth < 1:
                found.extend(schema_parameters(value, depth + 1))
                found.extend(schema_parameters(value.get("items"), depth + 1))
    return tuple(found)


def tool_of(row: dict[str, Any]) -> Tool:
    """Read a tool of any of the corpora's row shapes."""
    parameters = row.get("parameters", row.get("params"))
    if isinstance(parameters, dict):
        parsed = schema_parameters(parameters)
    else:
        parsed = tuple((str(p), "") for p in parameters or ())
    return Tool(
        str(row["name"]), str(row.get("description") or ""), parsed, str(row.get("server") or "")
    )


def corpus(name: str, splits: tuple[str, ...]) -> tuple[list[Tool], list[Request]]:
    """Load a corpus with the requests of the splits whose names start with one of `splits`."""
    folder = CORPORA / name
    tools = [tool_of(row) for row in rows(folder / "tools.jsonl")]
    place = {tool.name: i for i, tool in enumerate(tools)}
    requests = [
        Request(
            row["query"],
            tuple(place[g] for g in row["gold"] if g in place),
            row["split"],
            str(row.get("category") or ""),
        )
        for row in rows(folder / "queries.jsonl")
        if row["split"].startswith(splits)
    ]
    return tools, requests


def package_tool(tool: Tool) -> Any:
    """Return a tool as the package knows it; the machine that trains tables has no package."""
    from toolfold import Tool as PackageTool

    properties = {name: {"description": text} for name, text in tool.parameters}
    schema = {"type": "object", "properties": properties}
    return PackageTool(tool.name, tool.description, schema, source=tool.server or None)
