"""What a command prints: lines and tables that fit the terminal, and whole lines in a pipe.

A terminal breaks a long line wherever its edge is; `say` breaks it at a space and sets what
follows in. Whoever reads a pipe or a file gets each line whole, however long.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

import click

from toolfold._terminal import columns, fitted, pairs, styled, table, width_of, wrapped

__all__ = ["print_table", "room", "say", "say_cut"]


def room(*, err: bool = False) -> int | None:
    """Return the columns of the terminal that is printed on; None where it is none."""
    return width_of(_stream(err))


def say(text: str = "", *, err: bool = False, hang: str = "  ") -> None:
    """Print lines, each wrapped where the terminal is narrower.

    Args:
        text: What to print; texts of strangers in it are harmless already.
        err: Whether it goes to standard error.
        hang: How much further in a line goes on.
    """
    width = room(err=err)
    if width is not None:
        lines = (line for part in text.split("\n") for line in wrapped(part, width, hang=hang))
        text = "\n".join(lines)
    click.echo(text, err=err)


def say_cut(text: str, *, rows: int) -> None:
    """Print a line wrapped to at most so many rows of the terminal, the last cut to fit."""
    width = room()
    lines = [text] if width is None else wrapped(text, width, hang="  ")
    if width is not None and len(lines) > rows:
        last = f"{lines[rows - 1]} {lines[rows].strip()}"
        lines = [*lines[: rows - 1], fitted(last, width)]
    click.echo("\n".join(lines))


def print_table(
    rows: Sequence[Sequence[str]], *, words: int = 1, aside: Sequence[int] = ()
) -> None:
    """Print a table whose first row is its heads; where it is too wide, a block for each row.

    Args:
        rows: The cells of each row.
        words: How many columns, from the left, hold words and not numbers.
        aside: The places of rows that stand back.
    """
    from toolfold.invisible import shown  # help is quick without it

    lines = [shown(line) for line in table(rows, words=words)]
    width = room()
    if width is not None and max(map(columns, lines)) > width and len(rows) > 1:
        for line in pairs(rows, width, words=words):
            click.echo(line if line.startswith(" ") else styled(line, "bold"))
        return
    for place, line in enumerate(lines):
        style = "bold" if place == 0 else "dim" if place in aside else None
        click.echo(styled(line, style) if style else line)


def _stream(err: bool) -> TextIO:
    return sys.stderr if err else sys.stdout
