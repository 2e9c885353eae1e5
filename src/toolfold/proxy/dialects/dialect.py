"""What each dialect answers: where calls stand in a request, and how an answer is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from toolfold.proxy.exchange import ProxyDialect
from toolfold.proxy.json_spans import Edit
from toolfold.proxy.offered import Lowered
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.turns import AnsweredCall, HandedCall, KeptTurn, RoundTurn
from toolfold.strategy import FoundForm
from toolfold.tool import Json, ProviderApi, Shape

__all__ = ["AnswerWriter", "ClientTurn", "Dialect"]


class ClientTurn(NamedTuple):
    """A turn of the model as a client sends it back."""

    first: int
    """The place of its first item."""

    end: int
    """The place behind its last item."""

    calls: tuple[tuple[str, str, Json], ...]
    """Id, name and arguments of each call in it."""

    text: str


class AnswerWriter(Protocol):
    """One answer for the client, however many rounds it takes."""

    def begin(self) -> None:
        """Begin the next round."""
        ...

    def receive(self, data: bytes) -> bytes:
        """Take a piece of a stream; return what the client gets of it now."""
        ...

    def read(self, body: bytes) -> RoundTurn | None:
        """Take the end of a round; return what the model said.

        None where the answer is no model's: an error, or nothing that can be read.
        """
        ...

    @property
    def is_cut_off(self) -> bool:
        """Whether the round broke off where it cannot be passed as it came.

        That is a stream without an end in which there are calls, or which is not the first.
        """
        ...

    def as_it_came(self) -> bytes:
        """Return what is still missing of a round that nothing was changed in."""
        ...

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the end of the answer.

        Args:
            handed: The calls for the client.
            note: A text for the client, where the model left none.
        """
        ...

    @property
    def alias(self) -> tuple[str, str]:
        """The id that the client was told, and the one under which the server knows the answer.

        Empty where no later request speaks of an answer by its id.
        """
        ...

    def keep_alive(self) -> bytes:
        """Return what says that work goes on, between two events."""
        ...

    def broken(self, message: str) -> bytes:
        """Return the error of an upstream that broke off in mid-stream."""
        ...


class Dialect(Protocol):
    """How one API is spoken."""

    name: ProxyDialect
    shape: Shape
    items_key: str
    api: ProviderApi | None
    """What the providers' table calls it, where any provider of it defers tools."""

    def lowered(self, request: ProxiedRequest) -> Lowered:
        """Return a request as an upstream takes it that does not defer."""
        ...

    def why_untouched(self, request: ProxiedRequest) -> str:
        """Return why a request of this kind is never folded; empty where it may be."""
        ...

    def normal(self, item: Json) -> Json:
        """Return an item without what a client changes about it from request to request.

        Marks for the cache, which move on with every request, are taken out of it before.
        """
        ...

    def turns(self, request: ProxiedRequest) -> list[ClientTurn]:
        """Return the turns of the model in a request."""
        ...

    def restored(
        self, request: ProxiedRequest, turn: ClientTurn, kept: KeptTurn
    ) -> list[Edit] | None:
        """Return what puts a turn back as the model made it; None where that cannot be."""
        ...

    def lost(self, request: ProxiedRequest, turn: ClientTurn) -> list[Edit]:
        """Return what makes a turn good that was handed to the client and is kept no more."""
        ...

    def answers(self, answered: Sequence[AnsweredCall], form: FoundForm) -> tuple[str, ...]:
        """Return answers as they are kept: texts to be joined with results.

        Args:
            answered: The calls, each with its answer.
            form: How what was found is said to the model.
        """
        ...

    def results(self, answers: Sequence[str]) -> tuple[str, ...]:
        """Return answers as the items of a request that follow a turn which needs no others."""
        ...

    def writer(
        self,
        request: ProxiedRequest,
        *,
        streamed: bool,
        is_open: Callable[[str], bool],
        recovery: Recovery | None = None,
    ) -> AnswerWriter:
        """Return what reads the upstream's rounds and writes the client's answer.

        Args:
            request: The client's request.
            streamed: Whether the answer is streamed.
            is_open: Whether a call of this name is the client's own business.
            recovery: What reads calls that the model writes as text, where that is to be.
        """
        ...

    def error(self, message: str, status: int) -> bytes:
        """Return the body of an error."""
        ...

    def forced(self, request: ProxiedRequest) -> tuple[str, ...]:
        """Return the names of the tools that a request's `tool_choice` names."""
        ...
