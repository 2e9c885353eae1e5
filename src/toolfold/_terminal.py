"""What a terminal shows: how wide a text is there, cut to fit, in columns, in colours.

A letter of East Asia takes two columns, an accent none, and a program that counts
characters draws crooked tables and lines that wrap. Where terminals differ (an emoji
that is made of several), the larger width is taken: a line may end early and never wraps.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from toolfold._bounds import ELLIPSIS

__all__ = [
    "ERASE_LINE",
    "Style",
    "columns",
    "erase_lines",
    "fitted",
    "padded",
    "size",
    "styled",
    "table",
    "wants_colour",
]

Style: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
"""What a text may look like."""

_CODES: dict[Style, int] = {
    "bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36
}  # fmt: skip
_JOINERS = "\u200c\u200d"
_EMOJI_STYLE = "\ufe0f"

ERASE_LINE = "\r\x1b[K"
"""Moves to the start of the line and clears it."""


def columns(text: str) -> int:
    """Return how many columns a line of text takes."""
    if text.isascii():
        return len(text)
    return sum(_widths(text))


def fitted(text: str, room: int) -> str:
    """Return `text`, or its first part with an ellipsis where it takes more columns than `room`."""
    if columns(text) <= room:
        return text
    taken = 0
    for place, width in enumerate(_widths(text)):
        taken += width
        if taken >= room:  # The ellipsis takes the last column.
            return text[:place].rstrip() + ELLIPSIS if room > 0 else ""
    return text


def padded(text: str, room: int, *, right: bool = False) -> str:
    """Return `text` with as many spaces as make it `room` columns wide, on its right or left."""
    space = " " * (room - columns(text))
    return space + text if right else text + space


def table(rows: Sequence[Sequence[str]], *, words: int = 1) -> list[str]:
    """Return rows as lines whose cells stand below each other, two spaces apart.

    Args:
        rows: The cells, as many in each row; heads are a row like any other.
        words: How many columns, from the left, hold words: the others are numbers, and end
            below each other.
    """
    widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            padded(cell, width, right=place >= words)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def styled(text: str, *styles: Style) -> str:
    """Return `text` in a style; as it is where the person wants no colours."""
    if not styles or not wants_colour():
        return text
    return "".join(f"\x1b[{_CODES[style]}m" for style in styles) + f"{text}\x1b[0m"


def wants_colour() -> bool:
    """Return whether the person wants colours: `NO_COLOR` is not set, or is empty."""
    return not os.environ.get("NO_COLOR")


def erase_lines(count: int) -> str:
    """Return what moves up so many lines and clears all from there on."""
    return f"\r\x1b[{count}A\x1b[J" if count else ""


def size(descriptor: int) -> tuple[int, int]:
    """Return the width and height of the terminal behind an open file."""
    try:
        width, height = os.get_terminal_size(descriptor)
    except OSError:
        width, height = 0, 0
    # Some terminals do not know their size, and say so by zeros.
    return width or 80, height or 24


def _widths(text: str) -> Iterator[int]:
    """Yield the columns that each character adds to those before it."""
    last = 0
    for character in text:
        if character == _EMOJI_STYLE:
            # It makes a sign of one column a picture of two.
            last = 1 if last == 1 else 0
        elif character in _JOINERS or unicodedata.category(character) in ("Mn", "Me"):
            last = 0
        else:
            last = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        yield last
