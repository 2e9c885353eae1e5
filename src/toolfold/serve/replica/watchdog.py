"""What ends a server's process in time, though this process be paused or killed.

A process that has stopped cannot stop another. So a server that must not run twice runs below a
small program which knows until when it may, and kills it when that time comes and nobody has
told it of a later one.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["Watchdog"]

_PROGRAM = Path(__file__).with_name("_watched_process.py")


class Watchdog:
    """Watches one process. Where there are no process groups, nothing does.

    Args:
        until: Until when it may live, by the clock of `leases.now`.
    """

    def __init__(self, until: float) -> None:
        self.command: tuple[str, ...] = ()
        """What the process is to be started through."""
        self.descriptors: tuple[int, ...] = ()
        """What that has to be given."""
        self._tell: int | None = None
        if os.name == "posix":
            heard, self._tell = os.pipe()
            os.set_blocking(self._tell, False)
            self.descriptors = (heard,)
            self.command = (sys.executable, "-I", "-S", str(_PROGRAM), str(heard), repr(until))

    def started(self) -> None:
        """The process runs: what it was given is its own from now on."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = ()

    def extend(self, until: float) -> None:
        """Let the process live for longer."""
        if self._tell is not None:
            with suppress(OSError):  # it has ended
                os.write(self._tell, f"{until!r}\n".encode())

    def close(self) -> None:
        """Have it killed, where it has not ended."""
        self.started()
        if self._tell is not None:
            os.close(self._tell)
            self._tell = None
