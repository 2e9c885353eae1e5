"""How far a long command is: one line that is drawn over on a terminal, few lines elsewhere.

On a terminal the line is fitted to the width there is at that moment, drawn ten times a second
at most, and gone when the command is. What is no terminal is told at each quarter, and only
where that took a while: a short command says nothing there.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

from toolfold._terminal import ERASE_LINE, can_move, columns, erase_lines, fitted, width_of

__all__ = ["ProgressBar", "progress"]

_REDRAW_SECONDS = 0.1
_TELL_SECONDS = 5.0
_BAR = 24
_LEFT_AFTER = 2.0


class ProgressBar:
    """Says how much of something is done.

    Args:
        length: How much there is to do.
        label: What is done, in a word or two.
        stream: Where it is said; None is nowhere.
        clock: What time it is, in seconds.
    """

    def __init__(
        self,
        length: int,
        label: str,
        stream: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._length = max(length, 1)
        self._label = label
        self._stream = stream
        self._clock = clock
        self._moves = stream is not None and can_move(stream)
        self._done = 0
        self._began = self._said_at = clock()
        self._quarter = 0
        self._drawn = 0

    def update(self, count: int = 1, note: str = "") -> None:
        """Say that more is done.

        Args:
            count: How much more.
            note: What else to say of it, on one line.
        """
        self._done = min(self._done + count, self._length)
        now = self._clock()
        if not self._moves:
            self._tell(now, note)
        elif now - self._said_at >= _REDRAW_SECONDS or not self._drawn:
            self._said_at = now
            self._draw(now, note)

    def start(self) -> None:
        """Show that it has begun."""
        if self._moves:
            self._draw(self._began, "")

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            self._write(self._erased())
            self._drawn = 0

    def _tell(self, now: float, note: str) -> None:
        quarter = 4 * self._done // self._length
        is_new = self._quarter < quarter < 4
        if is_new and now - self._said_at >= _TELL_SECONDS:
            self._quarter, self._said_at = quarter, now
            self._write(f"{self._label}: {self._counts(now)}{f'  {note}' if note else ''}\n")

    def _draw(self, now: float, note: str) -> None:
        room = self._width() - 1
        said = f"  {self._counts(now)}"
        bar = min(_BAR, room - columns(self._label) - columns(said) - 2)
        filled = bar * self._done // self._length
        drawn = f"  {'█' * filled}{'░' * (bar - filled)}" if bar >= 8 else ""
        line = fitted(f"{self._label}{drawn}{said}{f'  {note}' if note else ''}", room)
        self._write(f"{self._erased()}{line}")
        self._drawn = columns(line)

    def _counts(self, now: float) -> str:
        text = f"{self._done:,} of {self._length:,}"
        passed = now - self._began
        if passed < _LEFT_AFTER or not 0 < self._done < self._length:
            return text
        return f"{text}, {_duration(passed / self._done * (self._length - self._done))} left"

    def _erased(self) -> str:
        # A terminal that was made narrower has broken the line: it takes several rows now.
        width = self._width()
        return erase_lines((self._drawn - 1) // width) if self._drawn > width else ERASE_LINE

    def _width(self) -> int:
        return (width_of(self._stream) if self._stream is not None else None) or 80

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def progress(length: int, label: str, *, quiet: bool = False) -> Generator[ProgressBar]:
    """Say on standard error how far a command is; leave no line behind.

    Args:
        length: How much there is to do.
        label: What is done.
        quiet: Whether to say nothing.
    """
    bar = ProgressBar(length, label, None if quiet else sys.stderr)
    bar.start()
    with _below_the_log(bar):
        try:
            yield bar
        finally:
            bar.clear()


@contextmanager
def _below_the_log(bar: ProgressBar) -> Generator[None]:
    """Take a bar away before a line of the log is written: the next update draws it below."""

    def make_way(_: logging.LogRecord) -> bool:
        bar.clear()
        return True

    handlers = logging.getLogger().handlers[:]
    for handler in handlers:
        handler.addFilter(make_way)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(make_way)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 60 else f"{minutes / 60:.1f} h"
