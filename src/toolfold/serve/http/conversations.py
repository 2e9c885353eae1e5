"""Which conversation a request of 2026-07-28 over HTTP belongs to.

That revision has no sessions: a request says who may ask (the token) and which program asks,
not which of several clients. Two things stand in for it. A client gets an id of our making in
a cookie, and is known by it when it comes back; what comes back that we did not make, or made
for another token, is passed over. Or it names its conversation itself, in a header: a name
counts for its token alone, and must be too long to guess. Who does neither begins anew with
every request, so nobody ever steps into another's conversation.

What is kept of a conversation is let go when it was idle for too long, and soon where nobody
has come back to it; each token has a bounded number.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from toolfold.serve.http.customs import App, AsgiScope, Gone, Send
from toolfold.serve.http.rate_limit import Receive
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import Principal, principal_of

__all__ = ["HEADER", "ConversationDoor", "HttpConversation", "Kept", "conversation_of"]

HEADER = "toolfold-conversation"
"""The header in which a client may name its conversation; the cookie's name begins like it."""

UNCLAIMED_SECONDS = 60.0
"""For how long a conversation is kept that nobody has come back to."""

UNCLAIMED_AT_MOST = 32
"""How many of them one principal may have: who keeps no cookie fills no table of others."""

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[\x21-\x7e]{16,128}\Z")
_KEY = "toolfold.conversation"
_BAD_NAME = f"`{HEADER}` must be there once, with 16 to 128 visible characters\n"


@dataclass(frozen=True, slots=True)
class HttpConversation:
    """The conversation of one request."""

    key: str
    """Names what is kept of it."""

    is_known: bool = False
    """Whether its client has shown that it can be told apart from others."""


def conversation_of(scope: Mapping[str, Any]) -> HttpConversation:
    """Return the conversation that the door wrote into an ASGI scope, or one of its own."""
    found = scope.get(_KEY)
    return found if isinstance(found, HttpConversation) else HttpConversation(_new_key())


class Kept(Protocol):
    """What is kept of conversations."""

    def keeps(self, key: str) -> bool:
        """Whether there is anything of one."""
        ...

    async def forget(self, key: str) -> None:
        """Let go of all that there is of one."""
        ...


@dataclass(slots=True)
class _Entry:
    owner: str
    profile: str
    busy: int
    last: float
    is_known: bool


