"""One MCP server as a source: asked, listened to, told what clients want of it.

Everybody goes through `request`. Calls on a server that dies end with `ServerDownError`,
or run once more where that is safe. What the server asks goes to the client of the call
that it belongs to, and to nobody else. Its tools are named `server__tool`, in every door.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST

from toolfold import prompts
from toolfold.invisible import shown_tool
from toolfold.scope import name_matches
from toolfold.sources.calls import CallContext, Clock, Refusal
from toolfold.sources.mcp.connection import Connection, Params, is_gone, is_session_lost
from toolfold.sources.mcp.exposed_names import exposed_names
from toolfold.sources.mcp.exposed_records import named_tool
from toolfold.sources.mcp.lifecycle import (
    REFRESH_PAUSE,
    Kind,
    Lifecycle,
    ServerDownError,
    heard,
)
from toolfold.sources.mcp.relay import CURRENT, InFlight, RelayedCall
from toolfold.sources.mcp.results import AgentCaller, output_of_result
from toolfold.sources.mcp.server import Server
from toolfold.sources.mcp.server_status import ServerState, ServerStatus
from toolfold.sources.source import Bounds, Source, SourceError
from toolfold.tool import Json, Tool, is_object

if TYPE_CHECKING:
    from toolfold.sources.mcp.transports.process import Child

__all__ = ["Hub", "Kind", "McpSource", "Route", "ServerDownError"]

DESCRIPTION_LIMIT = 4_000
"""The longest description that is passed on where nothing else is said."""

_ROUNDS_AT_MOST = 16
_ENVELOPE = "io.modelcontextprotocol/"
_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
_CARRIED = ("inputResponses", "requestState")

_log = logging.getLogger(__name__)


class Hub(Protocol):
    """Who brings several servers together: their news and questions go there."""

    def status_changed(self, source: McpSource) -> None:
        """Its state changed."""
        ...

    def list_changed(self, source: McpSource, kind: Kind) -> None:
        """One of its lists changed."""
        ...

    def resource_updated(self, source: McpSource, uri: str) -> None:
        """A resource that somebody subscribed to changed."""
        ...

    async def ask_anyone(
        self, source: McpSource, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        """Ask the only client that a question outside all calls can be meant for, if any."""
        ...

    def stray_log(self, source: McpSource, params: Params) -> None:
        """Take a log message that belongs to no call for certain."""
        ...

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return those of a server's tools that a person need not look at first."""
        ...

    def is_held_back(self, tool: str) -> bool:
        """Whether a tool that was there a moment ago waits for a person by now."""
        ...


class _Alone:
    """The hub of a server that stands alone: nobody to tell, everything admitted."""

    def status_changed(self, source: McpSource) -> None:
        if source.state == "failed":
            _log.warning("server %s: %s", source.name, source.error)

    def list_changed(self, source: McpSource, kind: Kind) -> None:
        pass

    def resource_updated(self, source: McpSource, uri: str) -> None:
        pass

    async def ask_anyone(
        self, source: McpSource, method: str, params: Params, origin: str | None = None
    ) -> dict[str, Json] | None:
        return None

    def stray_log(self, source: McpSource, params: Params) -> None:
        pass

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        return tools

    def is_held_back(self, tool: str) -> bool:
        return False


class Route(NamedTuple):
    """Where a tool of the catalog is really called."""

    server: str
    name: str
    """The server's own name for it."""
    has_headers: bool = False
    """Whether some of its parameters travel as headers."""

    @property
    def full_name(self) -> str:
        """The two names, whole: what a person would write who knows no limits of clients."""
        return f"{self.server}__{self.name}"


