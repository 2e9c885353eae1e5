"""What replicas tell and ask each other about the sessions of clients.

A client's message may come in at any replica, and may be meant for another one: the answer to a
question, word of a call that is to be given up, how far the client is with what it was asked. A
client comes back for a stream at any replica. What ends a session ends it everywhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventMessage, StreamId
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)

from toolfold import prompts
from toolfold._json_values import NotJsonError
from toolfold.serve.replica.replica_events import ReplicaEvents
from toolfold.serve.replica.wire_ids import EventPlace, is_asked_by
from toolfold.store.postgres.client_sessions import ClientSessions
from toolfold.store.postgres.replicas import ReplicaGoneError, Replicas
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, is_object

__all__ = ["HeldSessions", "SessionMail"]

_log = logging.getLogger(__name__)

TURN_SECONDS = 10.0
"""How long another replica waits for more of a stream before it is asked again, in seconds."""

_TO_ALL = frozenset({"notifications/cancelled", "notifications/roots/list_changed"})


class HeldSessions(Protocol):
    """The sessions that this replica holds."""

    def events_of(self, session: str) -> ReplicaEvents | None:
        """Return what was sent in one here; None where it is not held here."""
        ...

    async def hear(self, session: str, message: JSONRPCMessage) -> None:
        """Take a client's message that came in elsewhere."""
        ...

    async def say(self, session: str, message: JSONRPCMessage) -> None:
        """Send a client a message that comes from elsewhere, where it listens here."""
        ...

    async def ended(self, session: str) -> None:
        """One is over, whoever ended it."""
        ...

    async def wished(self, session: str) -> None:
        """What a client wants to be told was changed elsewhere."""
        ...

    async def revealed(self, session: str, tenant: str) -> None:
        """A conversation's list has grown elsewhere."""
        ...


