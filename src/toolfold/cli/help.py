"""Help texts that fit a narrow terminal: there, an option's meaning stands below its name.

Commands under "Examples" stay whole at any width: they are there to be copied.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable

import click

from toolfold._terminal import width_of, wrapped

__all__ = ["HelpContext", "with_help"]

_NARROW = 62


class HelpFormatter(click.HelpFormatter):
    """Writes help as click does, and below a width of its own in one column."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        there = width_of(sys.stdout) or shutil.get_terminal_size().columns
        self._is_narrow = width is None and there < _NARROW
        narrow = max(there - 1, 20) if self._is_narrow else width
        super().__init__(indent_increment, narrow, max_width)

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names and what they mean."""
        if not self._is_narrow:
            super().write_dl(rows, col_max, col_spacing)
            return
        lead = " " * self.current_indent
        for name, meaning in rows:
            lines = wrapped(f"{lead}{name}", self.width, hang="  ")
            lines += wrapped(f"{lead}    {' '.join(meaning.split())}", self.width)
            self.write("".join(f"{line}\n" for line in lines if line.strip()))


class HelpContext(click.Context):
    """A context whose help fits."""

    formatter_class = HelpFormatter


def with_help(command: click.Command) -> click.Command:
    """Return a command whose help fits, and that of the commands below it."""
    command.context_class = HelpContext
    if isinstance(command, click.Group):
        for own in command.commands.values():
            with_help(own)
    return command
