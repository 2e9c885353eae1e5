"""Calls that must not run twice, though their client may send them twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from toolfold.sources.mcp.relay import Caller
from toolfold.tool import Json, Tool

__all__ = ["ARRIVED", "RepeatableCall", "result_before", "run_once"]

ARRIVED = "toolfold.arrived"
"""Where the door writes into an ASGI scope when a request came in, by the monotonic clock."""


class RepeatableCall(Protocol):
    """A call that its client may send once more, and that must not run once more."""

    async def once(self, work: Callable[[], Awaitable[dict[str, Json]]]) -> dict[str, Json]:
        """Make the call, or return what it came to when it was made before."""
        ...

    async def result_before(self) -> dict[str, Json] | None:
        """Return what it came to when it was made before; None where it was not."""
        ...


@runtime_checkable
class _Repeatable(Protocol):
    """A request that its client may send once more."""

    @property
    def repeatable(self) -> RepeatableCall | None:
        """Keeps it from running twice; None where nobody does."""
        ...


async def run_once(
    caller: Caller, tool: Tool, work: Callable[[], Awaitable[dict[str, Json]]]
) -> dict[str, Json]:
    """Make a call, unless it was made before and twice is worse than once."""
    is_harmless = tool.is_read_only or tool.annotations.get("idempotentHint") is True
    call = _repeatable(caller)
    return await (work() if call is None or is_harmless else call.once(work))


async def result_before(caller: Caller) -> dict[str, Json] | None:
    """Return what a call came to that nobody can run here now, where it was made before."""
    call = _repeatable(caller)
    return None if call is None else await call.result_before()


def _repeatable(caller: Caller) -> RepeatableCall | None:
    return caller.repeatable if isinstance(caller, _Repeatable) else None
