"""Variables from a file of `NAME=value` lines.

python-dotenv reads it as a shell would: quotes are taken off, `export` is passed over, a
`#` after white space begins a comment, a value in quotes may go over several lines. A `$`
stays a `$`, as in the editors whose key `envFile` is; nothing reaches our own environment.
"""

from __future__ import annotations

from io import StringIO
from typing import NamedTuple

__all__ = ["EnvFile", "parse_env_file"]


class EnvFile(NamedTuple):
    """What a file says."""

    variables: dict[str, str]

    unreadable: tuple[int, ...]
    """The lines that say nothing, from 1."""


def parse_env_file(text: str) -> EnvFile:
    """Return the variables of a file's text, the last value of each.

    Raises:
        ImportError: The `mcp` extra, which brings the reader, is not installed.
    """
    from dotenv.parser import parse_stream

    bindings = list(parse_stream(StringIO(text)))
    variables = {b.key: b.value for b in bindings if b.key is not None and b.value is not None}
    unreadable = (
        _line_of(b.original.string, b.original.line)
        for b in bindings
        if b.error or (b.key is not None and b.value is None)
    )
    return EnvFile(variables, tuple(unreadable))


def _line_of(statement: str, line: int) -> int:
    """Return where a statement begins: the blank lines before it are counted as its own."""
    return line + statement.count("\n", 0, len(statement) - len(statement.lstrip()))
