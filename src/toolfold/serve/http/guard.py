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
import ipaddress
import logging
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any

from toolfold._bounds import cut, visible
from toolfold.errors import ConfigError
from toolfold.serve.http.customs import (
    App,
    AsgiScope,
    Customs,
    McpCustoms,
    Send,
)
from toolfold.serve.http.presence import Presence, TooManyError, Visit
from toolfold.serve.http.rate_limit import Message, Rates, Receive, TooLargeError, read_within
from toolfold.serve.http.refusal import RefusedError as _Refusal
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import Principal, TokenTable, bind, local_principal

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["Guard", "Hosts", "Origins", "check_bind", "is_loopback"]

_log = logging.getLogger(__name__)

_ONE_MORE = 0.1
"""How long nobody must have asked before the last streams end, in seconds: a client that has
its answer may ask one thing more, as for the list of tools."""

_TOLD_AT_MOST = 100
_NAME = re.compile(r"[0-9a-z._:%-]+\Z")
_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether a name or an address can only be this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def check_bind(host: str, settings: ServeSettings, block: str = "serve") -> None:
    """Raise where everybody who can reach the address would be let in.

    Raises:
        ConfigError: The address is not a loopback one and there are no tokens.
    """
    is_open = not settings.tokens and settings.oauth is None
    if is_open and not is_loopback(_bound_name(host)):
        raise ConfigError(
            f"without tokens, {host!r} would serve everybody who can reach it",
            hint=f"add `tokens` under `{block}`, or bind to 127.0.0.1",
        )


class Hosts:
    """The names under which the gateway may be asked.

    Loopback names, the address it is bound to and those given. One bound to every address
    takes any address: a name that was pointed here by somebody else is never one.

    Args:
        bound: The host it is bound to.
        allowed: More names: `name`, `name:port` or `*.name`; `*` takes everything.
    """

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        own = _bound_name(bound)
        address = _address(own)
        self._any_address = address is not None and address.is_unspecified
        self._own = own
        self._allowed = tuple(_split(entry) for entry in allowed)

    def admit(self, header: str) -> bool:
        """Whether a `Host` header names this gateway."""
        name, port = _split(header)
        if not _NAME.match(name):
            return False
        if name == self._own or is_loopback(name):
            return True
        if self._any_address and _address(name) is not None:
            return True
        return any(_fits(name, port, *entry) for entry in self._allowed)


