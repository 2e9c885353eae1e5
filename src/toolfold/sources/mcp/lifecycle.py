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
import time
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mcp.shared.exceptions import MCPError

from toolfold.absent import AbsentSource
from toolfold.sources.mcp._restart_pauses import RestartPauses
from toolfold.sources.mcp._server_errors import ServerDownError, SignInError
from toolfold.sources.mcp._server_words import ServerWords
from toolfold.sources.mcp._tasks import heard
from toolfold.sources.mcp.connection import Connection, Peer, is_gone
from toolfold.sources.mcp.reached_here import reached_here
from toolfold.sources.mcp.server_status import ServerState, ServerStatus
from toolfold.tool import Json, canonical, is_object

if TYPE_CHECKING:
    from toolfold.sources.mcp.placement import Placement, ReachedServer
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.mcp.transports._process import Child

__all__ = ["Lifecycle", "ListedKind", "Owner", "ServerDownError", "SignInError"]

ListedKind = Literal["tools", "prompts", "resources", "templates"]
"""What a server lists."""

LISTS: Mapping[ListedKind, tuple[str, str, str]] = {
    "tools": ("tools/list", "tools", "tools"),
    "prompts": ("prompts/list", "prompts", "prompts"),
    "resources": ("resources/list", "resources", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates", "resources"),
}
"""By kind: the method, the key of the entries, the capability."""

SIGN_IN_SECONDS = 300.0

REFRESH_PAUSE = 1.0
"""A changing list is read at most once in so many seconds."""

PARTING = 5.0
"""For so many seconds a server is left to end in order, before it is cut off."""

_NEXT_LIFE = 10.0
_SOON = 2.0
"""A call waits for a server that is tried again within so many seconds."""

_COALESCE = 0.05

_log = logging.getLogger(__name__)


class Owner(Peer, Protocol):
    """Whose server it is: hears what the server says, and how it stands."""

    def moved(self) -> None:
        """Its state changed."""
        ...

    def listed(self, kind: ListedKind) -> None:
        """One of its lists changed."""
        ...

    def connected(self, connection: Connection) -> None:
        """A connection stands, and its tools are known."""
        ...

    def disconnected(self) -> None:
        """The connection is over."""
        ...


class Lifecycle:
    """One server, kept alive.

    Args:
        server: How to reach it.
        owner: Who hears of it.
        lazy: Whether it waits for its first call before it is started.
        child: The process, where it is being started already.
        auth: Signs HTTP requests.
        placement: Where it runs, where that is one replica of several.
    """

    def __init__(
        self,
        server: Server,
        owner: Owner,
        *,
        lazy: bool = False,
        child: Awaitable[Child] | None = None,
        auth: Any = None,
        placement: Placement | None = None,
    ) -> None:
        self.server = server
        self.name = server.name
        self.placement = placement
        """Where it runs, where that is one replica of several."""
        self.state: ServerState = "waiting"
        self.error: str | None = None
        """Why it is not there, for the person who runs it: logs, status, the command line."""
        self.cause: str | None = None
        """The same for clients and models: without what the server itself said last."""
        self.last_cause: str | None = None
        """The last cause there was, also when it is there again."""
        self.restarts = 0
        self.since = time.time()
        self.connection: Connection | None = None
        self.lists: dict[ListedKind, list[Json]] = {}
        self._owner = owner
        self._lazy = lazy
        self._first_child = child
        self._auth = auth
        self.words = ServerWords(server)
        """What it says beside the protocol."""
        self._reset()
        self._digest = ""
        self._next_try = math.inf
        self._was_ready = False
        self._is_elsewhere = False
        """Whether another replica runs it: that one rests between the server's lives."""
        self._is_older = self._is_anew = self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    # ---- its life

    def _reset(self) -> None:
        # Made anew for each life: an event belongs to the loop on which it was waited for.
        self._moved = asyncio.Event()
        self._wanted = asyncio.Event()
        self._dirty = asyncio.Event()
        self._over = asyncio.Event()

    def run(self, after: Iterable[asyncio.Task[None]] = ()) -> None:
        """Begin to look after the server; after a stop, from the beginning.

        Args:
            after: What must have ended before it is started.
        """
        if self.state == "stopped":
            self._reset()
            self._is_stopping = False
            self.state, self.error = "waiting", None
        # A clean context: what the server says later must not seem to belong to the call
        # that started it.
        self._task = asyncio.get_running_loop().create_task(
            self._supervise(tuple(after)), name=f"server {self.name}", context=contextvars.Context()
        )

    async def stop(self) -> None:
        """End the server."""
        await self._end()
        self._task = None
        if self.state != "stopped":
            self._move("stopped")

    async def _end(self) -> None:
        self._is_stopping = True
        while self._task is not None and not self._task.done():
            # Once is not always enough: a goodbye may wait for a server that says nothing more.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=PARTING)

    def hold(self) -> None:
        """Take no new request: who comes now waits for the next life, and none is cut off."""
        self.connection = None
        self._move("starting")

    async def restart(self) -> None:
        """End the server, which `hold` was told to, and start it; who waits goes on waiting."""
        await self._end()
        self._is_stopping = self._lazy = False
        self._is_anew = True
        self.restarts += 1
        self.run()

    def retire(self, cause: str) -> None:
        """Take no new request: who comes now is refused, and none under way is cut off.

        Args:
            cause: Why, as a clause.
        """
        self.connection = None
        self._is_stopping = True
        self._move("stopped", cause, cause, quietly=True)

    @property
    def is_open(self) -> bool:
        """Whether anybody looks after it."""
        return self._task is not None

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
            cause=self.last_cause,
            retry_in=None if math.isinf(self.retry_in) else self.retry_in,
        )

    @property
    def retry_in(self) -> float:
        """In how many seconds it is tried again: 0 where that is under way, infinity for never."""
        if self.state == "starting":
            return 0.0
        is_tried = self.state == "failed"
        return max(self._next_try - time.monotonic(), 0.0) if is_tried else math.inf

    def absence(self) -> AbsentSource | None:
        """Return why it cannot be asked now; one that waits for its first call can be."""
        if self.state == "ready" or (self.state == "waiting" and self._lazy):
            return None
        if self.state in ("waiting", "starting") and self.cause is None:
            return AbsentSource(self.name)
        left = self.retry_in
        cause = self.cause or self.state
        return AbsentSource(self.name, cause, None if math.isinf(left) else left)

    def _move(
        self,
        state: ServerState,
        error: str | None = None,
        cause: str | None = None,
        *,
        quietly: bool = False,
    ) -> None:
        self.state, self.error, self.cause = state, error, cause
        self.last_cause = cause or self.last_cause
        self.since = time.time()
        self._moved.set()
        self._moved = asyncio.Event()
        if not quietly:
            self._owner.moved()

    async def ready(self) -> Connection:
        """Return the connection, once it stands.

        Raises:
            ServerDownError: The server cannot be reached now.
        """
        self._wanted.set()
        while self.connection is None or self.connection.is_closed:
            soon = self.state == "failed" and self._next_try - time.monotonic() < _SOON
            if self.state in ("failed", "stopped") and not soon:
                raise ServerDownError(
                    self.name,
                    f"is not running: {self.cause or self.state}",
                    lost=False,
                    retry_in=self.retry_in,
                )
            await self._moved.wait()
        return self.connection

    async def ready_again(self, dead: Connection) -> Connection:
        """Wait for the next life of a server that has just died.

        Raises:
            ServerDownError: There is none for now.
        """
        try:
            # Another replica may have to take it over first.
            longest = _NEXT_LIFE if self.placement is None else max(_NEXT_LIFE, self._patience)
            async with asyncio.timeout(longest):
                while True:
                    now = self.connection
                    if now is not None and now is not dead and not now.is_closed:
                        return now
                    if self.state == "stopped":
                        raise TimeoutError
                    await self._moved.wait()
        except TimeoutError:
            gone = math.inf if self.state == "stopped" else None
            raise ServerDownError(
                self.name, f"is not running: {self.cause or self.state}", lost=True, retry_in=gone
            ) from None

    async def settled(self) -> None:
        """Return when its first start is over, well or not."""
        while not self.is_settled:
            await self._moved.wait()

    def lost(self, connection: Connection) -> None:
        """A connection is no more, though its transport may not know it yet."""
        if self.connection is connection:
            self.connection = None
            self._over.set()

    def cut_off(self) -> ServerDownError:
        """Return what a call meets that the server did not answer before it was gone."""
        if self.state == "stopped":
            return ServerDownError(
                self.name, "was stopped before it ended", lost=True, retry_in=math.inf
            )
        what = "was restarted before it ended" if self._is_stopping else "died over it"
        return ServerDownError(self.name, what, lost=True)

    def begin_older(self) -> None:
        """Start anew in a revision before 2026-07-28, where the server speaks one."""
        if self.connection is not None:
            self._is_older = self._is_anew = True
            self.lost(self.connection)

    def tools_changed(self) -> None:
        """The server says that its tools changed: they are read again soon."""
        self._dirty.set()

    async def _supervise(self, after: tuple[asyncio.Task[None], ...]) -> None:
        if after:
            await asyncio.wait(after)
        try:
            await self._keep_alive()
        finally:
            if self.placement is not None:
                await self.placement.let_go()

    async def _keep_alive(self) -> None:
        if self.server.problem is not None:
            problem = self.words.shown(str(self.server.problem))
            self._move("failed", problem, problem)
            return
        if self._lazy:
            await self._wanted.wait()
        pauses = RestartPauses()
        while True:
            # One that cannot start is reported once, not at every try.
            quietly = self.state == "failed" or self._is_anew
            self._is_anew = False
            self._move("starting", self.error, self.cause, quietly=quietly)
            self._over.clear()
            self._was_ready = False
            self.words.last = ""
            cause = "ended"
            began = time.monotonic()
            try:
                cause = await self._live() or cause
            except Exception as error:
                cause = self.words.explained(error, self._patience, was_ready=self._was_ready)
                _log.debug("server %s", self.name, exc_info=True)
            finally:
                self.connection = None
            if self._is_stopping:  # a transport that ends by itself may swallow the cancellation
                return
            if self._is_anew:
                continue
            if self.placement is not None:  # where it cannot run here, another may try
                await self.placement.let_go()
            lived = time.monotonic() - began if self._was_ready else 0.0
            wait = pauses.after(math.inf if lived and self._is_elsewhere else lived)
            said = f": {self.words.last}" if self.words.last else ""
            reason = self.words.shown(f"{cause}{said}")
            _log.debug("server %s: %s; trying again in %.1f s", self.name, reason, wait)
            self._next_try = time.monotonic() + wait
            self._move("failed", reason, self.words.shown(cause))
            await asyncio.sleep(wait)
            self.restarts += self._was_ready

    async def _live(self) -> str | None:
        """Connect, serve until the connection ends, and return why it did."""
        if self.placement is not None:
            await self.placement.settled()
        async with (
            asyncio.timeout(self._patience) as deadline,
            self._reached() as (connection, child),
        ):
            self._is_elsewhere = self.placement is not None and child is None
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
                self._owner.disconnected()
                for task in helpers:
                    task.add_done_callback(heard)
                    task.cancel()
            self._is_anew = self._is_anew or connection.has_moved
            if child is None:
                return "closed the connection"
            how = await child.outcome()
            self.words.last = child.last_words
            return how

    @property
    def _patience(self) -> float:
        # Signing in at a browser takes a person's time.
        least = SIGN_IN_SECONDS if self.server.oauth else 0.0
        return max(self.server.start_timeout, least)

    def _reached(self) -> AbstractAsyncContextManager[ReachedServer]:
        if self.placement is not None:
            return self.placement.reached(self._owner, self.words)
        first, self._first_child = self._first_child, None
        return reached_here(self.server, self._owner, self.words, child=first, auth=self._auth)

    async def _begin(self, connection: Connection, child: Child | None) -> None:
        try:
            await connection.negotiate(handshake=self.server.handshake, older_first=self._is_older)
            tools = await self._read(connection, "tools")
        except MCPError as error:
            if child is not None and is_gone(error):
                await asyncio.sleep(0.05)  # its last words are on their way
                what = await child.outcome()
                self.words.last = child.last_words
                raise ServerDownError(
                    self.name, f"{what} before it was ready", lost=False
                ) from None
            raise
        self.connection = connection
        for kind in ("prompts", "resources", "templates"):
            self.lists.pop(kind, None)
        if self._take(tools):
            self._owner.listed("tools")
        self._was_ready = True
        self._move("ready")
        self._owner.connected(connection)

    def _take(self, tools: list[Json]) -> bool:
        digest = hashlib.sha1(canonical(tools), usedforsecurity=False).hexdigest()
        changed = digest != self._digest or "tools" not in self.lists
        self._digest = digest
        self.lists["tools"] = tools
        return changed

    def remember(self, lists: Mapping[ListedKind, list[Json]]) -> None:
        """Take what the server listed in an earlier run, until it lists anew."""
        self.lists.update(lists)

    async def _read(self, connection: Connection, kind: ListedKind) -> list[Json]:
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
                    self._owner.moved()
                    self._owner.listed("tools")
            await asyncio.sleep(REFRESH_PAUSE)

    async def listing(self, kind: ListedKind) -> list[Json]:
        """Return one of its lists, read where it is not known; empty where it is not there."""
        known = self.lists.get(kind)
        if known is not None or self.connection is None:
            return known or []
        connection = self.connection
        try:
            found = await self._read(connection, kind)
        except MCPError as error:
            _log.warning("server %s: its %s cannot be listed: %s", self.name, kind, error)
            return []
        if self.connection is connection:
            self.lists[kind] = found
        return found
