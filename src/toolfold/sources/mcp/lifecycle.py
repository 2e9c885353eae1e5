"""One server, kept alive: started, listed, watched, started again.

A single task owns the connection from its beginning to its end. A server that cannot be
reached is tried again after a growing, uneven pause while the others serve; one that dies
is noticed at once. Its list of tools is read when it begins, and again when it says that
the list has changed, but never more than once in a second.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import logging
import math
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from mcp.shared.exceptions import MCPError

from toolfold.bounds import one_line
from toolfold.errors import ToolfoldError
from toolfold.redact import Redactor
from toolfold.sources.mcp.connection import Connection, Params, is_gone
from toolfold.sources.mcp.relay import InFlight
from toolfold.sources.mcp.server_status import ServerState, ServerStatus
from toolfold.sources.mcp.transports.process import Child, start
from toolfold.tool import Json, canonical, is_object

if TYPE_CHECKING:
    from toolfold.sources.mcp.server import Server

__all__ = ["Hub", "Kind", "ServerDownError", "SignInError", "Supervised"]

Kind = Literal["tools", "prompts", "resources", "templates"]
"""What a server lists."""

LISTS: Mapping[Kind, tuple[str, str, str]] = {
    "tools": ("tools/list", "tools", "tools"),
    "prompts": ("prompts/list", "prompts", "prompts"),
    "resources": ("resources/list", "resources", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates", "resources"),
}
"""By kind: the method, the key of the entries, the capability."""

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 60.0
HEALTHY_AFTER = 10.0
"""A server that lived so many seconds starts again with the first pause."""

SIGN_IN_SECONDS = 300.0

REFRESH_PAUSE = 1.0
"""A changing list is read at most once in so many seconds."""

_COALESCE = 0.05
_RUBBISH_SHOWN = 200

_log = logging.getLogger(__name__)


class ServerDownError(ToolfoldError):
    """A server did not take a call, or died over it.

    Args:
        server: Its name.
        reason: Why, as a clause.
        lost: Whether the call had been sent, so that it may have had effects.
    """

    def __init__(self, server: str, reason: str, *, lost: bool) -> None:
        super().__init__(f"server {server!r} {reason}")
        self.server = server
        self.reason = reason
        self.lost = lost


class SignInError(ToolfoldError):
    """Signing in came to nothing: somebody said no, or the browser came back with another's answer.

    Its text is the clause that follows the server's name.
    """


class Hub(Protocol):
    """What a server's news and questions go to."""

    def status_changed(self, upstream: Supervised) -> None:
        """Its state changed."""
        ...

    def list_changed(self, upstream: Supervised, kind: Kind) -> None:
        """One of its lists changed."""
        ...

    def resource_updated(self, upstream: Supervised, uri: str) -> None:
        """A resource that somebody subscribed to changed."""
        ...

    async def ask_anyone(
        self, upstream: Supervised, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask the only client that a question outside all calls can be meant for, if any."""
        ...

    def stray_log(self, upstream: Supervised, params: Params) -> None:
        """Take a log message that belongs to no call for certain."""
        ...


class Supervised:
    """One server, kept alive.

    Args:
        server: How to reach it.
        hub: Who hears of it.
        parallel: How many calls it runs at once.
        lazy: Whether it waits for its first call before it is started.
        child: The process, where it is being started already.
        client: The one client it is for, where each has its own.
        auth: Signs HTTP requests.
    """

    def __init__(
        self,
        server: Server,
        hub: Hub,
        *,
        parallel: int = 64,
        lazy: bool = False,
        child: Awaitable[Child] | None = None,
        client: str | None = None,
        auth: Any = None,
    ) -> None:
        self.server = server
        self.name = server.name
        self.client = client
        self.state: ServerState = "waiting"
        self.error: str | None = None
        self.restarts = 0
        self.since = time.time()
        self.connection: Connection | None = None
        self.lists: dict[Kind, list[Json]] = {}
        self.rubbish = 0
        self._hub = hub
        self._lazy = lazy
        self._first_child = child
        self._auth = auth
        self._redactor = Redactor(server.secrets)
        self.in_flight = InFlight()
        self._turns = asyncio.Semaphore(parallel)
        self._moved = asyncio.Event()
        self._wanted = asyncio.Event()
        self._dirty = asyncio.Event()
        self._over = asyncio.Event()
        self._digest = ""
        self._next_try = math.inf
        self._was_ready = False
        self._refusal: int | None = None
        self._level: str | None = None
        self._subscribed: set[str] = set()
        self._listening: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()

    # ---- its life

    def run(self) -> None:
        """Begin to look after the server."""
        # A clean context: what the server says later must not seem to belong to the call
        # that started it.
        self._task = asyncio.get_running_loop().create_task(
            self._supervise(), name=f"server {self.name}", context=contextvars.Context()
        )

    async def stop(self) -> None:
        """End the server."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for task in self._posts:
            task.cancel()
        self._move("stopped")

    @property
    def is_settled(self) -> bool:
        """Whether its first start is over, well or not, or waits for a call."""
        return self.state not in ("starting",) and not (self.state == "waiting" and not self._lazy)

    @property
    def status(self) -> ServerStatus:
        """Where it stands."""
        return ServerStatus(
            name=self.name,
            transport=self.server.transport,
            state=self.state,
            tools=len(self.lists.get("tools", ())),
            restarts=self.restarts,
            since=self.since,
            error=self.error,
        )

    def _move(self, state: ServerState, error: str | None = None, *, quietly: bool = False) -> None:
        self.state, self.error, self.since = state, error, time.time()
        self._moved.set()
        self._moved = asyncio.Event()
        if not quietly:
            self._hub.status_changed(self)

    async def _supervise(self) -> None:
        if self.server.problem is not None:
            self._move("failed", str(self.server.problem))
            return
        if self._lazy:
            await self._wanted.wait()
        pause = FIRST_PAUSE
        while True:
            # One that cannot start is reported once, not at every try.
            self._move("starting", self.error, quietly=self.state == "failed")
            self._over.clear()
            self._was_ready = False
            reason = "ended"
            began = time.monotonic()
            try:
                reason = await self._live() or reason
            except Exception as error:
                reason = self._explain(error)
                _log.debug("server %s", self.name, exc_info=True)
            finally:
                self.connection = None
            if self._was_ready and time.monotonic() - began > HEALTHY_AFTER:
                pause = FIRST_PAUSE
            _log.debug("server %s: %s; trying again in about %.1f s", self.name, reason, pause)
            wait = pause * random.uniform(0.5, 1.0)
            self._next_try = time.monotonic() + wait
            self._move("failed", reason)
            await asyncio.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)
            self.restarts += self._was_ready

    async def _live(self) -> str | None:
        """Connect, serve until the connection ends, and return why it did."""
        async with (
            asyncio.timeout(self._patience) as deadline,
            self._streams() as (streams, child),
        ):
            connection = Connection(streams, self, knows_calls=self.server.transport == "http")
            running = asyncio.create_task(connection.run())
            helpers: list[asyncio.Task[Any]] = [running]
            try:
                await connection.started.wait()
                await self._begin(connection, child)
                deadline.reschedule(None)
                helpers.append(asyncio.create_task(self._refresh(connection)))
                over = asyncio.create_task(self._over.wait())
                helpers.append(over)
                await asyncio.wait((running, over), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.connection = None
                for task in (*helpers, *([self._listening] if self._listening else ())):
                    task.add_done_callback(_heard)
                    task.cancel()
            if child is None:
                return "closed the connection"
            await asyncio.sleep(0)
            code = child.process.returncode
            return f"ended{'' if code is None else f' with {code}'}{_behind(child)}"

    @property
    def _patience(self) -> float:
        # Signing in at a browser takes a person's time.
        least = SIGN_IN_SECONDS if self.server.oauth else 0.0
        return max(self.server.start_timeout, least)

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Child | None]]:
        if self.server.transport == "stdio":
            from toolfold.sources.mcp.transports.stdio import pipes

            first, self._first_child = self._first_child, None
            child = await (first if first is not None else start(self.server))
            async with pipes(child, self._on_rubbish) as streams:
                yield streams, child
        else:
            from toolfold.sources.mcp.transports.http import remote

            self._refusal = None
            async with remote(self.server, self._auth, self._on_refusal) as streams:
                yield streams, None

    async def _begin(self, connection: Connection, child: Child | None) -> None:
        try:
            await connection.negotiate(handshake=self.server.handshake)
            tools = await self._read(connection, "tools")
        except MCPError as error:
            if child is not None and is_gone(error):
                await asyncio.sleep(0.05)  # its last words and its exit code are on their way
                code = child.process.returncode
                what = "ended" if code is None else f"ended with {code}"
                raise ServerDownError(
                    self.name, f"{what} before it was ready{_behind(child)}", lost=False
                ) from None
            raise
        self.connection = connection
        self.in_flight.clear()
        for kind in ("prompts", "resources", "templates"):
            self.lists.pop(kind, None)
        changed = self._take(tools)
        if changed:
            self._hub.list_changed(self, "tools")
        self._was_ready = True
        self._move("ready")
        if self._level is not None:
            self._post(self._send_level(connection, self._level))
        if self._subscribed and not connection.is_modern:
            self._post(self._subscribe_all(connection))
        self._listen(connection)

    def _take(self, tools: list[Json]) -> bool:
        digest = hashlib.sha1(canonical(tools), usedforsecurity=False).hexdigest()
        changed = digest != self._digest or "tools" not in self.lists
        self._digest = digest
        self.lists["tools"] = tools
        return changed

    def remember(self, lists: Mapping[Kind, list[Json]]) -> None:
        """Take what the server listed in an earlier run, until it lists anew."""
        self.lists.update(lists)

    async def _read(self, connection: Connection, kind: Kind) -> list[Json]:
        method, key, capability = LISTS[kind]
        if not is_object(connection.capabilities.get(capability)):
            return []
        return await connection.list_all(method, key, self.server.start_timeout)

    async def _refresh(self, connection: Connection) -> None:
        """Read the tools again when the server says that they changed, but not too often."""
        while True:
            await self._dirty.wait()
            await asyncio.sleep(_COALESCE)
            self._dirty.clear()
            try:
                tools = await self._read(connection, "tools")
            except MCPError as error:
                _log.warning("server %s: its tools cannot be read again: %s", self.name, error)
            else:
                if self.connection is connection and self._take(tools):
                    self._hub.status_changed(self)
                    self._hub.list_changed(self, "tools")
            await asyncio.sleep(REFRESH_PAUSE)

    def _listen(self, connection: Connection) -> None:
        """Ask a server of 2026-07-28 to tell of changes; older ones do so by themselves."""
        if not connection.is_modern:
            return
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._keep_listening(connection))
        self._listening.add_done_callback(_heard)

    async def _keep_listening(self, connection: Connection) -> None:
        while not connection.is_closed:
            wanted: dict[str, Json] = {
                "toolsListChanged": True,
                "promptsListChanged": True,
                "resourcesListChanged": True,
            }
            if self._subscribed:
                wanted["resourceSubscriptions"] = sorted(self._subscribed)
            try:
                await connection.request(
                    "subscriptions/listen", {"notifications": wanted}, timeout=None
                )
            except MCPError as error:
                _log.debug("server %s does not tell of changes: %s", self.name, error)
                return
            await asyncio.sleep(REFRESH_PAUSE)
            self._dirty.set()

    def _explain(self, error: BaseException) -> str:
        error = _leaf(error)
        if isinstance(error, TimeoutError):
            text = f"did not answer within {self._patience:g} s"
        elif isinstance(error, ServerDownError):
            text = error.reason
        else:
            text = str(error) or type(error).__name__
        if self._was_ready or isinstance(error, SignInError):
            pass  # what was refused before has been got over, or was the question
        elif self._refusal in (401, 403):
            text = f"refuses us (HTTP {self._refusal}): check its `headers`, or set `oauth: true`"
        elif self._refusal is not None:
            text = f"{text} (HTTP {self._refusal})"
        # Redacted before it is cut: a part of a secret is not known for one.
        return one_line(self._redactor.redact(text[:4_000]), 300)

    def _on_refusal(self, status: int) -> None:
        self._refusal = status

    def _on_rubbish(self, line: bytes) -> None:
        self.rubbish += 1
        text = self._redactor.redact(one_line(line[:2000].decode("utf-8", "replace"), 1000))
        if self.rubbish == 1:
            _log.warning(
                "server %s prints on its standard output what is no message; it is passed over. "
                "It begins: %s", self.name, text[:_RUBBISH_SHOWN],
            )  # fmt: skip
        elif self.rubbish <= 100:
            _log.debug("server %s printed: %s", self.name, text[:_RUBBISH_SHOWN])

    def _post(self, sending: Awaitable[None]) -> None:
        task = asyncio.ensure_future(sending)
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        task.add_done_callback(_heard)

    async def _send_level(self, connection: Connection, level: str) -> None:
        if not connection.is_modern and is_object(connection.capabilities.get("logging")):
            await connection.request("logging/setLevel", {"level": level}, timeout=10)

    async def _subscribe_all(self, connection: Connection) -> None:
        for uri in sorted(self._subscribed):
            await connection.request("resources/subscribe", {"uri": uri}, timeout=30)

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        """Answer a server's request."""
        raise NotImplementedError

    def told(self, method: str, params: Params) -> None:
        """Take a notification."""
        raise NotImplementedError

    def logged(self, params: Params) -> None:
        """Take a log message."""
        raise NotImplementedError


def _leaf(error: BaseException) -> BaseException:
    """Return what went wrong within groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    return error


def _behind(child: Child) -> str:
    return f": {child.last_words}" if child.last_words else ""


def _heard(task: asyncio.Task[Any]) -> None:
    """Take note of how a task ended, so that nobody else has to."""
    if not task.cancelled() and task.exception() is not None:
        _log.debug("a task ended: %r", task.exception())
