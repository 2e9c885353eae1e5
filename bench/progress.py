"""One line that says how far long work is: in place on a terminal, now and then elsewhere."""

from __future__ import annotations

import sys
import time

__all__ = ["Progress"]

_EVERY = 15.0
_WIDTH = 78


class Progress:
    """Counts steps and says so on standard error. Use it as a context manager.

    Args:
        label: What is being done.
        total: How many steps it takes.
    """

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._said = 0.0
        self._started = time.perf_counter()
        self._in_place = sys.stderr.isatty()

    def step(self, what: str) -> None:
        """Say what is done next."""
        self._done += 1
        now = time.perf_counter()
        if self._in_place or now - self._said >= _EVERY:
            self._said = now
            self._write(
                f"{self._label} {self._done}/{self._total}, {now - self._started:.0f} s: {what}"
            )

    def _write(self, line: str) -> None:
        if self._in_place:
            sys.stderr.write(f"\r{line[:_WIDTH]:<{_WIDTH}}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the line."""
        if self._in_place:
            sys.stderr.write(f"\r{'':<{_WIDTH}}\r")
