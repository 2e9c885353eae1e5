"""Our own standard input and output, kept for the client alone."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["divert"]


def divert() -> tuple[int, int]:
    """Give descriptor 1 to standard error and 0 to nothing; return the client's pair."""
    pair = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    out: object = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        # What a function prints is for who watches now: line by line, not at the end.
        out.reconfigure(line_buffering=True)
    return pair
