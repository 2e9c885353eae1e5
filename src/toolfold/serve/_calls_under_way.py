"""The calls that clients wait for, so that the gateway does not end in the middle of one.

Once it is closing, nothing new is begun; what was begun has a while to end, and what has not
ended by then is stopped and says so. Every call leaves in one of these ways: none is lost
without an answer, and none keeps the gateway for longer than it was told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from toolfold import prompts
from toolfold.dispatch.dispatch import GIVEN_UP
from toolfold.prompts import plural

__all__ = ["CallsUnderWay", "StoppedError", "StoppingError"]

_log = logging.getLogger(__name__)

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
        self.is_leaving = False
        """Whether the gateway was told to stop; calls are still taken for a while."""
        self.is_closing = False
        """Whether nothing new is begun."""
        self.is_over = False
        """Whether what has not ended by now is stopped."""
        self.on_closing: Callable[[], None] = lambda: None
        """Called when nothing new is begun any more."""

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

    def why_given_up(self) -> str:
        """Say why a call was cancelled, for the records."""
        return "the gateway was stopped before it ended" if self.is_over else GIVEN_UP

    async def close(self, seconds: float, notice: float = 0.0) -> None:
        """Begin nothing new, let what is under way end, and stop what has not.

        Args:
            seconds: How long what is under way has to end.
            notice: How long new calls are taken before, while it is said that none should come.
        """
        self.is_leaving = True
        if notice:
            _log.info("stopping: new calls are taken for %g s more", notice)
            await asyncio.sleep(notice)
        self.is_closing = True
        self.on_closing()
        if self._tasks:
            there = plural(len(self), "call")
            _log.info("%s under way: waiting up to %g s, or for another signal", there, seconds)
        await self._emptied(seconds)
        self.is_over = True
        if self._tasks:
            there = plural(len(self), "call")
            _log.warning("%s had not ended within %g s: stopped", there, seconds)
        for task in set(self._tasks.values()):
            task.cancel()
        await self._emptied(_LAST_WORDS)

    async def _emptied(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self._tasks:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
