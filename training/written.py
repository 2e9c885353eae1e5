"""Tools with requests that were written for training, and which of them train what."""

from __future__ import annotations

from pathlib import Path

import dataset
from catalog import Tool, rows

REQUESTS = Path(__file__).parent / "requests"


def written() -> tuple[list[Tool], list[str], list[int]]:
    """Return the tools that were written, their requests, and whose each request is.

    `requests` are people's words, `asked` what a model would send to a search tool.
    """
    tools: list[Tool] = []
    queries: list[str] = []
    gold: list[int] = []
    for path in sorted(REQUESTS.glob("*.jsonl")):
        for row in rows(path):
            parameters = tuple((str(name), "") for name in row["parameters"])
            tools.append(Tool(row["name"], row["description"], parameters, row.get("server") or ""))
            own = [*row["requests"], *row.get("asked", ())]
            queries += own
            gold += [len(tools) - 1] * len(own)
    return tools, queries, gold


def part(tool: Tool) -> int:
    """Return a written tool's bucket: 0 is dev, 1 and 2 fit the scorer of the fold models."""
    return dataset.bucket("written " + tool.name)


def is_kept_out(tool: Tool, fold: bool) -> bool:
    """Tell whether a written tool is not for training."""
    return part(tool) < (3 if fold else 1)