class Origins:
    """The pages that may ask: none but those named and those of this machine's same port.

    Args:
        allowed: Origins as browsers write them, `https://app.example.com`; `*` takes all.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        given = tuple(allowed)
        self._any = "*" in given
        self._allowed = frozenset(filter(None, map(_origin, given)))

    def admit(self, header: str, port: int | None) -> bool:
        """Whether a page of this origin may ask the gateway at that port."""
        if self._any:
            return True
        origin = _origin(header)
        if origin is None:
            return False
        return origin in self._allowed or (is_loopback(origin[1]) and origin[2] == port)


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
        refused: Told why a request was turned away, in one word.
        is_closing: Whether nobody new is let in, because the gateway is stopping.
        customs: What the door has of its own.
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
        refused: Callable[[str], None] = lambda reason: None,
        is_closing: Callable[[], bool] = lambda: False,
        customs: Customs | None = None,
    ) -> None:
        self._app = app
        self._customs = customs or McpCustoms()
        self._doorkeeper = doorkeeper
        self._hosts = hosts
        self._origins = origins
        self._local = local
        self._body_limit = body_limit
        self._presence = presence or Presence()
        self._patience = patience
        self._rates = rates or Rates()
        self._refused = refused
        self._is_closing = is_closing
        self._is_closed = False
        self._under_way: dict[asyncio.Task[Any], bool] = {}
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
    ) -> Guard:
        """Return the door that the settings describe, for a gateway bound to `host`.

        Raises:
            ConfigError: A token cannot be used, or none guards an address others reach.
        """
        customs = customs or McpCustoms()
        check_bind(host, settings, customs.block)
        return cls(
            app,
            TokenTable.of(settings),
            hosts=Hosts(host, settings.allowed_hosts),
            origins=Origins(settings.allowed_origins),
            local=local_principal(settings),
            body_limit=settings.body_limit,
            presence=Presence(
                requests_each=settings.requests_per_token,
                sessions_each=settings.sessions_per_token,
                sessions=settings.max_sessions,
                idle=settings.session_idle,
            ),
            patience=settings.request_timeout,
            refused=refused,
            is_closing=is_closing,
            customs=customs,
        )

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with a refusal."""
        if scope["type"] == "http":
            self._customs.arrive(scope)
        is_open = scope["type"] == "http" and scope["path"] == self._customs.health_path
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
            oauth = self._doorkeeper.oauth
            if oauth is not None and (page := oauth.page(scope)) is not None:
                await _respond(send, 200, *page)
                return
            principal = await self._check_caller(scope)
            bind(scope, principal)
            self._customs.admit(scope, principal)
            self._check_closing(scope)
            visit = self._check_presence(scope, principal)
            if self._customs.reads_body(scope):
                receive = await self._check_body(scope, receive)
        except _Refusal as refusal:
            self._tell(scope, refusal)
            body, headers = self._customs.refusal(scope, refusal.status, refusal.text)
            await _respond(send, refusal.status, body, (*headers, *refusal.headers))
        else:
            await self._serve(scope, receive, status.noting(send, visit), status)
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
        self._under_way[task] = self._customs.is_stream(scope)
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            task.uncancel()
            if not status.code:
                body, headers = self._customs.refusal(scope, 503, self._stopping)
                await _respond(send, 503, body, headers)
            elif not status.is_whole:
                await send({"type": "http.response.body", "body": b""})
        finally:
            del self._under_way[task]

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
        return [task for task, is_stream in self._under_way.items() if not is_stream]

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
        if len(hosts) != 1 or not self._hosts.admit(hosts[0]):
            raise _Refusal(421, "host", "this host is not served here")
        origins = headers_of(scope, b"origin")
        if not origins:
            return send
        server = scope.get("server") or (None, None)
        if len(origins) != 1 or not self._origins.admit(origins[0], server[1]):
            raise _Refusal(403, "origin", "this origin may not ask")
        return _for_page(send, origins[0], self._customs.shown_headers)

    async def _check_caller(self, scope: AsgiScope) -> Principal:
        """Refuse a request without a known token, or one too many."""
        needs_no_token = self._doorkeeper.is_open or self._customs.is_public(scope)
        principal = self._local if needs_no_token else await self._owner(scope)
        if scope["path"] == self._customs.metrics_path and not principal.watches:
            raise _Refusal(404, "path", "not found")
        if scope["method"] == "POST":
            wait = self._rates.take(principal.name, principal.rate_limit)
            if wait:
                seconds = str(ceil(wait / 1e9)).encode()
                raise _Refusal(429, "rate", "too many requests", ((b"retry-after", seconds),))
        return principal

    def _check_closing(self, scope: AsgiScope) -> None:
        """Refuse whoever begins to ask when the gateway is stopping."""
        if self._is_closed or (self._customs.begins(scope) and self._is_closing()):
            raise _Refusal(503, "stopping", self._stopping, ((b"retry-after", b"5"),))

    def _check_presence(self, scope: AsgiScope, principal: Principal) -> Visit:
        """Refuse a request of somebody who has too many under way, or too many sessions."""
        named = headers_of(scope, b"mcp-session-id")
        own = named[0] if named else None
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
        principal = next(filter(None, map(self._doorkeeper.admit, tokens)), None)
        if principal is not None:
            return principal
        if self._doorkeeper.oauth is None:
            raise _Refusal(401, "token", "a token is needed", ((b"www-authenticate", b"Bearer"),))
        return await self._doorkeeper.oauth.admit(tokens)

    async def _check_body(self, scope: AsgiScope, receive: Receive) -> Receive:
        """Refuse a request that is too long."""
        lengths = headers_of(scope, b"content-length")
        # Twenty digits are more than any limit; Python refuses to read thousands.
        digits = lengths[0][:20] if lengths and lengths[0].isascii() else ""
        declared = int(digits) if digits.isdigit() else None
        try:
            async with asyncio.timeout(self._patience):
                return await read_within(receive, self._body_limit, declared)
        except TimeoutError:
            raise _Refusal(
                408, "body", "the request took too long", ((b"connection", b"close"),)
            ) from None
        except TooLargeError:
            raise _Refusal(
                413,
                "body",
                f"a request may have {self._body_limit} bytes",
                ((b"connection", b"close"),),
            ) from None


class _Status:
    """What an answer came to."""

    def __init__(self) -> None:
        self.code = 0
        self.is_whole = False

    def noting(self, send: Send, visit: Visit) -> Send:
        """Return a `send` that takes note of the answer."""

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.code = message["status"]
                own = [v for k, v in message.get("headers", ()) if k.lower() == b"mcp-session-id"]
                visit.answered(self.code, own[0].decode("latin-1") if own else None)
            elif message["type"] == "http.response.body":
                self.is_whole = not message.get("more_body")
            await send(message)

        return noted


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


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bound_name(host: str) -> str:
    """Return the name of what is bound to: an IPv6 address stands there without brackets."""
    return host.lower() if _address(host) is not None else _split(host)[0]


def _split(host: str) -> tuple[str, str]:
    """Return the name and the port of a `Host` header; an empty name where it is none."""
    host = host.strip().lower()
    if host.startswith("["):
        name, closing, rest = host[1:].partition("]")
        return (name, rest[1:]) if closing and rest[:1] in ("", ":") else ("", "")
    name, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit()) and port != "*":
        return "", ""
    return name.removesuffix("."), port


def _fits(name: str, port: str, allowed: str, allowed_port: str) -> bool:
    if allowed_port not in ("", "*", port):
        return False
    if allowed.startswith("*."):
        return name.endswith(allowed[1:])
    return allowed in ("*", name)


def _origin(text: str) -> tuple[str, str, int] | None:
    """Return the scheme, the host and the port of an origin; None where it is none."""
    scheme, separator, rest = text.strip().rstrip("/").lower().partition("://")
    name, port = _split(rest)
    if not separator or not name or "/" in rest or "@" in rest:
        return None
    default = _PORTS.get(scheme)
    number = int(port) if port.isdigit() else default
    return None if number is None else (scheme, name, number)
