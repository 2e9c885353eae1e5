"""The clock of a request that is no tool call: it is in no dispatch, which would have one."""

from __future__ import annotations

import asyncio

from toolfold.sources.calls import CallClock

__all__ = ["TimeoutClock"]


class TimeoutClock(CallClock):
    """Seconds that run, unless they are paused.

    Args:
        deadline: What ends the request.
        patience: How many there are; None is no limit.
    """

    def __init__(self, deadline: asyncio.Timeout, patience: float | None) -> None:
        self._deadline = deadline
        self._patience = patience
        self._pauses = 0

    def pause(self) -> None:
        """Let it stand still."""
        self._pauses += 1
        self._deadline.reschedule(None)

    def go_on(self) -> None:
        """Start it again, with all its time, where nobody else has paused it."""
        self._pauses -= 1
        if self._patience is not None and not self._pauses:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._patience)
