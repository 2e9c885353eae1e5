"""A memory in a few numbers: what it holds, how old it is, how much it counts and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

from toolfold.memory._evidence import NOTHING, Weight
from toolfold.memory._weight import LEAST
from toolfold.memory.memory import Memory
from toolfold.memory.records import MemoryRecord
from toolfold.search.memory import SearchedTools
from toolfold.tool import Tool

__all__ = ["MemorySummary", "RememberedTool", "summary_of"]


class RememberedTool(NamedTuple):
    """What is kept of one tool."""

    name: str
    forms: int
    """How many forms of it, by digest: what it said then."""
    requests: int
    worked: int
    failed: int
    last: float
    """When it was last called, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """What a memory holds."""

    requests: int
    tools: tuple[RememberedTool, ...]
    """The one that was called most first."""
    principals: int
    worked: int
    failed: int
    oldest: float | None
    newest: float | None
    weight: float
    """What it weighs in searches over all the tools that it knows."""
    why: str


class _Key(NamedTuple):
    name: str
    digest: str


class _Known:
    """The tools that a memory knows, as a catalog."""

    def __init__(self, keys: Iterable[_Key]) -> None:
        self._keys = {key.name: key for key in keys}
        self.tools = cast("tuple[Tool, ...]", tuple(self._keys.values()))
        self.fingerprint = "remembered"

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> Tool:
        return cast("Tool", self._keys[name])


def summary_of(
    memory: Memory, records: Iterable[MemoryRecord], principal: str | None = None
) -> MemorySummary:
    """Return what a memory holds.

    Args:
        memory: The memory.
        records: What of it to look at.
        principal: Whose searches count in its weight; None is everybody's.

    Raises:
        StoreError: The file cannot be read.
    """
    kept = list(records)
    by_name: dict[str, list[MemoryRecord]] = {}
    for record in kept:
        by_name.setdefault(record.tool, []).append(record)
    tools = [
        RememberedTool(
            name,
            len({record.digest for record in own}),
            len({(record.principal, record.request) for record in own}),
            sum(record.worked for record in own),
            sum(record.failed for record in own),
            max(record.at for record in own),
        )
        for name, own in by_name.items()
    ]
    newest = {record.tool: record for record in sorted(kept, key=lambda record: record.at)}
    known: SearchedTools = _Known(_Key(r.tool, r.digest) for r in newest.values())
    weight = memory.weight_for(principal, known)
    requests = len({(record.principal, record.request) for record in kept})
    moments = [record.at for record in kept]
    return MemorySummary(
        requests,
        tuple(sorted(tools, key=lambda tool: (-tool.worked - tool.failed, tool.name))),
        len({record.principal for record in kept}),
        sum(record.worked for record in kept),
        sum(record.failed for record in kept),
        min(moments, default=None),
        max(moments, default=None),
        weight.own,
        _why(weight, requests),
    )


def _why(weight: Weight, requests: int) -> str:
    if requests < LEAST:
        return f"with fewer than {LEAST} requests nothing can be told"
    if weight == NOTHING:
        return "no weight would have served its own record better than search by itself"
    return "so it would have served its own record best, each request left out in turn"
