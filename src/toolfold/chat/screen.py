"""What a person sees: the answer as it comes, a line for each thing that runs, questions.

Texts of strangers reach the terminal without control characters: they cannot move the
cursor, rewrite a line or colour one. What is no terminal gets plain lines, each once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

import click

from toolfold._bounds import cut, one_line, visible
from toolfold._terminal import Style, can_move, columns, fitted, styled, width_of, wrapped
from toolfold.chat.markdown import MarkdownStream
from toolfold.errors import ToolfoldError
from toolfold.tool import Json

__all__ = ["Screen", "harmless", "shown_json"]

_ASCII = str.maketrans(
    {"⌕": "?", "▶": ">", "✓": "+", "✗": "x", "⊘": "!", "⋯": "~", "→": "->", "·": "|", "×": "x",
     "…": "..."}
)  # fmt: skip


class Screen:
    """The terminal, or what stands in its place.

    Args:
        feed_to_stderr: Whether all but the answer goes to standard error.
        streams: Whether the answer is written as it comes.
        indent: What stands before every line.
        plain: Whether a terminal, too, shows the answer as it was written, and no Markdown.
    """

    def __init__(
        self,
        *,
        feed_to_stderr: bool = False,
        streams: bool = True,
        indent: str = "",
        plain: bool = False,
    ) -> None:
        self._err = feed_to_stderr
        self._streams = streams
        self._indent = indent
        self._at_start = True
        self._live = 0
        renders = not plain and can_move(sys.stdout)
        self._markdown = MarkdownStream(self._answer_room) if renders else None
        self._held: list[tuple[str, tuple[Style, ...]]] | None = None
        # Asked here: the command's own thread knows it, that of the conversation does not.
        context = click.get_current_context(silent=True)
        self._colour = None if context is None else context.color

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it."""
        return self._stream(self._err).isatty()

    def text(self, piece: str) -> None:
        """Write a piece of the answer."""
        if self._streams:
            said = harmless(piece)
            self._put(said if self._markdown is None else self._markdown.feed(said))

    def _put(self, said: str) -> None:
        if not said:
            return
        self._wipe()
        if self._indent:
            lead = self._indent if self._at_start else ""
            ended = said.endswith("\n")
            inner = (said[:-1] if ended else said).replace("\n", f"\n{self._indent}")
            written = f"{lead}{inner}" + ("\n" if ended else "")
        else:
            written = said
        self._echo(written, err=False)
        self._at_start = said.endswith("\n")

    def aside(self, text: str) -> None:
        """Show what the model said before it was done, where the answer is not streamed."""
        if not self._streams and text.strip():
            self.line(harmless(text.strip()))

    def end_text(self) -> None:
        """End the line of the answer, if it is open."""
        if self._markdown is not None:
            self._put(self._markdown.end())
        if not self._at_start:
            self._echo("\n", err=False)
            self._at_start = True

    def line(self, text: str = "", *style: Style) -> None:
        """Write a line beside the answer."""
        if self._held is not None:
            self._held.append((text, style))
            return
        self.end_text()
        self._wipe()
        lines = wrapped(text, self._room, hang="  ") if self.is_terminal else [text]
        for line in lines:
            self._echo(f"{self._indent}{styled(line, *style)}\n" if line else "\n")

    def live(self, text: str, *style: Style) -> None:
        """Write a line that the next one takes the place of; off a terminal, a plain line."""
        if self._held is not None:
            return
        if not can_move(self._stream(self._err)):
            self.line(text, *style)
            return
        self.end_text()
        self._wipe()
        shown = self._indent + self.fitted(text)
        self._echo(styled(shown, *style))
        self._live = columns(shown)

    def fitted(self, text: str) -> str:
        """Return the start of a text that fits on one line of the terminal, if it is one."""
        if not self.is_terminal:
            return text
        return fitted(text, self._room)

    def _answer_room(self) -> int:
        """The columns that a line of the answer has."""
        return (width_of(sys.stdout) or 80) - len(self._indent)

    @property
    def _room(self) -> int:
        """The columns that a line has behind its indent."""
        there = width_of(self._stream(self._err)) or 80
        return max(there - len(self._indent) - 1, 8)

    def fault(self, error: ToolfoldError) -> None:
        """Show an error and its fix."""
        self.line(f"{styled('error', 'red', 'bold')}: {one_line(error.message, 2_000)}")
        if error.hint:
            self.line(f"{styled('hint', 'cyan')}: {one_line(error.hint, 2_000)}")

    @contextmanager
    def asking(self, question: str) -> Generator[None]:
        """Show a question; what comes in before it is answered is shown after that."""
        self.end_text()
        self._wipe()
        rows = wrapped(question, self._room, hang="  ") if self.is_terminal else [question]
        *before, last = rows
        asked = [styled(row, "bold") for row in (*before, f"{last} ")]
        self._echo(self._indent + f"\n{self._indent}".join(asked))
        self._held = []
        self._at_start = False
        try:
            yield
            self._at_start = True
        finally:
            if not self._at_start:
                self._echo("\n")
                self._at_start = True
            held, self._held = self._held, None
            for text, style in held:
                self.line(text, *style)

    def typed(self, text: str) -> None:
        """Show what a script types."""
        self._echo(f"{harmless(text)}\n")

    def _wipe(self) -> None:
        """Take the live line away, without escape codes."""
        if self._live:
            self._echo("\r" + " " * self._live + "\r")
            self._live = 0

    def _echo(self, text: str, *, err: bool | None = None) -> None:
        to_err = self._err if err is None else err
        encoding = getattr(self._stream(to_err), "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        click.echo(text, nl=False, err=to_err, color=self._colour)

    @staticmethod
    def _stream(err: bool) -> TextIO:
        return sys.stderr if err else sys.stdout


def harmless(text: str) -> str:
    """Return a stranger's text with line breaks and tabs as its only control characters."""
    return visible(text).replace("\r", "")


def shown_json(value: Json, limit: int) -> str:
    """Return a JSON value on one line, what cannot be seen in it written as `\\u…`.

    A person decides by it, so where it is cut it says how long it is.
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return text if len(text) <= limit else f"{cut(text, limit)} ({len(text):,} characters)"
