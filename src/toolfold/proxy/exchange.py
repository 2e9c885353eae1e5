"""One request of a client from its arrival to the end of its answer: what goes up, what comes down.

Pure: bytes in, bytes out. The door (`app.py`) owns sockets, time and threads; an exchange owns
what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolfold.dispatch.records import SearchRecord

__all__ = [
    "Again",
    "Destination",
    "Exchange",
    "Finished",
    "ProxyDialect",
    "Refused",
    "Tally",
    "Untouched",
]

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
    """

    tail: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Destination:
    """What is known of the upstream that a request goes to.

    Args:
        name: What the configuration calls it.
        url: Its base URL.
        recover: Whether a text that is a call of an offered tool becomes one.
        searches: Whether it understands a client's own tool search (`defer_loading`,
            references); None where its address and the model are to tell.
    """

    name: str
    url: str
    recover: bool = False
    searches: bool | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """What an exchange came to so far, for the records.

    Args:
        model: The model that was asked.
        tools: How many tools the client sent.
        tokens_before: What their definitions would have cost, in every round.
        tokens_after: What those that were sent cost.
        rounds: How often the upstream was asked.
        searches: The searches, descriptions and wrong calls that were answered inside.
        prompt_tokens: As the upstream reports them, of all rounds.
        cached_tokens: Those of them that its cache had.
        completion_tokens: As the upstream reports them, of all rounds.
    """

    model: str = ""
    tools: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    rounds: int = 0
    searches: tuple[SearchRecord, ...] = ()
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Untouched:
    """The request goes on as it came, and so does the answer.

    Args:
        reason: Why, in a few words.
        tally: What is known of the request.
    """

    reason: str
    tally: Tally = Tally()


@dataclass(frozen=True, slots=True)
class Refused:
    """The request does not go on.

    Args:
        status: The answer's status.
        body: The error, in the client's dialect.
    """

    status: int
    body: bytes


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

    def receive(self, data: bytes) -> bytes:
        """Take a piece of a streamed response; return what the client gets of it now."""
        ...

    def end(self, body: bytes = b"") -> Again | Finished:
        """Take the end of a response, or a whole one that is not streamed."""
        ...

    def keep_alive(self) -> bytes:
        """Return what says to the client that work goes on, between two events."""
        ...

    def broken(self, message: str, body: bytes = b"") -> bytes:
        """Return the error, in the client's dialect, of an upstream that broke off in mid-stream.

        Args:
            message: What happened.
            body: What the upstream said itself, where a later round was refused: the error is
                of its kind.
        """
        ...

    def tally(self) -> Tally:
        """Return what it came to so far."""
        ...
