"""The time that a call has, and how one that has none left is stopped."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from toolfold.sources.calls import CallClock, CallContext

__all__ = ["Deadline", "stopped"]

_log = logging.getLogger(__name__)

_GRACE_SECONDS = 2.0
"""How long a tool may take to clean up after it was cancelled."""


class Deadline(CallClock):
    """Seconds that run, unless they are paused.

    Args:
        seconds: How many there are; None is no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._woken: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pauses = 0

    def pause(self) -> None:
        """Let the clock stand still."""
        self._pauses += 1
        self._halt()

    def go_on(self) -> None:
        """Start the clock again, with all its seconds, where nobody else has paused it."""
        self._pauses -= 1
        self._start()

    def _halt(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self._halt()
        if self._seconds is not None and self._woken is not None and not self._pauses:
            self._timer = self._loop.call_later(self._seconds, self._wake)

    def _wake(self, _: object = None) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def outlasts(self, task: asyncio.Task[Any]) -> bool:
        """Wait for a task, and say whether it ended in time."""
        self._woken = self._loop.create_future()
        task.add_done_callback(self._wake)
        self._start()
        try:
            await self._woken
        finally:
            task.remove_done_callback(self._wake)
            self._halt()
            self._woken = None
        return task.done()


async def stopped(task: asyncio.Task[Any], context: CallContext) -> None:
    """Cancel a tool and wait a little for it to clean up."""
    if not context.cancelled:  # once: a second time would end its cleaning up
        context.stopped.set()
        task.add_done_callback(_forgotten)  # before the wait, which may be cancelled itself
        task.cancel()
    done, _ = await asyncio.wait({task}, timeout=_GRACE_SECONDS)
    if not done:
        _log.warning("%s does not stop when it is cancelled", context.call.tool.name)


def _forgotten(task: asyncio.Task[Any]) -> None:
    """Read a task's error, so that nobody is told that it was never read."""
    if not task.cancelled():
        task.exception()
