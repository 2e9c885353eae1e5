"""What answers have in common in every dialect: rounds that are read, and what may go out of them.

A streamed answer passes events on as they come and holds back those that may be of a call of
ours; one in a single piece is read when it is whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from toolfold.proxy.dialects.events import (
    EVENT_LIMIT,
    Beginning,
    is_taken,
    reply_of,
    value_of,
)
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.turns import ModelCall, RoundTurn
from toolfold.runtime.clients._endpoint import Whole
from toolfold.runtime.clients._exchange import ReplyReader
from toolfold.runtime.clients._sse import EventReader, EventTooLongError, ServerSentEvent
from toolfold.runtime.model import Reply
from toolfold.tool import Json, is_object

__all__ = ["CUT", "StreamedAnswer", "WholeAnswer", "recovered"]

CUT = frozenset({"length", "refused"})
"""Why a reply stops that the model did not bring to its end."""


class StreamedAnswer(ABC):
    """A streamed answer, however many rounds it takes.

    Args:
        reader: Makes what puts a round's reply together.
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, reader: Callable[[], ReplyReader], recovery: Recovery | None) -> None:
        self._make_reader = reader
        self._recovery = recovery
        self._round = 0
        self._beginning = Beginning()

    def begin(self) -> None:
        """Begin the next round."""
        self._round += 1
        self._events = EventReader(EVENT_LIMIT)
        self._reader = self._make_reader()
        self._is_foreign = False
        """Whether something came that is no event of a reply: from then on all passes."""
        self._rest: bytes = b""
        """What goes out before the end of the round."""
        self._unread = b""
        """What came as long as it was no event: where it stays so, it passes as it came."""
        self._is_heard = False

    def receive(self, data: bytes) -> bytes:
        """Take a piece of a stream; return what the client gets of it now."""
        self._unread += b"" if self._is_heard else data
        try:
            events = self._events.feed(data)
        except EventTooLongError:
            self._is_foreign = self._is_heard = True
            unread, self._unread = self._unread or data, b""
            return self._beginning.before(unread)
        if events:
            self._is_heard, self._unread = True, b""
        return self._beginning.before(b"".join(map(self._event, events)))

    def read(self, body: bytes) -> RoundTurn | None:
        """Take the end of a round; return what the model said."""
        last = self._events.close()
        self._rest = b"".join(map(self._event, last)) if last else self._unread
        if self._is_foreign or not self._is_begun:
            return None
        reply = reply_of(self._reader)
        return None if reply is None else self._turn(reply)

    @property
    def is_cut_off(self) -> bool:
        """Whether the stream had no end, in a round that cannot be passed as it came."""
        if self._is_foreign or self._is_ended:
            return self._is_foreign and self._holds_calls
        return self._round > 1 or self._holds_calls

    @property
    def alias(self) -> tuple[str, str]:
        """Nothing: no later request speaks of an answer by its id."""
        return "", ""

    def keep_alive(self) -> bytes:
        """Return a comment, which every reader of events passes over."""
        return b": keep-alive\n\n"

    @property
    def _is_begun(self) -> bool:
        """Whether the round has come so far that it can be read."""
        return self._reader.is_begun or self._reader.is_ended

    @property
    def _is_ended(self) -> bool:
        """Whether the round has come to its end."""
        return self._reader.is_ended

    @property
    @abstractmethod
    def _holds_calls(self) -> bool:
        """Whether a call of the round waits to be handed over."""

    @abstractmethod
    def _event(self, came: ServerSentEvent) -> bytes:
        """Take an event; return what the client gets of it now."""

    @abstractmethod
    def _turn(self, reply: Reply) -> RoundTurn:
        """Return what a reply says; put what of it may go out now behind the rest."""


class WholeAnswer(ABC):
    """An answer in one piece, however many rounds it takes.

    Args:
        reader: Makes what reads a round's reply.
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, reader: Callable[[], ReplyReader], recovery: Recovery | None) -> None:
        self._make_reader = reader
        self._recovery = recovery
        self._body = b""

    def begin(self) -> None:  # noqa: B027
        """Begin the next round."""

    def receive(self, data: bytes) -> bytes:
        """Take nothing: the answer comes whole."""
        return b""

    def read(self, body: bytes) -> RoundTurn | None:
        """Take an answer; return what the model said."""
        self._body = body
        reader, value = self._make_reader(), value_of(body)
        if not is_taken(reader, Whole(value)) or (reply := reply_of(reader)) is None:
            return None
        return self._turn(reply, value) if is_object(value) else None

    @property
    def is_cut_off(self) -> bool:
        """Never: the answer comes whole."""
        return False

    def as_it_came(self) -> bytes:
        """Return the last answer."""
        return self._body

    @property
    def alias(self) -> tuple[str, str]:
        """Nothing: the client is told the last round's id."""
        return "", ""

    def keep_alive(self) -> bytes:
        """Return white space, which may stand before any JSON."""
        return b"\n"

    @abstractmethod
    def _turn(self, reply: Reply, answer: dict[str, Json]) -> RoundTurn | None:
        """Return what a reply says, and keep the answer; None where its shape is another."""


def recovered(recovery: Recovery | None, reply: Reply, prefix: str) -> tuple[ModelCall, ...]:
    """Return the calls that a reply wrote as text, where it made none.

    Args:
        recovery: What reads them, where that is to be.
        reply: The reply.
        prefix: What ids of calls begin with in the dialect.
    """
    if recovery is None or reply.message.calls or reply.stop == "refused":
        return ()
    return recovery.calls(reply.message.text, prefix)
