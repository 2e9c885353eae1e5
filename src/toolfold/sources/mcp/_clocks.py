"""The clocks of requests to a server: they stand still while a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from toolfold.sources.calls import CallClock

__all__ = ["TimeoutClock", "paused"]


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


@contextmanager
def paused(clock: CallClock | None) -> Generator[None]:
    """Let a clock, where there is one, stand still for a while."""
    if clock is None:
        yield
        return
    clock.pause()
    try:
        yield
    finally:
        clock.go_on()
