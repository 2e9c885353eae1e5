"""Calls that must not run twice, though their client may send them twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from toolfold.sources.mcp.relay import Caller
from toolfold.tool import Json, Tool

__all__ = ["ARRIVED", "Once", "run_once"]

ARRIVED = "toolfold.arrived"
"""Where the door writes into an ASGI scope when a request came in, by the monotonic clock."""

Once = Callable[[Callable[[], Awaitable[dict[str, Json]]]], Awaitable[dict[str, Json]]]
"""Makes a call, or returns what it came to when it was made before."""


@runtime_checkable
class _Repeatable(Protocol):
    """A request that its client may send once more."""

    @property
    def once(self) -> Once | None:
        """Keeps it from running twice; None where nobody does."""
        ...


async def run_once(
    caller: Caller, tool: Tool, work: Callable[[], Awaitable[dict[str, Json]]]
) -> dict[str, Json]:
    """Make a call, unless it was made before and twice is worse than once."""
    is_harmless = tool.is_read_only or tool.annotations.get("idempotentHint") is True
    once = caller.once if isinstance(caller, _Repeatable) else None
    return await (work() if once is None or is_harmless else once(work))
