"""Sessions over HTTP that go on at any replica.

A session is written down as it is opened. A replica that is asked in one that it does not hold
looks it up: where it is the asker's own, it opens it once more by the client's own words, and
serves it from then on; for anybody else there is no such session. What a replica holds is a copy.
It lets go of one that was idle, or of which it has too many, and the session goes on elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import authorization_context
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import GET_STREAM_KEY, StreamableHTTPServerTransport
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification

from toolfold._json_values import NotJsonError, compact, parse_strict
from toolfold.serve.http.customs import AsgiScope, Gone, Send
from toolfold.serve.http.events import EventRoom, ResumableSessions
from toolfold.serve.http.presence import TooManyError
from toolfold.serve.http.rate_limit import Message, Receive
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.mcp._once import ARRIVED
from toolfold.serve.principals import principal_of
from toolfold.serve.replica.call_journal import CallJournal, JournaledCall
from toolfold.serve.replica.http_messages import (
    answer,
    body_of,
    listens,
    message_of,
    opening_of,
    session_in,
)
from toolfold.serve.replica.parked_calls import ParkedCalls
from toolfold.serve.replica.replayed_requests import posted
from toolfold.serve.replica.replica_events import ReplicaEvents
from toolfold.serve.replica.session_copy import SessionCopy
from toolfold.serve.replica.session_mail import SessionMail
from toolfold.serve.replica.session_wishes import SessionWishes
from toolfold.serve.replica.wire_ids import first_request_id
from toolfold.store.postgres.client_sessions import ClientSession, ClientSessions
from toolfold.store.store import StoreAwayError

if TYPE_CHECKING:
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.mcp.connected_clients import ConnectedClient
    from toolfold.serve.mcp.downstream import ClientRequest
    from toolfold.serve.replica.membership import Membership

__all__ = ["RoamingSessions"]

_log = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "idempotency-key"
"""The header in which a client without a session names a call that it may send once more."""

BACK_SOON = 0.25
"""How often a session is tried to be written down whose database was away, in seconds."""

PACE = 5.0
"""How often the rows of sessions in use are touched, in seconds."""

_SWEEPS = 12
"""Every so many times what is over is deleted, too."""

_ID = re.compile(r"[0-9a-f]{32}\Z")


class RoamingSessions(ResumableSessions):
    """The sessions that this replica holds, among all that there are.

    Args:
        server: The server.
        gateway: The gateway.
        membership: The replicas.
        each: How many sessions of others one caller may have go on here.
        settings: What the library's own manager takes.
    """

    def __init__(
        self,
        server: Server[Any],
        gateway: Gateway,
        membership: Membership,
        *,
        each: int,
        **settings: Any,
    ) -> None:
        super().__init__(server, **settings)
        idle = self.session_idle_timeout
        assert idle is not None
        self._gateway = gateway
        self._replica = membership.replicas.id
        self._each = each
        self._pace = min(PACE, idle / 4)
        self._rows = ClientSessions(membership.database, idle + 2 * self._pace)
        self.journal = CallJournal(membership.replicas, membership.database)
        """The calls that do not run twice."""
        self._mail = SessionMail(membership.replicas, self._rows, self, self.journal.outcome)
        self._wishes = SessionWishes(gateway, self._rows, self._mail)
        self._parked = ParkedCalls(gateway.parking, membership.replicas)
        self._copies: dict[str, SessionCopy] = {}
        self._adopting: dict[str, asyncio.Event] = {}
        self._to_end: set[str] = set()
        self.on_ended: Callable[[str], None] = lambda session: None
        """Told which sessions are over."""

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Hold sessions as long as the block lasts."""
        async with super().run():
            assert self._task_group is not None
            self._task_group.start_soon(self._keeping)
            yield

    # ---- requests

    async def _handle_stateful_request(
        self, scope: AsgiScope, receive: Receive, send: Send
    ) -> None:
        scope[ARRIVED] = time.monotonic()
        named = headers_of(scope, b"mcp-session-id")
        if not named:
            await self._open(scope, receive, send)
            return
        session = named[0]
        try:
            await self._adopt(session, scope)
        except StoreAwayError:
            await answer(send, 503, b"sessions cannot be looked up now\n", retry=True)
            return
        except TooManyError:
            await answer(send, 503, b"too many sessions\n", retry=True)
            return
        copy = self._copies.get(session)
        if copy is None or copy.session.owner != _owner(scope):
            await super()._handle_stateful_request(scope, receive, send)
            return
        copy.busy += 1
        try:
            await self._serve(copy, scope, receive, send)
        finally:
            copy.busy -= 1
            copy.is_used = True
            copy.last = time.monotonic()

    async def _serve(
        self, copy: SessionCopy, scope: AsgiScope, receive: Receive, send: Send
    ) -> None:
        if scope["method"] == "POST":
            await self._post(copy, scope, receive, send)
            return
        if scope["method"] == "DELETE":
            await self._end(copy.session.id, principal_of(scope).tenant)
        elif scope["method"] == "GET" and listens(scope):
            await self._listen(copy.session.id, scope, receive, send)
            return
        await super()._handle_stateful_request(scope, receive, send)

    async def _post(
        self, copy: SessionCopy, scope: AsgiScope, receive: Receive, send: Send
    ) -> None:
        """Take a message, or pass it on to the replica that it is for."""
        body, receive = await body_of(receive)
        message = message_of(body)
        if message is not None and "method" in message and "id" in message:
            if self._gateway.calls.is_closing:
                await answer(send, 503, b"the gateway is stopping\n", retry=True)
                return
            async with self._alone(copy, str(message["id"])):
                await super()._handle_stateful_request(scope, receive, send)
            return
        try:
            is_forwarded = message is not None and await self._mail.forwarded(
                copy.session.id, message
            )
        except StoreAwayError:
            await answer(send, 503, b"it cannot be passed on now\n", retry=True)
            return
        except NotJsonError:
            is_forwarded = False
        if is_forwarded:
            await answer(send, 202, b"", session=copy.session.id)
        else:
            await super()._handle_stateful_request(scope, receive, send)

    @asynccontextmanager
    async def _alone(self, copy: SessionCopy, request: str) -> AsyncGenerator[None]:
        """Answer a request that is sent once more, and not whoever waited for it before.

        The library has one stream for an id; the one before would take the new one with it as
        it ends.
        """
        streams = copy.streams
        while (before := streams.get(request)) is not None:
            transport = self._server_instances.get(copy.session.id)
            if transport is not None:
                transport.close_sse_stream(request)
            await before.wait()
        streams[request] = done = asyncio.Event()
        try:
            yield
        finally:
            del streams[request]
            done.set()

    async def _listen(self, session: str, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve what belongs to no request; the others are to know that it is served here."""
        if self._gateway.calls.is_closing:
            await answer(send, 503, b"the gateway is stopping\n", retry=True)
            return
        with suppress(StoreAwayError):
            await asyncio.to_thread(self._rows.listens, session, self._replica)
        try:
            await super()._handle_stateful_request(scope, receive, send)
        finally:
            if not self._is_listening(session):
                self._mail.soon(self._listens_no_more(session))

    async def _listens_no_more(self, session: str) -> None:
        with suppress(StoreAwayError):
            await asyncio.to_thread(self._rows.listens_no_more, session, self._replica)

    def _is_listening(self, session: str) -> bool:
        transport = self._server_instances.get(session)
        return transport is not None and GET_STREAM_KEY in transport._request_streams  # pyright: ignore[reportPrivateUsage]

    # ---- a session begins

    async def _open(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Open a session; it is written down before the client knows of it."""
        body, receive = await body_of(receive)
        opening = opening_of(body)
        owner = _owner(scope)

        async def noted(message: Message) -> None:
            if opening is not None and message["type"] == "http.response.start":
                session = session_in(message)
                if message["status"] < 400 and session is not None:
                    await self._write(ClientSession(session, owner, opening))
            await send(message)

        await super()._handle_stateful_request(scope, receive, noted)

    async def _write(self, session: ClientSession) -> None:
        copy = self._copies[session.id] = SessionCopy(session, is_written=False)
        try:
            await asyncio.to_thread(self._rows.open, session)
            copy.is_written = True
        except StoreAwayError as error:
            _log.warning("a session is known to this replica alone for now: %s", error)
            self._mail.soon(self._write_later(copy))

    async def _write_later(self, copy: SessionCopy) -> None:
        """Write a session down as soon as the database is back: until then it cannot move."""
        while not copy.is_written and self._copies.get(copy.session.id) is copy:
            await asyncio.sleep(BACK_SOON)
            with suppress(StoreAwayError):
                await asyncio.to_thread(self._rows.open, copy.session)
                copy.is_written = True

    async def _adopt(self, session: str, scope: AsgiScope) -> None:
        """Go on with a session of the asker's that was opened elsewhere, if there is one."""
        while (other := self._adopting.get(session)) is not None:
            await other.wait()
        if session in self._server_instances or not _ID.match(session):
            return
        self._adopting[session] = done = asyncio.Event()
        try:
            found = await asyncio.to_thread(self._rows.find, session, _owner(scope))
            if found is not None:
                await self._open_again(found, scope)
        finally:
            del self._adopting[session]
            done.set()

    async def _open_again(self, found: ClientSession, scope: AsgiScope) -> None:
        await self._make_room(found.owner)
        transport = self._admit_session(authorization_context(scope["user"]))
        if transport is None or transport.mcp_session_id is None:
            raise TooManyError("sessions")
        self._rename(transport, found.id)
        self._copies[found.id] = SessionCopy(found, is_written=True, is_adopted=True)
        params = parse_strict(found.opening)
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        await self._serve_opening_request(transport, *posted(scope, opening))
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await transport.handle_request(*posted(scope, ready, found.id))

    def _rename(self, transport: StreamableHTTPServerTransport, session: str) -> None:
        """Have a new session be called what its client calls it."""
        made = transport.mcp_session_id
        assert made is not None
        transport.mcp_session_id = session
        for table in (self._server_instances, self._session_owners, self._events):
            if made in table:
                table[session] = table.pop(made)  # pyright: ignore[reportArgumentType, reportCallIssue]
        self._prepare(transport, session)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        transport = super()._admit_session(requestor)
        if transport is not None and transport.mcp_session_id is not None:
            self._prepare(transport, transport.mcp_session_id)
        return transport

    def _prepare(self, transport: StreamableHTTPServerTransport, session: str) -> None:
        events = self._events[session]
        assert isinstance(events, ReplicaEvents)
        events.session = session
        events.listens = lambda: self._is_listening(session)

    def _new_events(self, room: EventRoom) -> ReplicaEvents:
        return ReplicaEvents(room, self._replica, self._mail)

    async def _make_room(self, owner: str) -> None:
        """Let go of the copy that its owner used least lately, where there are too many."""
        own = [copy for copy in self._copies.values() if copy.session.owner == owner]
        adopted = [copy for copy in own if copy.is_adopted]
        is_full = self.max_sessions is not None and len(self._server_instances) >= self.max_sessions
        if is_full or len(adopted) >= self._each:
            idle = [copy for copy in own if copy.is_written and not copy.busy]
            if idle:
                await self._drop(min(idle, key=lambda copy: copy.last).session.id)

    # ---- a session ends

    async def _drop(self, session: str) -> None:
        """Let go of a copy."""
        transport = self._server_instances.get(session)
        if transport is not None:
            await self._discard_session(session, transport)

    async def _discard_session(
        self, session_id: str, transport: StreamableHTTPServerTransport
    ) -> None:
        if self._server_instances.get(session_id, transport) is transport:
            self._copies.pop(session_id, None)
            await super()._discard_session(session_id, transport)
        elif not transport.is_terminated:  # it has come back while this copy was let go of
            await transport.terminate()

    async def _end(self, session: str, tenant: str) -> None:
        """Have a session be over, here and everywhere."""
        try:
            await asyncio.to_thread(self._rows.end, session)
            await self._mail.end(session)
            await self._gateway.sessions.end(session, tenant)
        except StoreAwayError:
            self._to_end.add(session)

    async def end(self, is_gone: Gone) -> None:
        """End the sessions of some callers, who are let in no more."""
        await super().end(is_gone)
        with suppress(StoreAwayError):
            owners = await asyncio.to_thread(self._rows.owners)
            gone = [owner for owner in owners if is_gone(*json.loads(owner))]
            if gone:
                await asyncio.to_thread(self._rows.end_of, gone)

    # ---- for as long as they last

    async def _keeping(self) -> None:
        turns = 0
        while True:
            await asyncio.sleep(self._pace)
            turns += 1
            try:
                await self._keep()
                if turns % _SWEEPS == 0:
                    await asyncio.to_thread(self._rows.sweep)
                    await self.journal.sweep()
            except StoreAwayError:
                pass
            except Exception:  # all sessions would end with this
                _log.exception("the rows of sessions are not looked after for now")

    async def _keep(self) -> None:
        """Touch the rows of sessions in use; write those that are missing, drop those ended."""
        for session in list(self._to_end):
            await asyncio.to_thread(self._rows.end, session)
            self._to_end.discard(session)
        used = {key: copy for key, copy in self._copies.items() if copy.busy or copy.is_used}
        if not used:
            return
        known = await asyncio.to_thread(self._rows.touch, list(used))
        # Who began to listen while the database was away is not known of there.
        if listening := [key for key in used if self._is_listening(key)]:
            await asyncio.to_thread(self._rows.listen_still, listening, self._replica)
        for key, copy in used.items():
            copy.is_used = False
            if known.get(key):
                await self.ended(key)
            elif key not in known and key in self._copies:
                await asyncio.to_thread(self._rows.open, copy.session)
                copy.is_written = True

    def close_streams(self) -> None:
        """Have clients listen elsewhere from now on."""
        for transport in list(self._server_instances.values()):
            transport.close_standalone_sse_stream()

    # ---- what the others tell

    def events_of(self, session: str) -> ReplicaEvents | None:
        """Return what was sent in a session here; None where it is not held here."""
        events = self._events.get(session)
        return events if isinstance(events, ReplicaEvents) else None

    async def hear(self, session: str, message: JSONRPCMessage) -> None:
        """Take a client's message that came in elsewhere."""
        transport = self._server_instances.get(session)
        if transport is None:
            return
        is_roots = isinstance(message, JSONRPCNotification) and "roots" in message.method
        if is_roots:
            for client in self._gateway.clients:
                if client.key == session:
                    self._gateway.news.roots_changed(client)
        elif (writer := transport._read_stream_writer) is not None:  # pyright: ignore[reportPrivateUsage]
            await writer.send(SessionMessage(message))

    async def say(self, session: str, message: JSONRPCMessage) -> None:
        """Send a client a message that comes from elsewhere, where it listens here."""
        transport = self._server_instances.get(session)
        if transport is not None and (writer := transport._write_stream) is not None:  # pyright: ignore[reportPrivateUsage]
            await writer.send(SessionMessage(message))

    async def ended(self, session: str) -> None:
        """A session is over, whoever ended it."""
        await self._drop(session)
        self.on_ended(session)

    async def wished(self, session: str) -> None:
        """What a client wants to be told was changed elsewhere."""
        await self._wishes.changed(session)

    async def revealed(self, session: str, tenant: str) -> None:
        """A conversation's list has grown elsewhere: here it is known before it is asked for."""
        if session in self._copies:
            await self._gateway.sessions.begun(session, tenant)
        self._gateway.news.revealed(session)

    # ---- what the gateway tells

    def joined(self, client: ConnectedClient) -> None:
        """A client is connected: it is to be told what it wished for elsewhere."""
        copy = self._copies.get(client.key)
        if copy is not None:
            self._mail.soon(self._wishes.joined(client, copy.session.wishes))

    async def has_wished(self, client: ConnectedClient) -> None:
        """A client of a session has said what it wants to be told."""
        copy = self._copies.get(client.key)
        if copy is not None:
            wishes = await self._wishes.keep(client)
            copy.session = copy.session._replace(wishes=wishes)

    def number_questions(self, connection: Connection) -> None:
        """Have what is asked in a session be numbered so that every replica knows who asks."""
        asker: Any = connection.outbound
        asker._next_id = first_request_id(self._replica)

    def repeatable(self, request: ClientRequest) -> JournaledCall | None:
        """Return what keeps a client's call from running twice; None where it has no name.

        In a session that is its id; outside of one it is what the client itself calls it.
        """
        session, name = request.key, request.request_id
        if session not in self._copies:
            name = (request.headers or {}).get(IDEMPOTENCY_KEY)
            if name is None:
                return None
            session = compact(["", request.principal.name, request.principal.profile])
        return JournaledCall(self.journal, session, name, request.params, request.arrived)

    def has_revealed(self, session: str, tenant: str) -> None:
        """A conversation's list has grown here."""
        if session in self._copies:
            self._mail.reveal(session, tenant)


def _owner(scope: AsgiScope) -> str:
    """Return whose a session is: what begins under one profile goes on under no other."""
    principal = principal_of(scope)
    return compact([principal.name, principal.profile])
