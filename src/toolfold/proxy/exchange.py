"""One request of a client from its arrival to the end of its answer: what goes up, what comes down.

Pure: bytes in, bytes out. The door (`app.py`) owns sockets, time and threads; an exchange owns
what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

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

    def broken(self, message: str) -> bytes:
        """Return the error, in the client's dialect, of an upstream that broke off in mid-stream."""
        ...
