"""A turn as a reader wants it: what was said, the real calls, and the bridge's calls between them.

The inspector's page and the reports' pages both show this, each in its own way. Pure: messages
in, values out, nothing cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from toolfold.evaluation.ab.transcript_reading import Made, made, real_call, searched_needs
from toolfold.runtime.messages import Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tokens import estimate
from toolfold.tool import Json

__all__ = ["ReadCall", "ReadText", "found_in", "steps_of"]


@dataclass(frozen=True, slots=True)
class ReadText:
    """Something that was said, or put behind what the user said."""

    by: Literal["user", "note", "model"]
    text: str


@dataclass(frozen=True)
class ReadCall:
    """A call, of a real tool or of the bridge, and what it gave."""

    made: Made

    @cached_property
    def real(self) -> tuple[str, dict[str, Json]] | None:
        """The real tool that was meant, with its arguments; None for the bridge's own."""
        return real_call(self.made.call)

    @property
    def name(self) -> str:
        """The real tool's name; of the bridge's own calls, what was called."""
        return self.made.call.name if self.real is None else self.real[0]

    @property
    def via(self) -> str | None:
        """The bridge's tool that the real one was called by, if it was."""
        return (
            None if self.real is None or self.name == self.made.call.name else self.made.call.name
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """What a search asked for."""
        return searched_needs(self.made.call)

    @property
    def result(self) -> str | None:
        """What came back, if anything did."""
        return None if self.made.result is None else self.made.result.text

    @property
    def found(self) -> tuple[str, ...] | None:
        """The tools that it found; None where that is not known."""
        return None if self.made.result is None else self.made.result.found

    @property
    def is_error(self) -> bool:
        """Whether it failed."""
        return self.made.result is not None and self.made.result.is_error

    @property
    def tokens(self) -> int:
        """What its result cost."""
        return 0 if self.result is None else estimate(self.result)


def steps_of(messages: Sequence[Message]) -> Iterator[ReadText | ReadCall]:
    """Yield what was said and called, in its order, each call with its result."""
    calls = {id(item.call): item for item in made(messages)}
    for message in messages:
        if isinstance(message, UserMessage):
            if message.text:
                yield ReadText("user", message.text)
            if message.note:
                yield ReadText("note", message.note)
        elif isinstance(message, ModelMessage):
            if message.text.strip():
                yield ReadText("model", message.text)
            yield from (ReadCall(calls[id(call)]) for call in message.calls)


def found_in(messages: Sequence[Message]) -> list[str]:
    """Return the tools that searches found, each once, in their order."""
    found = (m.found or () for m in messages if isinstance(m, ResultMessage))
    return list(dict.fromkeys(name for names in found for name in names))
