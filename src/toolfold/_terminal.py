"""What a terminal shows: how wide a text is there, cut or wrapped to fit, in columns, in colours.

A letter of East Asia takes two columns, an accent none, and a program that counts
characters draws crooked tables and lines that wrap. Where terminals differ (an emoji
that is made of several), the larger width is taken: a line may end early and never wraps.
What is no terminal has no width: whoever reads a pipe gets whole lines.
"""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, TextIO, TypeAlias

from toolfold._bounds import ELLIPSIS

__all__ = [
    "ERASE_LINE",
    "Style",
    "can_move",
    "columns",
    "erase_lines",
    "fitted",
    "keep_writable",
    "padded",
    "pairs",
    "size",
    "styled",
    "table",
    "wants_colour",
    "width_of",
    "wrapped",
]

Style: TypeAlias = Literal["bold", "dim", "italic", "underline", "red", "green", "yellow", "cyan"]
"""What a text may look like."""

_CODES: dict[Style, int] = {
    "bold": 1, "dim": 2, "italic": 3, "underline": 4,
    "red": 31, "green": 32, "yellow": 33, "cyan": 36,
}  # fmt: skip
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ATOM = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)
_WORD = re.compile(r" +|[^ ]+")
_LEAST = 16
_PLAIN_SIGNS = {
    "⌕": "?", "▶": ">", "✓": "+", "✗": "x", "⊘": "!", "⋯": "~", "→": "->", "·": "|", "×": "x",
    "…": "...", "•": "*", "█": "#", "░": "-", "│": "|", "─": "-", "–": "-", "−": "-", "●": "*",
    "○": "o", "‘": "'", "’": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202f": " ",
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


def wrapped(text: str, room: int, *, hang: str = "") -> list[str]:
    """Return a line as lines that take at most `room` columns each.

    They break at spaces; a word that is longer than a line is cut. Colours of ours take no
    room. Further lines begin as far in as the first does, and `hang` further.

    Args:
        text: One line.
        room: The columns there are.
        hang: What stands before further lines.
    """
    if _columns_seen(text) <= room:
        return [text]
    room = max(room, _LEAST)
    bare = _COLOUR.sub("", text)
    lead = bare[: len(bare) - len(bare.lstrip(" "))] + hang
    lead = lead if columns(lead) <= room // 2 else ""
    lines: list[str] = []
    line, taken = "", 0
    for word in _WORD.findall(text):
        width = _columns_seen(word)
        if taken + width > room and line.strip():
            if word.isspace():
                continue
            lines.append(line.rstrip(" "))
            line, taken = lead, columns(lead)
        if taken + width <= room:
            line, taken = line + word, taken + width
            continue
        for atom in _ATOM.findall(word):
            width = _columns_seen(atom)
            if taken + width > room:
                lines.append(line)
                line, taken = lead, columns(lead)
            line, taken = line + atom, taken + width
    return [*lines, line.rstrip(" ")] if line.strip() else lines


def pairs(rows: Sequence[Sequence[str]], room: int, *, words: int = 1) -> list[str]:
    """Return a table that is too wide for a terminal as a block a row: its words, its numbers.

    Args:
        rows: The heads, then the cells of each row.
        room: The columns there are.
        words: How many columns, from the left, hold words.
    """
    heads, *others = rows
    lines: list[str] = []
    for row in others:
        title = "  ".join(cell.strip() for cell in row[:words] if cell.strip())
        lines += wrapped(title, room, hang="  ") if title else []
        said = [
            f"{head}\u00a0{cell}".strip("\u00a0")
            for head, cell in zip(heads[words:], row[words:], strict=True)
            if cell.strip()
        ]
        # A head and its number stay together: the space between them is made plain at the end.
        body = [text.replace(" ", "\u00a0") for text in said]
        lines += [line.replace("\u00a0", " ") for line in wrapped("  " + "  ".join(body), room)]
    return lines


def styled(text: str, *styles: Style) -> str:
    """Return `text` in a style; as it is where the person wants no colours."""
    if not styles or not wants_colour():
        return text
    return "".join(f"\x1b[{_CODES[style]}m" for style in styles) + f"{text}\x1b[0m"


def wants_colour() -> bool:
    """Return whether colours are wanted, by the person (`NO_COLOR`) and by the terminal."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_move(stream: TextIO) -> bool:
    """Return whether what was written to a stream can be written over: a live line, a bar."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int | None:
    """Return how many columns a stream's terminal has now; None where it is no terminal."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and int(told):
        return int(told)
    return size(stream.fileno())[0]


def keep_writable(*streams: object) -> None:
    """Let streams whose encoding lacks a sign write another in its place, and never fail."""
    codecs.register_error("toolfold", _in_plain_signs)
    for stream in streams:
        encoding = str(getattr(stream, "encoding", None) or "utf-8")
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and not encoding.lower().replace("-", "").startswith("utf"):
            reconfigure(errors="toolfold")


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


def _in_plain_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?") for sign in lacking), error.end


def _columns_seen(text: str) -> int:
    """Return the columns that a text takes whose colours are ours."""
    return columns(_COLOUR.sub("", text) if "\x1b" in text else text)


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