class SessionMail:
    """This replica's part in it.

    Args:
        replicas: The replicas.
        rows: The sessions that there are.
        held: The sessions that this one holds.
        outcome: Finds what a request came to whose replica is gone, as a message of the
            protocol, where that was written down.
    """

    def __init__(
        self,
        replicas: Replicas,
        rows: ClientSessions,
        held: HeldSessions,
        outcome: Callable[[str, str], Any],
    ) -> None:
        self._replicas = replicas
        self._rows = rows
        self._held = held
        self._outcome = outcome
        self._tasks: set[asyncio.Task[None]] = set()
        replicas.on("session.message", self._message)
        replicas.on("session.push", self._push)
        replicas.on("session.events", self._events)
        replicas.on("session.ended", self._ended)
        replicas.on("session.wished", self._wished)
        replicas.on("session.revealed", self._revealed)

    # ---- to the others

    async def forwarded(self, session: str, message: Mapping[str, Json]) -> bool:
        """Pass a client's message on where it is meant for another replica.

        Returns:
            Whether it is for that one alone.

        Raises:
            StoreAwayError: It is, and cannot be passed on.
        """
        method, number = message.get("method"), message.get("id")
        if method in _TO_ALL:
            self.soon(self._tell_all("session.message", {"session": session, "message": message}))
            return False
        if method == "notifications/progress":
            params = message.get("params")
            number = params.get("progressToken") if is_object(params) else None
        elif method is not None:
            return False
        if is_asked_by(number, self._replicas.id):
            return False
        others = await self._replicas.others()
        asker = next((each for each in others if is_asked_by(number, each.id)), None)
        if asker is None:
            return False
        content: Json = {"session": session, "message": message}
        await self._replicas.tell(asker.id, "session.message", content)
        return True

    async def end(self, session: str) -> None:
        """Tell the others that a session is over."""
        await self._tell_all("session.ended", {"session": session})

    def wishes_changed(self, session: str) -> None:
        """Tell the others that a client wants to be told other things."""
        self.soon(self._tell_all("session.wished", {"session": session}))

    def reveal(self, session: str, tenant: str) -> None:
        """Tell the others that a conversation's list has grown."""
        self.soon(self._tell_all("session.revealed", {"session": session, "tenant": tenant}))

    async def _tell_all(self, verb: str, content: Json) -> None:
        with suppress(StoreAwayError, NotJsonError):
            for other in await self._replicas.others():
                await self._replicas.tell(other.id, verb, content)

    def soon(self, work: Any) -> None:
        """Have something done, and wait for nothing."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- streams

    def pass_on(self, events: ReplicaEvents, message: JSONRPCMessage) -> None:
        """Send a message to where the client listens, soon."""
        self.soon(self._pass_on(events.session, message))

    async def _pass_on(self, session: str, message: JSONRPCMessage) -> None:
        with suppress(StoreAwayError):
            listener = await asyncio.to_thread(self._rows.listener, session)
            if listener is not None and listener != self._replicas.id:
                content = {"session": session, "message": _plain(message)}
                await self._replicas.tell(listener, "session.push", content)

    async def replayed(
        self, events: ReplicaEvents, place: EventPlace, send: EventCallback
    ) -> StreamId | None:
        """Send what followed an event of another replica; return the stream to go on with."""
        listens = place.stream == GET_STREAM_KEY
        number = place.number
        while True:
            question = {"session": events.session, "after": number, "waits": not listens}
            try:
                # Whoever is not there is told nothing: a client may have made the id up.
                is_there = await self._replicas.is_there(place.replica)
                told = (
                    await self._replicas.ask(place.replica, "session.events", question)
                    if is_there
                    else None
                )
            except ReplicaGoneError:
                told = None
            except StoreAwayError:
                return None  # the client comes back once more
            if not is_object(told):
                return await self._without(events.session, place, send)
            for event in told["events"]:
                message = jsonrpc_message_adapter.validate_python(event["message"])
                await send(EventMessage(message, event["id"]))
            number = told["last"]
            if listens:
                return GET_STREAM_KEY  # from here on it is told here
            if told["is_over"]:
                return None

    async def _without(
        self, session: str, place: EventPlace, send: EventCallback
    ) -> StreamId | None:
        """Bring a stream to an end whose replica is gone."""
        if place.stream == GET_STREAM_KEY:
            return GET_STREAM_KEY
        if place.stream:
            message = await self._outcome(session, place.stream)
            await send(EventMessage(message or _unknown(place.stream)))
        return None

    # ---- from the others

    async def _message(self, content: Json) -> Json:
        session, message = content["session"], content["message"]
        await self._held.hear(session, jsonrpc_message_adapter.validate_python(message))
        return None

    async def _push(self, content: Json) -> Json:
        session, message = content["session"], content["message"]
        await self._held.say(session, jsonrpc_message_adapter.validate_python(message))
        return None

    async def _events(self, content: Json) -> Json:
        events = self._held.events_of(content["session"])
        if events is None:
            return None
        seconds = TURN_SECONDS if content["waits"] else 0.0
        found = await events.followed(content["after"], seconds)
        if found is None:
            return None
        told = [{"message": _plain(e.message), "id": e.event_id} for e in found.events]
        return {"events": told, "last": found.last, "is_over": found.is_over}

    async def _ended(self, content: Json) -> Json:
        await self._held.ended(content["session"])
        return None

    async def _wished(self, content: Json) -> Json:
        await self._held.wished(content["session"])
        return None

    async def _revealed(self, content: Json) -> Json:
        await self._held.revealed(content["session"], content["tenant"])
        return None


def request_id(stream: str) -> int | str:
    """Return the id of the request that a stream belongs to; clients count them."""
    is_number = stream.isascii() and stream.isdecimal() and len(stream) < 16
    return int(stream) if is_number and str(int(stream)) == stream else stream


def _unknown(stream: str) -> JSONRPCError:
    error = ErrorData(code=INTERNAL_ERROR, message=prompts.REPLICA_GONE)
    return JSONRPCError(jsonrpc="2.0", id=request_id(stream), error=error)


def _plain(message: JSONRPCMessage) -> Json:
    return message.model_dump(mode="json", by_alias=True, exclude_unset=True)
