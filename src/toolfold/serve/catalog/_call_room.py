"""Room for the calls of a source that bounds them not by itself, such as functions."""

from __future__ import annotations

import asyncio

__all__ = ["CallRoom"]


class CallRoom:
    """Lets so many calls run at once; the others wait, and their time has not begun.

    Args:
        at_most: How many.
    """

    def __init__(self, at_most: int) -> None:
        self._turns = asyncio.Semaphore(at_most)
        self.running = 0
        """How many run now."""
        self.idle = asyncio.Event()
        """Set while none runs."""
        self.idle.set()

    async def __aenter__(self) -> None:
        await self._turns.acquire()
        self.running += 1
        self.idle.clear()

    async def __aexit__(self, *_: object) -> None:
        self.running -= 1
        if not self.running:
            self.idle.set()
        self._turns.release()
