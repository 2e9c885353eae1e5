"""A terminal of a test's own, with a window of any size, on which commands run."""

from __future__ import annotations

import os
import re
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TextIO

import pytest

from toolfold._terminal import columns
from toolfold.cli import main

__all__ = ["OnTerminal", "ran_on_terminal", "terminal_stream", "visible_lines"]

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class OnTerminal:
    """What a terminal was sent."""

    code: int = 0
    text: str = ""
    stream: TextIO = field(default=sys.stdout, repr=False)
    descriptor: int = -1
    leader: int = -1
    news: threading.Condition = field(default_factory=threading.Condition, repr=False)
    pieces: list[bytes] = field(default_factory=list[bytes], repr=False)

    @property
    def lines(self) -> list[str]:
        """What is left on its lines, without colours."""
        return visible_lines(self.text)

    def too_wide(self, room: int) -> list[str]:
        """The lines that take more columns than there are."""
        return [line for line in self.lines if columns(line) > room]

    def until(self, text: str, count: int = 1) -> None:
        """Wait until a text has come so many times."""
        with self.news:
            came = self.news.wait_for(lambda: self.so_far().count(text) >= count, timeout=20)
        assert came, f"{text!r} was not shown:\n{self.so_far()}"

    def so_far(self) -> str:
        """What has come by now."""
        return b"".join(self.pieces).decode("utf-8", "replace")

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.leader, text.encode())

    def resize(self, width: int, height: int = 24) -> None:
        """Give the window another size."""
        import fcntl
        import termios

        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def visible_lines(text: str) -> list[str]:
    """Return the lines that a terminal shows at the end, where a carriage return goes back."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        drawn = [_ESCAPES.sub("", part) for part in line.split("\r")]
        erased = [part == "\x1b[K" for part in line.split("\r")]
        kept = [part for part, gone in zip(drawn, erased, strict=True) if part or gone]
        lines.append(kept[-1] if kept else "")
    return lines


@contextmanager
def terminal_stream(width: int = 80, height: int = 24) -> Iterator[OnTerminal]:
    """Open a terminal; what was written to its stream is its text when the block has ended."""
    pty = pytest.importorskip("pty", reason="needs a terminal of the POSIX kind")
    leader, follower = pty.openpty()
    shown = OnTerminal(descriptor=follower, leader=leader)

    def read() -> None:
        while True:
            try:
                piece = os.read(leader, 65_536)
            except OSError:  # Linux says so when the other side is gone
                return
            if not piece:
                return
            with shown.news:
                shown.pieces.append(piece)
                shown.news.notify_all()

    thread = threading.Thread(target=read, daemon=True)
    with open(follower, "w", encoding="utf-8", buffering=1) as stream:
        shown.stream = stream
        shown.resize(width, height)
        thread.start()
        yield shown
    thread.join(timeout=5)
    os.close(leader)
    shown.text = shown.so_far()


def ran_on_terminal(width: int, *arguments: str) -> OnTerminal:
    """Run a command with standard output and standard error on a terminal."""
    with (
        terminal_stream(width) as shown,
        redirect_stdout(shown.stream),
        redirect_stderr(shown.stream),
    ):
        try:
            main(list(arguments), prog_name="toolfold")
        except SystemExit as ended:
            shown.code = ended.code if isinstance(ended.code, int) else 1
    return shown
