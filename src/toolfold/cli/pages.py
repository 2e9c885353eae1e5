"""One screen at a time: what a command shows in parts waits for a key between them.

It waits only where somebody can press one: standard input and output are terminals, and no
build runs. Where nobody presses a key at the first part, nobody is there, and the rest follows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import click

from toolfold._terminal import ERASE_LINE, can_move, fitted, styled, width_of

__all__ = ["Pages"]

_PATIENCE = 20.0
_PROMPT = "Enter: next   a: all   q: end"
_LAST = ("q", "Q", "\x1b", "\x04")


class Pages:
    """Waits between the parts of a show.

    Args:
        patience: How long the first key is waited for, in seconds.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience: float | None = patience
        self._waits = (
            sys.platform != "win32"
            and not os.environ.get("CI")
            and sys.stdin.isatty()
            and can_move(sys.stdout)
        )

    def turn(self) -> bool:
        """Wait for a key, and return whether to go on."""
        if not self._waits:
            return True
        room = (width_of(sys.stdout) or 80) - 1
        click.echo(styled(fitted(_PROMPT, room), "dim"), nl=False)
        try:
            key = _pressed(self._patience)
        finally:
            click.echo(ERASE_LINE, nl=False)
        self._patience = None
        if key is None or key in "aA":
            self._waits = False
        return key is None or key not in _LAST


def _pressed(patience: float | None) -> str | None:
    """Return the key that is pressed next; None where none is."""
    import select

    descriptor = sys.stdin.fileno()
    with _each_key(descriptor):
        ready, _, _ = select.select([descriptor], [], [], patience)
        # The end of the input is nobody, too; an arrow or an accent is several bytes.
        return os.read(descriptor, 64).decode(errors="replace")[:1] or None if ready else None


@contextmanager
def _each_key(descriptor: int) -> Generator[None]:
    """Have keys come as they are pressed and not shown; Ctrl-C stays what it is."""
    if sys.platform == "win32":
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSANOW)  # what was pressed by now counts
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
