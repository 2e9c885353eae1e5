"""The events of a session at one replica, which a client may come back for at another.

An event's id says at which replica it was sent. What followed an event of another replica is
fetched from there. What is sent to the client outside its requests where it does not listen is
passed on to where it does, unless every replica says it by itself.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from mcp.server.streamable_http import (
    GET_STREAM_KEY,
    EventCallback,
    EventId,
    EventMessage,
    StreamId,
)
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from toolfold.serve.http.events import EventRoom, SessionEvents
from toolfold.serve.replica.wire_ids import EventPlace, event_place

__all__ = ["Elsewhere", "Followed", "ReplicaEvents", "is_passed_on"]


class Elsewhere(Protocol):
    """The other replicas, for the events of one session."""

    async def replayed(
        self, events: ReplicaEvents, place: EventPlace, send: EventCallback
    ) -> StreamId | None:
        """Send what followed an event of another replica; return the stream to go on with."""
        ...

    def pass_on(self, events: ReplicaEvents, message: JSONRPCMessage) -> None:
        """Send a message to where the client listens, soon."""
        ...


class Followed(NamedTuple):
    """What followed an event on its stream."""

    events: list[EventMessage]
    last: int
    """The number of the last event that was looked at."""

    is_over: bool
    """Whether nothing more comes on the stream."""


class ReplicaEvents(SessionEvents):
    """The events of one session at this replica.

    Args:
        room: The room that it shares.
        replica: This replica.
        elsewhere: The other ones.
    """

    def __init__(self, room: EventRoom, replica: uuid.UUID, elsewhere: Elsewhere) -> None:
        super().__init__(room)
        self._replica = replica
        self._elsewhere = elsewhere
        self._came = asyncio.Event()
        self.session = ""
        """The session that they are of."""
        self.listens: Callable[[], bool] = lambda: False
        """Whether the client listens here for what belongs to none of its requests."""

    def event_id(self, number: int, stream: StreamId) -> EventId:
        """Return what a client calls an event."""
        return EventPlace(self._replica, number, stream).id

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep an event of a stream, and return its id."""
        event = await super().store_event(stream_id, message)
        self._came.set()
        if stream_id == GET_STREAM_KEY and is_passed_on(message) and not self.listens():
            assert message is not None
            self._elsewhere.pass_on(self, message)
        return event

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send what followed an event on its stream; return the stream, where it is known."""
        place = event_place(last_event_id)
        if place is None:
            return None
        if place.replica == self._replica:
            return await super().replay_events_after(str(place.number), send_callback)
        return await self._elsewhere.replayed(self, place, send_callback)

    async def followed(self, number: int, seconds: float) -> Followed | None:
        """Wait for what follows an event on its stream; None where the event is not kept.

        Args:
            number: The event.
            seconds: How long to wait where nothing has followed so far.
        """
        stream = self.stream_of(number)
        if stream is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (found := self.since(stream, number)):
                    self._came.clear()
                    await self._came.wait()
        found = self.since(stream, number)
        is_over = any(isinstance(e.message, JSONRPCResponse | JSONRPCError) for e in found)
        place = event_place(found[-1].event_id or "") if found else None
        return Followed(found, number if place is None else place.number, is_over)


def is_passed_on(message: JSONRPCMessage | None) -> bool:
    """Whether a message goes to where the client listens.

    That a list or a resource has changed every replica notices and says by itself.
    """
    return isinstance(message, JSONRPCRequest) or (
        isinstance(message, JSONRPCNotification) and message.method == "notifications/message"
    )
