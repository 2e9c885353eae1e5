"""One request of a client from its arrival to the end of its answer: what goes up, what comes down.

Pure: bytes in, bytes out. The door (`app.py`) owns sockets, time and threads; an exchange owns
what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolfold.answer import Answer
from toolfold.runtime.model import Usage

ProxyDialect = Literal["openai-chat", "openai-responses", "anthropic-messages"]
"""What a client and its upstream speak."""


@dataclass(frozen=True, slots=True)
class Again:
    """The model searched: the next request to the upstream, in the same exchange.

    Args:
        body: The request's body.
        head: Bytes for the client that are ready now; empty where the answer is not streamed.
    """

    body: bytes
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete.

    Args:
        tail: The bytes for the client that are still missing: the end of a stream, or the whole
            body where the answer is not streamed.
        headers: What the door adds to the response where it has not begun yet.
        error: Why it is no answer, where the tail is an error in the client's dialect.
    """

    tail: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    error: str = ""


@dataclass(frozen=True, slots=True)
class Untouched:
    """Nothing of ours is in it: the bytes pass, and so does the answer.

    Args:
        body: The very bytes that came.
        why: Why, as one clause for a person.
    """

    body: bytes
    why: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The request does not go up.

    Args:
        status: The HTTP status.
        body: An error in the client's own dialect, JSON.
    """

    status: int
    body: bytes


@dataclass(slots=True)
class ExchangeReport:
    """What an exchange did, for records and headers."""

    tools_before: int = 0
    tools_after: int = 0
    tokens_before: int = 0
    """What the client's tools would have cost in each round."""

    tokens_after: int = 0
    """What those that went up cost in each round."""

    strategy: str = ""
    rounds: int = 0
    searches: int = 0
    """Calls that were answered inside."""

    mistakes: int = 0
    """Of those: calls that were wrong."""

    answers: list[tuple[str, str | None, str, Answer]] = field(
        default_factory=list[tuple[str, str | None, str, Answer]]
    )
    """Those calls: the name, which of the bridge's tools that is, the arguments, the answer."""

    handed: int = 0
    """Calls that went to the client."""

    recovered: int = 0
    """Calls that the model wrote as text, ours included."""

    recovered_handed: int = 0
    """Of those: calls that went to the client."""

    restored: int = 0
    """Turns of the history that were put back."""

    prefetched: int = 0
    """Tools that were named behind the user's message, before the model asked."""

    usage: Usage = field(default_factory=Usage)
    """The tokens of all rounds, as the upstream counts them."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers of ours."""
        return {
            "x-toolfold-rounds": str(self.rounds),
            "x-toolfold-recovered": str(self.recovered_handed),
            "x-toolfold-prompt-tokens": str(self.usage.prompt),
            "x-toolfold-completion-tokens": str(self.usage.completion),
            "x-toolfold-cached-tokens": str(self.usage.cached),
        }


class Exchange(Protocol):
    """One request of a client, folded.

    The door sends `body`, feeds what comes back into `receive` as it comes (streamed) and calls
    `end` when the upstream's response is complete. `Again` means one more round with the new
    body; `Finished` ends it. `end` and `open_exchange` may take long (a first index): the door
    calls them off the event loop.
    """

    body: bytes
    """What goes to the upstream in the first round."""
    drop_headers: frozenset[str]
    """Request headers, in lower case, that do not go up."""
    set_headers: Mapping[str, str]
    """Request headers that go up with another value."""
    is_streamed: bool
    """Whether the client asked for a stream."""
    report: ExchangeReport
    """What was done so far; complete once it is finished."""

    def receive(self, data: bytes) -> bytes:
        """Take a piece of a streamed response; return what the client gets of it now."""
        ...

    def end(self, body: bytes = b"") -> Again | Finished:
        """Take the end of a response, or a whole one that is not streamed."""
        ...

    def keep_alive(self) -> bytes:
        """Return what says to the client that work goes on, between two events."""
        ...

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return the error, in the client's dialect, of an upstream that broke off in mid-stream.

        Before any byte has gone out, or where the answer is not streamed, it is a whole body.

        Args:
            message: What happened.
            status: The status of an upstream that refused a later round.
            body: What it said then: its own kind of error reaches the client.
        """
        ...

    def refused(self, status: int, body: bytes) -> Again | None:
        """Take an upstream's error in place of an answer.

        Return the request in another form, to be sent in its place, or None where the error is
        the client's: its status, body and headers then go back as they came.
        """
        ...
