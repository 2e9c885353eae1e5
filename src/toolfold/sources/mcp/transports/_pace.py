"""What one server's noise may take of everybody's time."""

from __future__ import annotations

import asyncio

__all__ = ["Pace"]

SHARE = 0.1
"""The part of the time that goes into what one server says and nobody asked for."""

_LEAST = 0.001
_LONGEST = 1.0


class Pace:
    """Keeps what is spent on a server's noise to a share of the time.

    While it rests nothing is read, so that the server's pipe fills and the server waits.
    """

    __slots__ = ("_spent",)

    def __init__(self) -> None:
        self._spent = 0.0

    async def rest(self, spent: float) -> None:
        """Take note of seconds that were spent, and let others have theirs."""
        self._spent += spent
        if self._spent >= _LEAST:
            wait, self._spent = self._spent * (1 / SHARE - 1), 0.0
            await asyncio.sleep(min(wait, _LONGEST))
