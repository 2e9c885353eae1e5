"""What a model said in one round, and what of it is kept for the conversation's later requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolfold._json_values import compact_bytes, parse
from toolfold.answer import Answer
from toolfold.runtime.model import Usage
from toolfold.tool import Json, is_array, is_object

__all__ = ["AnsweredCall", "HandedCall", "KeptTurn", "ModelCall", "RoundTurn"]

_VERSION = 2


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that the model made."""

    id: str
    name: str
    arguments: str
    """As it was written: JSON text, or what was meant as such."""

    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What else a server says with it and wants back."""

    place: int = 0
    """Which part of the turn it is, where the dialect's turns have parts."""

    is_out: bool = False
    """Whether the client has it already: a call of an open tool goes out as it comes."""

    is_search: bool = False
    """Whether it came as the provider's own kind of search."""

    is_text: bool = False
    """Whether the model wrote it as text."""

    namespace: str = ""
    """Where the model says that the tool is, in a dialect that has such."""


@dataclass(frozen=True, slots=True)
class RoundTurn:
    """What the model said in one round."""

    items: Sequence[str]
    """Its turn as a request holds it, JSON texts of items of the conversation."""

    calls: Sequence[ModelCall]
    text: str
    """What the client reads of it."""

    usage: Usage
    is_cut: bool = False
    """Whether it ended before the model did: at a limit, or by a refusal."""


class HandedCall(NamedTuple):
    """A call for the client to run."""

    call: ModelCall
    name: str
    arguments: str
    """JSON text."""

    is_same: bool
    """Whether that is what the model wrote."""

    namespace: str = ""
    """Where the client has the tool, in a dialect that has such."""


class AnsweredCall(NamedTuple):
    """A call that was answered inside."""

    call: ModelCall
    answer: Answer


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """What stands in the model's history in place of what a client knows of a turn."""

    calls: tuple[tuple[str, str, str], ...]
    """What the client was handed: id, name and the JSON text of the arguments of each call."""

    before: tuple[str, ...]
    """The rounds that the client did not see, as JSON texts of items."""

    turn: tuple[str, ...]
    """The turn of which the client was handed calls, as the model made it."""

    answers: tuple[str, ...]
    """The answers to the other calls of that turn, to be joined with the client's results."""

    form: str = "text"
    """How what was found is said in it."""

    lead: int = 0
    """How many items of the model's stood at the end of the request that it answers."""

    def dump(self) -> bytes:
        """Return it as a store keeps it."""
        return compact_bytes(
            [_VERSION, self.calls, self.before, self.turn, self.answers, self.form, self.lead]
        )

    @classmethod
    def load(cls, kept: bytes) -> KeptTurn | None:
        """Return what a store kept, or None where that cannot be read."""
        try:
            value = parse(kept)
        except (ValueError, RecursionError):
            return None
        if not is_array(value) or len(value) != 7 or value[0] != _VERSION:
            return None
        calls = tuple((str(call[0]), str(call[1]), str(call[2])) for call in value[1])
        texts = (tuple(map(str, part)) for part in value[2:5])
        return cls(calls, *texts, form=str(value[5]), lead=int(value[6]))

    def is_of(self, calls: Sequence[tuple[str, str, Json]]) -> bool:
        """Whether a client speaks of the calls it was handed, all of them, unchanged.

        Args:
            calls: Id, name and arguments of each, the arguments as text or as an object.
        """
        if len(calls) != len(self.calls):
            return False
        ours = {call_id: (name, _read(arguments)) for call_id, name, arguments in self.calls}
        theirs = {call_id: (name, _read(arguments)) for call_id, name, arguments in calls}
        return ours == theirs


def _read(arguments: Json) -> Json:
    if not isinstance(arguments, str):
        return arguments if is_object(arguments) else None
    try:
        return parse(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