class ConversationDoor:
    """An ASGI application that tells the next one whose conversation a request belongs to.

    Args:
        app: The next one.
        kept: What is kept of conversations.
        idle: Seconds after which a conversation without a request is let go.
        each: How many one principal may have that something is kept of.
        in_all: How many all may have together.
        refused: Told why a request was turned away, in one word.
        secret: Signs the cookies of all replicas; None for one of this process's own.
        clock: Where the time comes from.
    """

    def __init__(
        self,
        app: App,
        kept: Kept,
        *,
        idle: float = 1_800.0,
        each: int = 500,
        in_all: int = 1_000,
        refused: Callable[[str], None] = lambda reason: None,
        secret: bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._kept = kept
        self._idle = idle
        self._each = each
        self._in_all = in_all
        self._refused = refused
        self._clock = clock
        self._secret = secret or secrets.token_bytes(32)
        # Cookies do not know ports, so gateways on one host are told apart by theirs; replicas
        # have several, and one secret.
        self._mark = None if secret is None else hashlib.sha256(secret).hexdigest()[:8]
        self._entries: dict[str, _Entry] = {}
        self._owned: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._entries)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Find the conversation of a request, and pass it on."""
        if scope["type"] != "http" or not _is_modern(scope):
            await self._app(scope, receive, send)
            return
        principal = principal_of(scope)
        owner, whose = principal.name, principal.whose
        named = headers_of(scope, HEADER.encode())
        if named and (len(named) > 1 or not _NAME.match(named[0])):
            await self._refuse(send, 400, "conversation", _BAD_NAME)
            return
        cookie = f"{HEADER}-{self._mark or (scope.get('server') or (None, 0))[1]}"
        found = self._named(whose, named[0]) if named else self._returned(scope, whose, cookie)
        conversation = found or HttpConversation(_new_key())
        if not self._make_room(owner, conversation.key):
            await self._refuse(send, 429, "sessions", "too many sessions\n")
            return
        scope[_KEY] = conversation
        if found is None:
            given, is_secure = self._signed(whose, conversation.key), scope.get("scheme") == "https"
            send = _setting(send, cookie, given, principal.profile, is_secure=is_secure)
        self._enter(principal, conversation)
        try:
            await self._app(scope, receive, send)
        finally:
            self._leave(conversation.key)

    def drop(self, is_gone: Gone) -> None:
        """Let go of the conversations of those who are let in no more."""
        gone = [k for k, each in self._entries.items() if is_gone(each.owner, each.profile)]
        for key in gone:
            if self._entries[key].busy:
                self._entries[key].is_known = False  # its request is being ended
            else:
                self._drop(key)

    # ---- who it is

    def _named(self, whose: str, name: str) -> HttpConversation:
        digest = hashlib.sha256(f"{whose}\0{name}".encode()).hexdigest()
        return HttpConversation(f"2026:{digest[:32]}", is_known=True)

    def _returned(self, scope: AsgiScope, whose: str, cookie: str) -> HttpConversation | None:
        """Return the conversation of a cookie, where we made it for this very principal."""
        for value in _cookies(headers_of(scope, b"cookie"), cookie):
            key = value.rpartition(".")[0]
            if hmac.compare_digest(value.encode(), self._signed(whose, key).encode()):
                return HttpConversation(key, is_known=True)
        return None

    def _signed(self, whose: str, key: str) -> str:
        mac = hmac.new(self._secret, f"{whose}\0{key}".encode(), "sha256").hexdigest()
        return f"{key}.{mac}"

    # ---- how many, and for how long

    def _make_room(self, owner: str, key: str) -> bool:
        """Say whether there is room for a conversation; the oldest of its own gives way."""
        if key in self._entries:
            return True
        self._drop_unclaimed(owner)
        if self._owned[owner] < self._each and len(self._entries) < self._in_all:
            return True
        idle = [
            (entry.is_known, entry.last, own)
            for own, entry in self._entries.items()
            if entry.owner == owner and not entry.busy
        ]
        if not idle:
            return False
        self._drop(min(idle)[2])
        return True

    def _drop_unclaimed(self, owner: str) -> None:
        """Let go of the oldest conversation that nobody came back to, where there are many."""
        unclaimed = [
            (entry.last, key)
            for key, entry in self._entries.items()
            if entry.owner == owner and not (entry.is_known or entry.busy)
        ]
        if len(unclaimed) >= UNCLAIMED_AT_MOST:
            self._drop(min(unclaimed)[1])

    def _enter(self, principal: Principal, conversation: HttpConversation) -> None:
        entry = self._entries.get(conversation.key)
        if entry is None:
            entry = _Entry(principal.name, principal.profile, 0, 0.0, False)
            self._entries[conversation.key] = entry
            self._owned[principal.name] += 1
        entry.busy += 1
        entry.is_known = entry.is_known or conversation.is_known

    def _leave(self, key: str) -> None:
        entry = self._entries[key]
        entry.busy -= 1
        entry.last = self._clock()
        if not entry.busy and not self._kept.keeps(key):
            self._remove(key)  # there is nothing to let go of
        else:
            self._watch()

    def _watch(self) -> None:
        if self._timer is None and self._entries:
            seconds = min(self._idle, UNCLAIMED_SECONDS) / 4
            self._timer = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock()
        for key, entry in list(self._entries.items()):
            patience = self._idle if entry.is_known else min(self._idle, UNCLAIMED_SECONDS)
            if not entry.busy and now - entry.last >= patience:
                self._drop(key)
        self._watch()

    def _remove(self, key: str) -> None:
        owner = self._entries.pop(key).owner
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]

    def _drop(self, key: str) -> None:
        self._remove(key)
        task = asyncio.get_running_loop().create_task(self._forget(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget(self, key: str) -> None:
        try:
            await self._kept.forget(key)
        except Exception:
            _log.exception("a conversation could not be let go")

    async def _refuse(self, send: Send, status: int, reason: str, text: str) -> None:
        self._refused(reason)
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"5")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})


def _new_key() -> str:
    return f"2026:{secrets.token_hex(16)}"


def _is_modern(scope: AsgiScope) -> bool:
    # By the same rule the protocol's library tells which requests have a session.
    versions = headers_of(scope, b"mcp-protocol-version")
    return bool(versions) and versions[0] not in HANDSHAKE_PROTOCOL_VERSIONS


def _cookies(headers: Iterable[str], name: str) -> list[str]:
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    return [value.strip('"') for key, _, value in pairs if key == name]


def _setting(send: Send, name: str, value: str, profile: str, *, is_secure: bool) -> Send:
    """Return a `send` that gives the client its cookie, for the path that it asks at."""
    path = f"/mcp/{profile}" if profile else "/mcp"
    flags = f"Path={path}; HttpOnly; SameSite=Strict{'; Secure' if is_secure else ''}"
    cookie = (b"set-cookie", f"{name}={value}; {flags}".encode())

    async def send_with_cookie(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), cookie]}
        await send(message)

    return send_with_cookie
