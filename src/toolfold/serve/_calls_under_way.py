"""The calls that clients wait for, so that the gateway does not end in the middle of one.

Once it is closing, nothing new is begun; what was begun has a while to end, and what has not
ended by then is stopped and says so. Every call leaves in one of these ways: none is lost
without an answer, and none keeps the gateway for longer than it was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from toolfold import prompts

__all__ = ["CallsUnderWay", "StoppedError", "StoppingError"]

_LAST_WORDS = 3.0
"""How long calls that were stopped may take to say so, in seconds."""


class StoppingError(MCPError):
    """A call came while the gateway is stopping."""

    def __init__(self) -> None:
        super().__init__(INTERNAL_ERROR, prompts.STOPPING)


class StoppedError(MCPError):
    """A call had not ended when the gateway stopped."""

    def __init__(self) -> None:
        super().__init__(INTERNAL_ERROR, prompts.STOPPED)


class CallsUnderWay:
    """Counts the calls under way, and sees them out at the end."""

    def __init__(self) -> None:
        self._tasks: dict[object, asyncio.Task[object]] = {}
        self._changed = asyncio.Event()
        self.is_closing = False
        """Whether nothing new is begun."""
        self.is_over = False
        """Whether what has not ended by now is stopped."""

    def __len__(self) -> int:
        return len(self._tasks)

    def admit(self) -> None:
        """Refuse a new call, where it is too late for one.

        Raises:
            StoppingError: It is.
        """
        if self.is_closing:
            raise StoppingError

    @contextmanager
    def entered(self) -> Generator[None]:
        """Count the call that this task works on.

        Raises:
            StoppedError: It was stopped.
        """
        task = asyncio.current_task()
        assert task is not None
        call = object()
        self._tasks[call] = task
        try:
            yield
        except asyncio.CancelledError:
            if not self.is_over:
                raise
            task.uncancel()
            raise StoppedError from None
        finally:
            del self._tasks[call]
            self._changed.set()

    async def close(self, seconds: float) -> int:
        """Begin nothing new, let what is under way end, stop what has not; say how many."""
        self.is_closing = True
        await self._emptied(seconds)
        left = len(self)
        self.is_over = True
        for task in set(self._tasks.values()):
            task.cancel()
        await self._emptied(_LAST_WORDS)
        return left

    async def _emptied(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self._tasks:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
