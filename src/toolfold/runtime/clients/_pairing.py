"""A transcript made fit for a wire: every call with an id, every result with its call's.

The transcript keeps what the model wrote; providers are stricter. They want ids that are
there and unique, names and arguments that are well formed, and one result for each call,
in the calls' order. What is sent of a message does not depend on the messages behind it,
so that a longer conversation begins with the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolfold.runtime._loose import arguments_text
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.model import ModelError
from toolfold.tool import wire_name

__all__ = ["SentCall", "SentMessage", "SentReply", "SentResult", "paired"]


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call as it is sent back."""

    id: str
    """As the model wrote it, where that is usable and no earlier call has it."""

    name: str

    arguments: str
    """The JSON text of an object: as the model wrote it, where it wrote one."""

    recovered: bool = False
    """Whether it was read out of plain text."""


@dataclass(frozen=True, slots=True)
class SentReply:
    """A model's message and its calls as they are sent."""

    message: ModelMessage
    calls: tuple[SentCall, ...] = ()

    @property
    def text(self) -> str:
        """The text; none where calls were read out of it."""
        return "" if any(call.recovered for call in self.calls) else self.message.text


@dataclass(frozen=True, slots=True)
class SentResult:
    """A result and the id of its call as it is sent."""

    message: ResultMessage
    id: str


SentMessage: TypeAlias = UserMessage | SentReply | SentResult
"""One entry of a transcript, fit for a wire."""

_ANY_ID = re.compile(r"\S(?:.*\S)?")


def paired(messages: Sequence[Message], usable: re.Pattern[str] = _ANY_ID) -> Iterator[SentMessage]:
    """Yield the messages, calls and results paired.

    Args:
        messages: The transcript.
        usable: What an id must match, in full, to be sent as it was written.

    Raises:
        ModelError: A call has no result, or a result no call.
    """
    ids = _Ids(usable)
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ResultMessage):
            if not waiting:
                raise _broken(f"result {place} belongs to no call")
            yield SentResult(message, waiting.pop(0))
            continue
        if waiting:
            raise _broken(f"call {waiting[0]!r} before message {place} has no result")
        if isinstance(message, UserMessage):
            yield message
            continue
        calls = tuple(_sent(call, ids) for call in message.calls)
        waiting = [call.id for call in calls]
        yield SentReply(message, calls)
    if waiting:
        raise _broken(f"call {waiting[0]!r} at the end has no result")


def _sent(call: Call, ids: _Ids) -> SentCall:
    arguments = arguments_text(call.arguments) or "{}"
    return SentCall(ids.given(call.id), wire_name(call.name), arguments, call.recovered)


class _Ids:
    """Gives each call an id of its own."""

    def __init__(self, usable: re.Pattern[str]) -> None:
        self._usable = usable
        self._taken: set[str] = set()
        self._count = 0

    def given(self, written: str) -> str:
        self._count += 1
        if self._usable.fullmatch(written) and written not in self._taken:
            self._taken.add(written)
            return written
        # Nine letters and digits: Mistral takes nothing else, and everyone takes that.
        number = self._count
        while (made := f"call{number:05d}") in self._taken:
            number += 1
        self._taken.add(made)
        return made


def _broken(what: str) -> ModelError:
    return ModelError(
        f"the transcript cannot be sent: {what}",
        hint="keep one result for each call, in the order of the calls",
    )
