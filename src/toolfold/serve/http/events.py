"""What was sent on the streams of a session, kept for a client that lost its connection.

Clients of 2025-11-25 come back with the id of the last event they saw and get what followed
on that stream. Each session keeps its own events: an id means nothing in another session.
All of them together stay within a bound, and so does each; the oldest go first, and whoever
comes back for one that is gone gets nothing, as if the stream had ended.

Where a server closes the stream of a call and is to be asked for the rest, the client's
stream is closed likewise, and what the call comes to is kept here until the client is back.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from contextvars import ContextVar
from typing import Any, NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import (
    EventCallback,
    EventId,
    EventMessage,
    EventStore,
    StreamableHTTPServerTransport,
    StreamId,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage, RequestId

from toolfold.dispatch.outputs import json_size
from toolfold.serve.http.customs import Gone

__all__ = ["EventRoom", "RequestStreams", "ResumableSessions", "SessionEvents"]

EVENTS_AT_MOST = 256
"""How many events of one session are kept."""

BYTES_AT_MOST = 64 * 1024 * 1024
"""How much the events of all sessions may hold together."""

RETRY_MILLISECONDS = 1_000
"""After what time a client that lost its connection should come back."""

_EMPTY = 64
_RESUMED: ContextVar[int | None] = ContextVar("resumed", default=None)
"""The last event that was looked at where this task takes a stream up again."""


class _Event(NamedTuple):
    stream: StreamId
    message: JSONRPCMessage | None
    size: int


class EventRoom:
    """The room that the events of all sessions share.

    Args:
        limit: How many bytes it has.
    """

    def __init__(self, limit: int = BYTES_AT_MOST) -> None:
        self._limit = limit
        self._order: deque[tuple[SessionEvents, int]] = deque()
        self._count = 0
        self.size = 0
        """How much is held."""

    def add(self, owner: SessionEvents, number: int, size: int) -> None:
        """Take in an event, and let the oldest of all go where there is no room."""
        self._order.append((owner, number))
        self._count += 1
        self.size += size
        while self.size > self._limit and self._order:
            oldest, its_number = self._order.popleft()
            oldest.drop(its_number)
        if len(self._order) > 2 * self._count + _EMPTY:
            self._order = deque((its, n) for its, n in self._order if n in its)

    def remove(self, size: int) -> None:
        """An event is kept no more."""
        self._count -= 1
        self.size -= size


class SessionEvents(EventStore):
    """The events of one session.

    Args:
        room: The room that it shares.
    """

    def __init__(self, room: EventRoom) -> None:
        self._room = room
        self._events: OrderedDict[int, _Event] = OrderedDict()
        self._last = 0

    def __contains__(self, number: int) -> bool:
        return number in self._events

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._last

    def stream_of(self, number: int) -> StreamId | None:
        """Return the stream of an event, where it is still kept."""
        event = self._events.get(number)
        return None if event is None else event.stream

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep an event of a stream, and return its id."""
        self._last += 1
        size = _EMPTY + (0 if message is None else _size(message))
        self._events[self._last] = _Event(stream_id, message, size)
        self._room.add(self, self._last, size)
        while len(self._events) > EVENTS_AT_MOST:
            self.drop(next(iter(self._events)))
        return self.event_id(self._last, stream_id)

    def event_id(self, number: int, stream: StreamId) -> EventId:
        """Return what a client calls an event."""
        return str(number)

    def drop(self, number: int) -> None:
        """Let an event go, where it is still kept."""
        event = self._events.pop(number, None)
        if event is not None:
            self._room.remove(event.size)

    def close(self) -> None:
        """Let all of them go: the session is over."""
        for number in list(self._events):
            self.drop(number)

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send what followed an event on its stream; return the stream, where it is known."""
        is_number = last_event_id.isascii() and last_event_id.isdecimal()
        last = int(last_event_id) if is_number and len(last_event_id) < 20 else 0
        seen = self._events.get(last)
        if seen is None:
            return None
        while last < self._last:  # more may come while they are sent
            missed, last = self.since(seen.stream, last), self._last
            for event in missed:
                await send_callback(event)
        _RESUMED.set(last)
        return seen.stream

    def since(self, stream: StreamId, number: int) -> list[EventMessage]:
        """Return the messages of a stream that came after an event."""
        return [
            EventMessage(event.message, self.event_id(each, stream))
            for each, event in self._events.items()
            if each > number and event.stream == stream and event.message is not None
        ]


def _size(message: JSONRPCMessage) -> int:
    body: Any = getattr(message, "result", None) or getattr(message, "params", None)
    return json_size(body) if isinstance(body, dict) else _EMPTY


_Ends = tuple[MemoryObjectSendStream[EventMessage], MemoryObjectReceiveStream[EventMessage]]


class RequestStreams(dict[RequestId, _Ends]):
    """The streams of a session that somebody listens on.

    One that is taken up again is sent what was missed, and joins a little later. What comes
    in between is put into it as it joins: the answer of a call would be waited for in vain.

    Args:
        events: What was sent in the session.
    """

    def __init__(self, events: SessionEvents) -> None:
        super().__init__()
        self._events = events

    def __setitem__(self, stream: RequestId, ends: _Ends) -> None:
        super().__setitem__(stream, ends)
        last = _RESUMED.get()
        if last is None:
            return
        try:
            for event in self._events.since(str(stream), last):
                ends[0].send_nowait(event)
        except anyio.WouldBlock:
            ends[0].close()  # the client comes back for the rest


class ResumableSessions(StreamableHTTPSessionManager):
    """Sessions over HTTP whose streams can be taken up again, each with events of its own.

    Args:
        server: The server.
        settings: What the library's own manager takes.
    """

    def __init__(self, server: Server[Any], **settings: Any) -> None:
        super().__init__(server, retry_interval=RETRY_MILLISECONDS, **settings)
        self._room = EventRoom()
        self._events: dict[str, SessionEvents] = {}

    # The library has one store for all sessions and calls streams by their requests' ids,
    # which two clients count alike. It takes the store for a session where it admits it.
    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        self.event_store = events = self._new_events(self._room)
        transport = super()._admit_session(requestor)
        if transport is not None and transport.mcp_session_id is not None:
            self._events[transport.mcp_session_id] = events
            transport._request_streams = RequestStreams(events)  # pyright: ignore[reportPrivateUsage]
        return transport

    def _new_events(self, room: EventRoom) -> SessionEvents:
        """Return what keeps the events of a new session."""
        return SessionEvents(room)

    async def end(self, is_gone: Gone) -> None:
        """End the sessions of some callers, who are let in no more."""
        theirs = [
            session
            for session, owner in self._session_owners.items()
            if is_gone(owner["client_id"], owner["subject"] or "")
        ]
        for session in theirs:
            transport = self._server_instances.get(session)
            if transport is not None:
                await self._discard_session(session, transport)

    async def _discard_session(
        self, session_id: str, transport: StreamableHTTPServerTransport
    ) -> None:
        events = self._events.pop(session_id, None)
        await super()._discard_session(session_id, transport)
        if events is not None:
            events.close()
