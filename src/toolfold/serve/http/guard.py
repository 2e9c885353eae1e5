"""The door that every HTTP request goes through before the gateway sees it.

In this order: is it meant for this host (a page that a browser opened may have had its
name pointed here), does it come from a page that may ask, whose token does it carry, how
often did they ask and how much of theirs is under way, how long is the body and how long
does it take to come. A refusal says which of these it was and nothing
of what stands behind the door.

Two paths have rules of their own: `/healthz` is open to everybody, so whoever answers it
may say no more than that the gateway stands; `/metrics`, which names servers and tools,
exists only for those who may know of all of them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold._bounds import cut, visible
from toolfold.serve.http.addresses import Hosts, Origins, check_bind, is_loopback
from toolfold.serve.http.customs import (
    App,
    AsgiScope,
    Customs,
    Gone,
    McpCustoms,
    Send,
)
from toolfold.serve.http.door_rules import DoorRules
from toolfold.serve.http.presence import Presence, TooManyError, Visit
from toolfold.serve.http.rate_limit import (
    Message,
    Rates,
    Receive,
    SharedRates,
    TooLargeError,
    burst_of,
    read_within,
    shared_rates,
)
from toolfold.serve.http.refusal import RefusedError as _Refusal
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import (
    ADMIN,
    Principal,
    TokenTable,
    bind,
    principal_of,
)

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["DoorRules", "Guard", "Hosts", "Origins", "check_bind", "is_loopback"]

_log = logging.getLogger(__name__)

_ONE_MORE = 0.1
"""How long nobody must have asked before the last streams end, in seconds: a client that has
its answer may ask one thing more, as for the list of tools."""

_TOLD_AT_MOST = 100
_ADMIN_RATE = 600
"""Requests a minute for the admin, and for all who guess at their token."""

_GUESSES = "\0guesses"
"""What counts those; no token is named so."""


class Guard:
    """An ASGI application in front of another one.

    Args:
        app: What stands behind the door. For what it serves, the request's principal is
            `principal_of(scope)`.
        doorkeeper: Who belongs to which token.
        hosts: The names under which the gateway may be asked.
        origins: The pages that may ask.
        local: Who everybody is where there are no tokens.
        body_limit: The longest body, in bytes.
        presence: How many requests and sessions each of them may have.
        patience: Seconds in which a body must have come.
        rates: How often each of them may ask.
        shared_rates: Counts that over all replicas; None where there is one.
        refused: Told why a request was turned away, in one word.
        is_closing: Whether nobody new is let in, because the gateway is stopping.
        customs: What the door has of its own.
        admin: Knows the admin by their token; None where there is none.
        profiles: The profiles that there are.
    """

    def __init__(
        self,
        app: App,
        doorkeeper: TokenTable,
        *,
        hosts: Hosts,
        origins: Origins,
        local: Principal,
        body_limit: int,
        presence: Presence | None = None,
        patience: float = 15.0,
        rates: Rates | None = None,
        shared_rates: SharedRates | None = None,
        refused: Callable[[str], None] = lambda reason: None,
        is_closing: Callable[[], bool] = lambda: False,
        customs: Customs | None = None,
        admin: TokenTable | None = None,
        profiles: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._customs = customs or McpCustoms()
        self.rules = DoorRules(
            doorkeeper, hosts, origins, local, body_limit, patience, admin, profiles
        )
        """Whom it lets in from now on."""
        self._presence = presence or Presence()
        self._rates = rates or Rates()
        self._shared_rates = shared_rates
        self._refused = refused
        self._is_closing = is_closing
        self._is_closed = False
        self._under_way: dict[asyncio.Task[Any], _UnderWay] = {}
        self._ended: set[asyncio.Task[Any]] = set()
        self._told: set[str] = set()

    @classmethod
    def of(
        cls,
        app: App,
        settings: ServeSettings,
        host: str,
        *,
        refused: Callable[[str], None] = lambda reason: None,
        is_closing: Callable[[], bool] = lambda: False,
        customs: Customs | None = None,
        profiles: frozenset[str] = frozenset(),
    ) -> Guard:
        """Return the door that the settings describe, for a gateway bound to `host`.

        Raises:
            ConfigError: A token cannot be used, or none guards an address others reach.
        """
        customs = customs or McpCustoms()
        rules = DoorRules.of(settings, host, customs.block, profiles=profiles)
        return cls(
            app,
            rules.doorkeeper,
            hosts=rules.hosts,
            origins=rules.origins,
            local=rules.local,
            body_limit=rules.body_limit,
            patience=rules.patience,
            presence=Presence(
                requests_each=settings.requests_per_token,
                sessions_each=settings.sessions_per_token,
                sessions=settings.max_sessions,
                idle=settings.session_idle,
            ),
            shared_rates=shared_rates(settings),
            refused=refused,
            is_closing=is_closing,
            customs=customs,
            admin=rules.admin,
            profiles=rules.profiles,
        )

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with a refusal."""
        if scope["type"] == "http":
            self._customs.arrive(scope)
        is_open = scope["type"] == "http" and scope["path"] in self._customs.open_paths
        if is_open or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._admit(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _admit(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        visit: Visit | None = None
        status = _Status()
        try:
            send = self._check_origin(scope, send)
            if scope["method"] == "OPTIONS":
                await _respond(send, 204, b"", self._preflight())
                return
            oauth = self.rules.doorkeeper.oauth
            if oauth is not None and (page := oauth.page(scope)) is not None:
                await _respond(send, 200, *page)
                return
            rules = self.rules
            principal = await self._check_caller(scope)
            self._check_closing(scope)
            visit = self._check_presence(scope, principal)
            if self._customs.reads_body(scope):
                receive = await self._check_body(scope, receive)
            while rules is not self.rules:
                # They were changed while it came in: whoever is let in no more has not begun.
                rules = self.rules
                principal = await self._check_caller(scope)
        except _Refusal as refusal:
            self._tell(scope, refusal)
            body, headers = self._customs.refusal(scope, refusal.status, refusal.text)
            await _respond(send, refusal.status, body, (*headers, *refusal.headers))
        else:
            await self._serve(scope, receive, status.noting(send, visit, principal), status)
        finally:
            if visit is not None:
                is_over = status.code == 404 or (
                    scope["method"] == "DELETE" and 0 < status.code < 400
                )
                visit.leave(ended=is_over)

    async def _serve(self, scope: AsgiScope, receive: Receive, send: Send, status: _Status) -> None:
        """Pass a request on; one that outlasts the gateway ends with it, and in order."""
        task = asyncio.current_task()
        assert task is not None
        owner = principal_of(scope)
        is_stream = self._customs.is_stream(scope)
        self._under_way[task] = _UnderWay(owner.name, owner.profile, is_stream)
        ending = None
        if is_stream and owner.until is not None:
            # Nobody listens for longer than they could ask.
            left = max(owner.until - time.time(), 0)
            ending = asyncio.get_running_loop().call_later(left, self._end_task, task)
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_closed and task not in self._ended:
                raise
            task.uncancel()
            if not status.code:
                code, text = (503, self._stopping) if self._is_closed else (401, "ended")
                body, headers = self._customs.refusal(scope, code, text)
                await _respond(send, code, body, headers)
            elif not status.is_whole:
                await send({"type": "http.response.body", "body": b""})
        finally:
            if ending is not None:
                ending.cancel()
            del self._under_way[task]
            self._ended.discard(task)

    def end(self, is_gone: Gone) -> None:
        """End the requests of some callers, who are let in no more; their streams, too."""
        self._end(lambda work: is_gone(work.owner, work.profile))

    def end_streams(self, is_theirs: Gone) -> None:
        """End the streams of some callers, who may come back; calls under way go on."""
        self._end(lambda work: work.is_stream and is_theirs(work.owner, work.profile))

    def _end(self, ends: Callable[[_UnderWay], bool]) -> None:
        for task, work in self._under_way.items():
            if ends(work):
                self._end_task(task)

    def _end_task(self, task: asyncio.Task[Any]) -> None:
        self._ended.add(task)
        task.cancel()

    def session_ended(self, session: str) -> None:
        """A session counts no more: it was ended elsewhere."""
        for profile in ("", *self.rules.profiles):
            self._presence.forget(_session_key(profile, session))

    @property
    def _stopping(self) -> str:
        return f"the {self._customs.door} is stopping"

    def _preflight(self) -> tuple[tuple[bytes, bytes], ...]:
        return (
            (b"access-control-allow-methods", self._customs.methods),
            (b"access-control-allow-headers", self._customs.allowed_headers),
            (b"access-control-max-age", b"600"),
        )

    def _answers_under_way(self) -> list[asyncio.Task[Any]]:
        return [task for task, work in self._under_way.items() if not work.is_stream]

    async def close(self, seconds: float) -> None:
        """Let answers that are on their way arrive, and end what would go on for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.sleep(_ONE_MORE)
                while answers := self._answers_under_way():
                    await asyncio.wait(answers)
                    await asyncio.sleep(_ONE_MORE)
        self._is_closed = True
        rest = list(self._under_way)
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=seconds)

    def _tell(self, scope: AsgiScope, refusal: _Refusal) -> None:
        self._refused(refusal.reason)
        about = {"host": b"host", "origin": b"origin"}.get(refusal.reason)
        client = str((scope.get("client") or ("somebody",))[0])
        why = refusal.text
        if about:
            value = cut(visible(" ".join(headers_of(scope, about))), 100)
            why = f"{refusal.reason} {value!r}"
        told = f"{why}, asked by {client}"
        # Once for each: whoever keeps knocking must not fill the log.
        if told not in self._told and len(self._told) < _TOLD_AT_MOST:
            self._told.add(told)
            _log.warning("refused a request: %s", told)

    def _check_origin(self, scope: AsgiScope, send: Send) -> Send:
        """Refuse a request for another host or from another page."""
        hosts = headers_of(scope, b"host")
        if len(hosts) != 1 or not self.rules.hosts.admit(hosts[0]):
            raise _Refusal(421, "host", "this host is not served here")
        origins = headers_of(scope, b"origin")
        if not origins:
            return send
        server = scope.get("server") or (None, None)
        if len(origins) != 1 or not self.rules.origins.admit(origins[0], server[1]):
            raise _Refusal(403, "origin", "this origin may not ask")
        return _for_page(send, origins[0], self._customs.shown_headers)

    async def _check_caller(self, scope: AsgiScope) -> Principal:
        """Refuse a request that nobody may make, and take note of who makes it."""
        principal = await self._caller(scope)
        profile = self._customs.profile(scope)
        if profile is not None:
            principal = self.rules.under(profile, principal)
        bind(scope, principal)
        self._customs.admit(scope, principal)
        return principal

    async def _caller(self, scope: AsgiScope) -> Principal:
        """Refuse a request without a known token, or one too many."""
        admin_path = self._customs.admin_path
        if admin_path is not None and scope["path"].startswith(admin_path):
            return self._admin(scope)
        needs_no_token = self.rules.doorkeeper.is_open or self._customs.is_public(scope)
        principal = self.rules.local if needs_no_token else await self._owner(scope)
        if scope["path"] == self._customs.metrics_path and not principal.watches:
            raise _Refusal(404, "path", "not found")
        if scope["method"] == "POST" and principal.rate_limit > 0:
            _check_wait(await self._wait(principal.name, principal.rate_limit))
        return principal

    async def _wait(self, name: str, per_minute: int) -> int:
        """Admit a request and return 0, or return the nanoseconds until one is admitted."""
        if self._shared_rates is not None:
            # Each door has tokens of its own: those of one name are not the same everywhere.
            shared = f"{self._customs.door}/{name}"
            wait = await self._shared_rates.take(shared, per_minute, burst_of(per_minute))
            if wait is not None:
                return wait
        return self._rates.take(name, per_minute)

    def _admin(self, scope: AsgiScope) -> Principal:
        """Return the admin; where there is none, there is no such path."""
        table = self.rules.admin
        if table is None or table.is_open:
            raise _Refusal(404, "path", "not found")
        is_theirs = any(map(table.admit, self._customs.tokens(scope)))
        # Whoever guesses at the token does not keep the admin out.
        _check_wait(self._rates.take(ADMIN.name if is_theirs else _GUESSES, _ADMIN_RATE))
        if not is_theirs:
            text = "the admin's token is needed"
            raise _Refusal(401, "token", text, ((b"www-authenticate", b"Bearer"),))
        return ADMIN

    def _check_closing(self, scope: AsgiScope) -> None:
        """Refuse whoever begins to ask when the gateway is stopping."""
        if self._is_closed or (self._customs.begins(scope) and self._is_closing()):
            raise _Refusal(503, "stopping", self._stopping, ((b"retry-after", b"5"),))

    def _check_presence(self, scope: AsgiScope, principal: Principal) -> Visit:
        """Refuse a request of somebody who has too many under way, or too many sessions."""
        named = headers_of(scope, b"mcp-session-id")
        own = _session_key(principal.profile, named[0]) if named else None
        try:
            return self._presence.enter(principal.name, own, opens=self._customs.opens(scope))
        except TooManyError as error:
            text = f"too many {error.what}"
            raise _Refusal(429, error.what, text, ((b"retry-after", b"5"),)) from None

    async def _owner(self, scope: AsgiScope) -> Principal:
        # Clients that get a 401 look here for a way to log in. There is no other than `page`.
        if scope["path"].startswith("/.well-known/"):
            raise _Refusal(404, "path", "not found")
        tokens = list(self._customs.tokens(scope))
        principal = next(filter(None, map(self.rules.doorkeeper.admit, tokens)), None)
        if principal is not None:
            return principal
        if self.rules.doorkeeper.oauth is None:
            raise _Refusal(401, "token", "a token is needed", ((b"www-authenticate", b"Bearer"),))
        profile = self._customs.profile(scope) or ""
        return await self.rules.doorkeeper.oauth.admit(tokens, profile)

    async def _check_body(self, scope: AsgiScope, receive: Receive) -> Receive:
        """Refuse a request that is too long."""
        lengths = headers_of(scope, b"content-length")
        # Twenty digits are more than any limit; Python refuses to read thousands.
        digits = lengths[0][:20] if lengths and lengths[0].isascii() else ""
        declared = int(digits) if digits.isdigit() else None
        try:
            async with asyncio.timeout(self.rules.patience):
                return await read_within(receive, self.rules.body_limit, declared)
        except TimeoutError:
            raise _Refusal(
                408, "body", "the request took too long", ((b"connection", b"close"),)
            ) from None
        except TooLargeError:
            raise _Refusal(
                413,
                "body",
                f"a request may have {self.rules.body_limit} bytes",
                ((b"connection", b"close"),),
            ) from None


def _check_wait(wait: int) -> None:
    """Refuse a request that is admitted only after so many nanoseconds."""
    if wait:
        seconds = str(ceil(wait / 1e9)).encode()
        raise _Refusal(429, "rate", "too many requests", ((b"retry-after", seconds),))


class _UnderWay(NamedTuple):
    """A request that is being served."""

    owner: str
    profile: str
    is_stream: bool


class _Status:
    """What an answer came to."""

    def __init__(self) -> None:
        self.code = 0
        self.is_whole = False

    def noting(self, send: Send, visit: Visit, principal: Principal) -> Send:
        """Return a `send` that takes note of the answer."""

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.code = message["status"]
                own = [v for k, v in message.get("headers", ()) if k.lower() == b"mcp-session-id"]
                session = _session_key(principal.profile, own[0].decode("latin-1")) if own else None
                visit.answered(self.code, session)
            elif message["type"] == "http.response.body":
                self.is_whole = not message.get("more_body")
            await send(message)

        return noted


def _session_key(profile: str, session: str) -> str:
    """Name a session: its id means nothing under another profile than its own."""
    return f"{profile}/{session}" if profile else session


def _for_page(send: Send, origin: str, shown: bytes) -> Send:
    """Return a `send` that lets the browser show the answer to the page that asked."""
    more = (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", shown),
        (b"vary", b"Origin"),
    )

    async def send_for_page(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return send_for_page


async def _respond(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
