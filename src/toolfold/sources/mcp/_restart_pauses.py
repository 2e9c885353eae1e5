"""How long a server rests before it is started again: longer each time, and never evenly."""

from __future__ import annotations

import random

__all__ = ["RestartPauses"]

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 60.0
HEALTHY_AFTER = 10.0
"""A server that lived so many seconds starts again with the first pause."""

_CHANCE = random.Random()  # of its own: the program's is left as it is


class RestartPauses:
    """The pauses of one server."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE

    def after(self, lived: float) -> float:
        """Return the pause after a life of so many seconds; 0 of one that was never ready."""
        pause = FIRST_PAUSE if lived > HEALTHY_AFTER else self._next
        self._next = min(pause * 2, LONGEST_PAUSE)
        return pause * _CHANCE.uniform(0.5, 1.0)
