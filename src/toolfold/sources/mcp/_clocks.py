"""The clocks of requests to a server: they stand still while a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from toolfold.sources.calls import CallClock

__all__ = ["TimeoutClock", "paused"]


class TimeoutClock(CallClock):
    """The clock of a request that is no tool call."""

    def __init__(self, deadline: asyncio.Timeout, patience: float | None) -> None:
        self._deadline = deadline
        self._patience = patience

    def pause(self) -> None:
        """Let it stand still."""
        self._deadline.reschedule(None)

    def go_on(self) -> None:
        """Start it again, with all its time."""
        if self._patience is not None:
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
