"""One MCP server as a source: asked, listened to, told what clients want of it.

Everybody goes through `request`. Calls on a server that dies end with `ServerDownError`,
or run once more where that is safe. What the server asks goes to the client of the call
that it belongs to, and to nobody else. Its tools are named `server__tool`, in every door.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST

from toolfold import prompts
from toolfold.absent import AbsentSource
from toolfold.sources._listeners import Listeners
from toolfold.sources.calls import CallClock, CallContext, Refusal
from toolfold.sources.mcp._clocks import paused
from toolfold.sources.mcp._exposed_names import Route
from toolfold.sources.mcp._older_line import Lines, OlderLineHub
from toolfold.sources.mcp._questions import signed, signed_result
from toolfold.sources.mcp._results import AgentCaller, output_of_result
from toolfold.sources.mcp._server_requests import ServerRequests
from toolfold.sources.mcp._tool_list import DESCRIPTION_LIMIT, ToolList
from toolfold.sources.mcp._wishes import Wishes
from toolfold.sources.mcp.connection import Connection, Params, is_gone, is_unheard
from toolfold.sources.mcp.hub import Alone, Hub
from toolfold.sources.mcp.lifecycle import (
    Lifecycle,
    ListedKind,
    ServerDownError,
)
from toolfold.sources.mcp.relay import InFlight, RelayedCall
from toolfold.sources.mcp.server import Server
from toolfold.sources.mcp.server_status import ServerState, ServerStatus
from toolfold.sources.source import Bounds, Source, SourceError
from toolfold.tool import Json, Tool, is_object

if TYPE_CHECKING:
    import asyncio

    from toolfold.sources.mcp.placement import Placement
    from toolfold.sources.mcp.transports._process import Child

__all__ = ["Hub", "ListedKind", "McpSource", "Route", "ServerDownError"]

_ROUNDS_AT_MOST = 16
_CARRIED = ("inputResponses", "requestState")

_log = logging.getLogger(__name__)


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
        placement: Where it runs, where that is one replica of several.
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
        placement: Placement | None = None,
    ) -> None:
        self.server = server
        self.name = server.name
        self.client = client
        self._requests = ServerRequests(server, parallel)
        self.lifecycle = Lifecycle(
            server, self, lazy=lazy, child=child, auth=auth, placement=placement
        )
        self._hub: Hub = hub or Alone()
        self._shared = shared or self
        self._parallel = parallel
        self._listeners = Listeners()
        self._openings = 0
        self._tools = ToolList(
            server, lambda found: self._hub.admitted(self, found), description_limit
        )
        self.wishes = Wishes(self.lifecycle)
        self._auth = auth
        self._lines = Lines(self)

    # ---- its life

    async def __aenter__(self) -> Self:
        """Start the server and wait until it has listed its tools, or failed to.

        Several may open it, such as agents that share it: it ends with the last of them.
        """
        self._openings += 1
        if self._openings == 1:
            self.run()
        try:
            await self.lifecycle.settled()
        except BaseException:  # given up: nobody will close it
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._openings -= 1
        if not self._openings:
            await self.stop()

    def run(self, after: Iterable[asyncio.Task[None]] = ()) -> None:
        """Begin to look after the server.

        Args:
            after: What must have ended before it is started.
        """
        self._requests.begin()
        self.lifecycle.run(after)

    async def stop(self) -> None:
        """End the server."""
        await self._lines.stop()
        await self.lifecycle.stop()
        self.wishes.close()

    def restart(self, seconds: float) -> Coroutine[None, None, None]:
        """End the server and start it anew; who calls from now on waits for it.

        Args:
            seconds: How long calls under way have to end.
        """
        self.lifecycle.hold()
        return self._restart(seconds)

    async def _restart(self, seconds: float) -> None:
        await self._requests.ended(seconds)
        if self.older is not None:
            await self.older.retire("was restarted", seconds)
        await self._lines.stop()
        await self.lifecycle.restart()

    def retire(self, cause: str, seconds: float) -> Coroutine[None, None, None]:
        """End the server for good; who calls from now on is refused.

        Args:
            cause: Why, as a clause.
            seconds: How long calls under way have to end.
        """
        self.lifecycle.retire(cause)
        return self._retire(cause, seconds)

    async def _retire(self, cause: str, seconds: float) -> None:
        await self._requests.ended(seconds)
        if self.older is not None:
            await self.older.retire(cause, seconds)
        await self.stop()

    @property
    def in_flight(self) -> InFlight:
        """The calls that it works on."""
        return self._requests.in_flight

    @property
    def state(self) -> ServerState:
        """Where the server stands."""
        return self.lifecycle.state

    @property
    def error(self) -> str | None:
        """Why it does not run, in one line, for the person who runs it."""
        return self.lifecycle.error

    @property
    def cause(self) -> str | None:
        """Why it does not run, for clients and models: without the server's own words."""
        return self.lifecycle.cause

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self.lifecycle.restarts

    @property
    def rubbish(self) -> int:
        """How many lines it printed that are no messages."""
        return self.lifecycle.words.rubbish

    @property
    def status(self) -> ServerStatus:
        """Where it stands, for people."""
        return self.lifecycle.status

    def absence(self) -> AbsentSource | None:
        """Return why the server cannot be asked now."""
        return self.lifecycle.absence()

    @property
    def is_settled(self) -> bool:
        """Whether its first start is over, well or not, or waits for a call."""
        return self.lifecycle.is_settled

    @property
    def connection(self) -> Connection | None:
        """The connection, while one stands."""
        return self.lifecycle.connection

    @property
    def older(self) -> McpSource | None:
        """The line on which clients of older revisions are asked, where it has been needed."""
        return self._lines.older

    @property
    def lists(self) -> dict[ListedKind, list[Json]]:
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
        if not self.lifecycle.is_open:
            raise SourceError(
                f"the source {self.name!r} is not open",
                hint="open it, or its agent, with `async with`",
            )
        records = self.lists.get("tools")
        return () if records is None else self._tools.read(records)

    @property
    def is_read(self) -> bool:
        """Whether to ask for the tools costs nothing."""
        records = self.lists.get("tools")
        return records is None or self._tools.has_read(records)

    def judge_again(self) -> None:
        """Judge the list anew when it is next asked for, because a person has decided."""
        self._tools.forget()

    def route(self, tool: str) -> Route:
        """Return where a tool is really called."""
        return self._tools.route(tool)

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return Bounds(timeout=self.server.call_timeout)

    def timed_out(self, tool: Tool, seconds: float) -> str:
        """Return what the model reads where a call took too long."""
        return prompts.server_timed_out(tool.shown_name, self.name, seconds)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called when the list of tools has changed; return what ends that."""
        return self._listeners.add(listener)

    # ---- asking it

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Call a tool and return what the server answers, as it came and as a text."""
        client = context.call.client
        relayed = client if isinstance(client, RelayedCall) else RelayedCall(AgentCaller(context))
        relayed.clock = context.clock
        # A server that has just been started may list something else by now.
        await self._ready(context.clock)
        if await self._hub.is_held_back(self._shared, tool.name):
            return Refusal(prompts.HELD_BACK)
        route = self._shared.route(tool.name)
        shown = context.call.tool  # what the settings say of it counts
        result = await self.forward(
            "tools/call",
            {"name": route.name, "arguments": dict(arguments)},
            relayed,
            again=shown.is_read_only or shown.annotations.get("idempotentHint") is True,
            schema=tool.parameters if route.has_headers else None,
            clock=context.clock,
        )
        return output_of_result(result)

    async def _ready(self, clock: CallClock | None) -> Connection:
        # What a server takes to start is bounded by its own limit, not by the call's.
        connection = self.connection
        if connection is not None and not connection.is_closed:
            return connection
        with paused(clock):
            return await self.lifecycle.ready()

    async def forward(
        self,
        method: str,
        request: Params,
        call: RelayedCall,
        *,
        again: bool = False,
        schema: Params | None = None,
        clock: CallClock | None = None,
    ) -> dict[str, Json]:
        """Ask the server for a client, and see the server's own questions through.

        Raises:
            ServerDownError: It cannot be reached, or died.
            MCPError: It refuses.
            TimeoutError: It took too long, where no clock is given.
        """
        line = await self._line(call, clock)
        if line is not self:
            return await line.forward(
                method, request, call, again=again, schema=schema, clock=clock
            )
        sent = dict(request)
        meta = call.meta()
        if meta:
            sent["_meta"] = meta
        passes = call.caller.is_modern and call.park is None
        if passes:
            sent.update((key, call.params[key]) for key in _CARRIED if key in call.params)
        result = await self.request(method, sent, call, again=again, schema=schema, clock=clock)
        result = signed_result(self.name, result)
        for _ in range(_ROUNDS_AT_MOST):
            if passes or result.get("resultType") != "input_required":
                return result
            answers = await call.ask_all(result.get("inputRequests") or {})
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            sent = {**sent, "inputResponses": answers, **state}
            result = await self.request(method, sent, call, schema=schema, clock=clock)
            result = signed_result(self.name, result)
        raise MCPError(INVALID_PARAMS, "the server does not stop asking")

    async def _line(self, call: RelayedCall, clock: CallClock | None) -> McpSource:
        """Return the line on which this call's client can be asked."""
        connection = await self._ready(clock)
        if not self._lines.needs_older(connection, call.caller):
            return self
        with paused(clock):
            return await self._lines.older_or_first()

    def on_older_line(self) -> McpSource:
        """Return a second line to the server, which is spoken to in the older revisions."""
        return McpSource(
            replace(self.server, handshake=True),
            OlderLineHub(self, self._hub),
            parallel=self._parallel,
            client=self.client,
            shared=self._shared,
            auth=self._auth,
        )

    async def request(
        self,
        method: str,
        params: Params,
        call: RelayedCall | None = None,
        *,
        again: bool = False,
        schema: Params | None = None,
        clock: CallClock | None = None,
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
        connection = await self._ready(clock)
        try:
            return await self._requests.send(connection, method, params, call, schema, clock)
        except MCPError as error:
            if not is_gone(error):
                raise
            self.lifecycle.lost(connection)
            unheard = is_unheard(error)
            if not again and not unheard:
                raise self.lifecycle.cut_off() from None
        _log.info("server %s: %s is asked once more", self.name, method)
        with paused(clock):
            connection = await self.lifecycle.ready_again(connection)
        try:
            return await self._requests.send(connection, method, params, call, schema, clock)
        except MCPError as error:
            if not is_gone(error):
                raise
            lost = not unheard or not is_unheard(error)
            raise ServerDownError(self.name, "died over it twice", lost=lost) from None

    # ---- what it says by itself

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        """Pass a question on to the client that it belongs to, or refuse it."""
        params = signed(self.name, method, params)
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
            self.wishes.post(call.log(params))

    # ---- how it stands

    def moved(self) -> None:
        """Its state changed."""
        self._hub.status_changed(self)

    def listed(self, kind: ListedKind) -> None:
        """One of its lists changed."""
        self._hub.list_changed(self, kind)
        if kind == "tools":
            self._listeners.tell()

    def connected(self, connection: Connection) -> None:
        """A connection stands: tell the server what clients want of it."""
        self.in_flight.clear()
        self.wishes.connected(connection)

    def disconnected(self) -> None:
        """The connection is over."""
        self.wishes.disconnected()
