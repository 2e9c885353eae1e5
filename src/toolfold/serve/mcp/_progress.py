"""How far a function says it is, as a client hears of it.

A function says it in words, and perhaps as a fraction; the protocol wants numbers, each
greater than the one before.
"""

from __future__ import annotations

import asyncio
import math

from toolfold.sources.mcp.relay import RelayedCall

__all__ = ["ProgressReports"]

_LINGER = 1.0
"""How long reports may take to be sent before the result is, in seconds."""


class ProgressReports:
    """Sends what a tool reports to the client of its call, where that wants to know.

    Args:
        call: The client's call.
    """

    def __init__(self, call: RelayedCall) -> None:
        self._call = call
        self._last = 0.0
        self._is_fraction = False
        self._sending: set[asyncio.Task[None]] = set()

    def __call__(self, message: str, fraction: float | None) -> None:
        """Send a report, soon."""
        if not self._call.caller.wants_progress:
            return
        self._is_fraction = self._is_fraction or fraction is not None
        self._last = self._next(fraction)
        total = 1.0 if self._is_fraction else None
        task = asyncio.create_task(self._call.progress(self._last, total, message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _next(self, fraction: float | None) -> float:
        if fraction is not None and math.isfinite(fraction) and fraction > self._last:
            return fraction
        return math.nextafter(self._last, math.inf) if self._is_fraction else self._last + 1

    async def sent(self) -> None:
        """Let reports that are on their way arrive before the result does."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=_LINGER)