class McpSource(Source):
    """One MCP server: started, kept alive and called.

    Example:
        server = Server("time", "stdio", command="uvx", args=("mcp-server-time",))
        async with Agent(model, sources=[McpSource(server), registry]) as agent:
            done = await agent.conversation().ask("What time is it in Tokyo?")

    Args:
        server: How to reach it.
        hub: Who brings several together; by default it stands alone.
        parallel: How many calls it runs at once.
        lazy: Whether it waits for its first call before it is started.
        child: The process, where it is being started already.
        client: The one client it is for, where each has its own.
        shared: The source that all clients share, where this is one client's own.
        auth: Signs HTTP requests.
        description_limit: The longest description that is passed on.
    """

    def __init__(
        self,
        server: Server,
        hub: Hub | None = None,
        *,
        parallel: int = 64,
        lazy: bool = False,
        child: Awaitable[Child] | None = None,
        client: str | None = None,
        shared: McpSource | None = None,
        auth: Any = None,
        description_limit: int = DESCRIPTION_LIMIT,
    ) -> None:
        self.server = server
        self.name = server.name
        self.client = client
        self.in_flight = InFlight()
        self.lifecycle = Lifecycle(server, self, lazy=lazy, child=child, auth=auth)
        self._hub: Hub = hub or _Alone()
        self._shared = shared or self
        self._limit = description_limit
        self._turns = asyncio.Semaphore(parallel)
        self._listeners: list[Callable[[], None]] = []
        self._records: list[Json] | None = None
        self._tools: tuple[Tool, ...] = ()
        self._routes: dict[str, Route] = {}
        self._former_routes: dict[str, Route] = {}
        self._level: str | None = None
        self._subscribed: set[str] = set()
        self._listening: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()

    # ---- its life

    async def __aenter__(self) -> Self:
        """Start the server and wait until it has listed its tools, or failed to."""
        self.run()
        await self.lifecycle.settled()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def run(self) -> None:
        """Begin to look after the server."""
        self.lifecycle.run()

    async def stop(self) -> None:
        """End the server."""
        await self.lifecycle.stop()
        for task in self._posts:
            task.cancel()

    @property
    def state(self) -> ServerState:
        """Where the server stands."""
        return self.lifecycle.state

    @property
    def error(self) -> str | None:
        """Why it does not run, in one line."""
        return self.lifecycle.error

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self.lifecycle.restarts

    @property
    def rubbish(self) -> int:
        """How many lines it printed that are no messages."""
        return self.lifecycle.rubbish

    @property
    def status(self) -> ServerStatus:
        """Where it stands, for people."""
        return self.lifecycle.status

    @property
    def is_settled(self) -> bool:
        """Whether its first start is over, well or not, or waits for a call."""
        return self.lifecycle.is_settled

    @property
    def connection(self) -> Connection | None:
        """The connection, while one stands."""
        return self.lifecycle.connection

    @property
    def lists(self) -> dict[Kind, list[Json]]:
        """What the server listed, by kind, as it came."""
        return self.lifecycle.lists

    def can(self, capability: str) -> bool:
        """Whether the server, as far as it is there, has a capability."""
        connection = self.connection
        return connection is not None and is_object(connection.capabilities.get(capability))

    # ---- its tools

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that the server lists, under the names by which they are served.

        Raises:
            SourceError: It was not opened.
        """
        records = self.lists.get("tools")
        if records is None:
            if not self.lifecycle.is_open:
                raise SourceError(
                    f"the source {self.name!r} is not open",
                    hint="open it, or its agent, with `async with`",
                )
            return ()
        if self._records is not records:
            self._records = records
            self._tools = self._read_or_none(records)
        return self._tools

    def read_anew(self) -> None:
        """Read the list once more, because a person has approved something."""
        self._records = None

    def route(self, tool: str) -> Route:
        """Return where a tool is really called."""
        found = self._routes.get(tool) or self._former_routes.get(tool)
        return found or Route(self.name, tool.removeprefix(f"{self.name}__"))

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return Bounds(timeout=self.server.call_timeout)

    def timed_out(self, tool: Tool, seconds: float) -> str:
        """Return what the model reads where a call took too long."""
        return prompts.server_timed_out(tool.shown_name, self.name, seconds)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have a listener called when the list of tools has changed."""
        self._listeners.append(listener)

    def _read_or_none(self, records: Sequence[Json]) -> tuple[Tool, ...]:
        """Read a list; one that cannot be read takes no other server's with it."""
        try:
            return self._read(records)
        except Exception:
            _log.exception("server %s: its tools cannot be read, and are left out", self.name)
            return ()

    def _read(self, records: Sequence[Json]) -> tuple[Tool, ...]:
        by_name: dict[str, dict[str, Json]] = {}
        for record in records:
            own = record.get("name") if is_object(record) else None
            if isinstance(own, str) and own.strip():
                if own in by_name:
                    _log.warning("server %s lists %r twice", self.name, own[:100])
                by_name.setdefault(own, record)
        found = exposed_names((self.name, own) for own in by_name)
        names = {own: name for name, (_, own) in found.items()}
        tools: list[Tool] = []
        routes: dict[str, Route] = {}
        for own, record in by_name.items():
            if not self._is_wanted(own):
                continue
            tool = named_tool(record, self.name, names[own])
            if tool is not None:
                tools.append(tool)
                has_headers = self.server.transport == "http" and "x-mcp-header" in str(
                    record.get("inputSchema")
                )
                routes[names[own]] = Route(self.name, own, has_headers)
        # A call of what was listed a moment ago still finds its way; the server judges it.
        self._former_routes, self._routes = self._routes, routes
        return tuple(shown_tool(tool, self._limit) for tool in self._hub.admitted(self, tools))

    def _is_wanted(self, name: str) -> bool:
        """Whether the server's own allow and deny lists leave one of its tools."""
        server = self.server
        if server.allow == ("*",) and not server.deny:
            return True
        return name_matches(name, server.name, server.allow) and not name_matches(
            name, server.name, server.deny
        )

    # ---- asking it

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Call a tool and return what the server answers, as it came and as a text."""
        client = context.call.client
        relayed = client if isinstance(client, RelayedCall) else RelayedCall(AgentCaller(context))
        relayed.clock = context.clock
        # A server that has just been started may list something else by now.
        await self._ready(context.clock)
        if self._hub.is_held_back(tool.name):
            return Refusal(prompts.HELD_BACK)
        route = self._shared.route(tool.name)
        result = await self.forward(
            "tools/call",
            {"name": route.name, "arguments": dict(arguments)},
            relayed,
            again=tool.is_read_only or tool.annotations.get("idempotentHint") is True,
            schema=tool.parameters if route.has_headers else None,
            clock=context.clock,
        )
        return output_of_result(result)

    async def _ready(self, clock: Clock) -> Connection:
        # What a server takes to start is bounded by its own limit, not by the call's.
        connection = self.connection
        if connection is not None and not connection.is_closed:
            return connection
        clock.pause()
        try:
            return await self.lifecycle.ready()
        finally:
            clock.go_on()

    async def forward(
        self,
        method: str,
        request: Params,
        call: RelayedCall,
        *,
        again: bool = False,
        schema: Params | None = None,
        clock: Clock | None = None,
    ) -> dict[str, Json]:
        """Ask the server for a client, and see the server's own questions through.

        Raises:
            ServerDownError: It cannot be reached, or died.
            MCPError: It refuses.
            TimeoutError: It took too long, where no clock is given.
        """
        sent = dict(request)
        meta = _meta(call)
        if meta:
            sent["_meta"] = meta
        passes = call.caller.is_modern and call.park is None
        if passes:
            sent.update((key, call.params[key]) for key in _CARRIED if key in call.params)
        result = await self.request(method, sent, call, again=again, schema=schema, clock=clock)
        for _ in range(_ROUNDS_AT_MOST):
            if passes or result.get("resultType") != "input_required":
                return result
            answers = await call.ask_all(result.get("inputRequests") or {})
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            sent = {**sent, "inputResponses": answers, **state}
            result = await self.request(method, sent, call, schema=schema, clock=clock)
        raise MCPError(INVALID_PARAMS, "the server does not stop asking")

    async def request(
        self,
        method: str,
        params: Params,
        call: RelayedCall | None = None,
        *,
        again: bool = False,
        schema: Params | None = None,
        clock: Clock | None = None,
    ) -> dict[str, Json]:
        """Ask the server, and return its result as it came.

        Args:
            method: What to ask.
            params: With what.
            call: The client's call that this is for.
            again: Whether to ask once more where the server dies over it.
            schema: The tool's own, where its parameters may travel as headers.
            clock: The time that it has; by default the server's `call_timeout`, from now.

        Raises:
            ServerDownError: It cannot be reached, or died.
            MCPError: It refuses.
            TimeoutError: It took too long.
        """
        connection = await self.lifecycle.ready()
        try:
            return await self._send(connection, method, params, call, schema, clock)
        except MCPError as error:
            if not is_gone(error):
                raise
            self.lifecycle.lost(connection)
            # A session that the server does not know has run nothing.
            unheard = is_session_lost(error)
            if not again and not unheard:
                raise ServerDownError(self.name, "died over it", lost=True) from None
        _log.info("server %s: %s is asked once more", self.name, method)
        if clock is not None:
            clock.pause()
        try:
            connection = await self.lifecycle.ready_again(connection)
        finally:
            if clock is not None:
                clock.go_on()
        try:
            return await self._send(connection, method, params, call, schema, clock)
        except MCPError as error:
            if not is_gone(error):
                raise
            raise ServerDownError(self.name, "died over it twice", lost=not unheard) from None

    async def _send(
        self,
        connection: Connection,
        method: str,
        params: Params,
        call: RelayedCall | None,
        schema: Params | None,
        clock: Clock | None,
    ) -> dict[str, Json]:
        patience = self.server.call_timeout
        if call is None:
            async with self._turns:
                return await connection.request(method, dict(params), timeout=patience)
        if clock is not None:
            return await self._sent(connection, method, params, call, schema)
        # The wait for its turn counts: a client is not kept for longer than it was told.
        async with asyncio.timeout(patience) as deadline:
            call.clock = _TimeoutClock(deadline, patience)
            try:
                return await self._sent(connection, method, params, call, schema)
            finally:
                call.clock = None

    async def _sent(
        self,
        connection: Connection,
        method: str,
        params: Params,
        call: RelayedCall,
        schema: Params | None,
    ) -> dict[str, Json]:
        is_answered = False
        before = CURRENT.set(call)
        try:
            await self._turns.acquire()
            call.turn = self._turns
            self.in_flight.add(call)
            try:
                result = await connection.request(
                    method,
                    dict(params),
                    timeout=None,
                    on_progress=call.progress if call.caller.wants_progress else None,
                    capabilities=call.caller.capabilities,
                    schema=schema,
                )
                is_answered = True
                return result
            except MCPError:
                is_answered = True
                raise
            finally:
                call.give_turn_back()
                self.in_flight.remove(call, is_answered=is_answered)
        finally:
            CURRENT.reset(before)

    # ---- what it says by itself

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        """Pass a question on to the client that it belongs to, or refuse it."""
        call = self.in_flight.owner()
        if call is not None:
            return await call.ask(method, params)
        answer = None
        origins = self.in_flight.origins
        if not len(self.in_flight) and len(origins) <= 1:
            answer = await self._hub.ask_anyone(self, method, params, next(iter(origins), None))
        if answer is None:
            raise MCPError(INVALID_REQUEST, "it is not certain which client this is meant for")
        return answer

    def told(self, method: str, params: Params) -> None:
        """Take a notification."""
        if method == "notifications/tools/list_changed":
            self.lifecycle.tools_changed()
        elif method == "notifications/prompts/list_changed":
            self.lists.pop("prompts", None)
            self._hub.list_changed(self, "prompts")
        elif method == "notifications/resources/list_changed":
            self.lists.pop("resources", None)
            self.lists.pop("templates", None)
            self._hub.list_changed(self, "resources")
        elif method == "notifications/resources/updated" and isinstance(params.get("uri"), str):
            self._hub.resource_updated(self, params["uri"])

    def logged(self, params: Params) -> None:
        """Pass a log message on to the client of its call."""
        call = self.in_flight.owner()
        if call is None:
            if not self.in_flight.origins:
                self._hub.stray_log(self, params)
        elif call.has_room:
            self._post(call.log(params))

    # ---- how it stands

    def moved(self) -> None:
        """Its state changed."""
        self._hub.status_changed(self)

    def listed(self, kind: Kind) -> None:
        """One of its lists changed."""
        self._hub.list_changed(self, kind)
        for listener in self._listeners if kind == "tools" else ():
            listener()

    def connected(self, connection: Connection) -> None:
        """A connection stands: tell the server what clients want of it."""
        self.in_flight.clear()
        if self._level is not None:
            self._post(_send_level(connection, self._level))
        if self._subscribed and not connection.is_modern:
            self._post(self._subscribe_all(connection))
        self._listen(connection)

    def disconnected(self) -> None:
        """The connection is over."""
        if self._listening is not None:
            self._listening.cancel()

    # ---- what clients want of it

    def set_level(self, level: str) -> None:
        """From now on, have log messages of this level on."""
        self._level = level
        if self.connection is not None:
            self._post(_send_level(self.connection, level))

    def roots_changed(self) -> None:
        """Tell the server that the client's folders changed."""
        connection = self.connection
        if connection is not None and not connection.is_modern:
            self._post(connection.notify("notifications/roots/list_changed"))

    async def subscribe(self, uri: str) -> None:
        """Have changes of a resource told."""
        if uri in self._subscribed:
            return
        self._subscribed.add(uri)
        connection = await self.lifecycle.ready()
        if connection.is_modern:
            self._listen(connection)
        else:
            await connection.request("resources/subscribe", {"uri": uri}, timeout=30)

    async def unsubscribe(self, uri: str) -> None:
        """Have changes of a resource told no more."""
        self._subscribed.discard(uri)
        connection = self.connection
        if connection is not None and connection.is_modern:
            self._listen(connection)
        elif connection is not None:
            await connection.request("resources/unsubscribe", {"uri": uri}, timeout=30)

    async def _subscribe_all(self, connection: Connection) -> None:
        for uri in sorted(self._subscribed):
            await connection.request("resources/subscribe", {"uri": uri}, timeout=30)

    def _listen(self, connection: Connection) -> None:
        """Ask a server of 2026-07-28 to tell of changes; older ones do so by themselves."""
        if not connection.is_modern:
            return
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._keep_listening(connection))
        self._listening.add_done_callback(heard)

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
            self.lifecycle.tools_changed()

    def _post(self, sending: Awaitable[None]) -> None:
        task = asyncio.ensure_future(sending)
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        task.add_done_callback(heard)


class _TimeoutClock(Clock):
    """The clock of a request that is no tool call."""

    def __init__(self, deadline: asyncio.Timeout, patience: float | None) -> None:
        self._deadline = deadline
        self._patience = patience

    def pause(self) -> None:
        """Let it stand still."""
        self._deadline.reschedule(None)

    def go_on(self) -> None:
        """Start it again, with all its time."""
        if self._patience is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._patience)


async def _send_level(connection: Connection, level: str) -> None:
    if not connection.is_modern and is_object(connection.capabilities.get("logging")):
        await connection.request("logging/setLevel", {"level": level}, timeout=10)


def _meta(call: RelayedCall) -> dict[str, Json]:
    """Return what of a request's `_meta` goes on: not what is between the client and us."""
    given = call.params.get("_meta")
    meta = (
        {k: v for k, v in given.items() if k != "progressToken" and not k.startswith(_ENVELOPE)}
        if is_object(given)
        else {}
    )
    # Older clients get logs unasked; a server of 2026-07-28 sends them only when asked.
    caller = call.caller
    level = caller.log_level or (None if caller.is_modern else "info")
    if level is not None:
        meta[_LEVEL_KEY] = level
    return meta
