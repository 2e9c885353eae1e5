"""The example server: its tools, prompts and resources, put together."""

from __future__ import annotations

import warnings
from typing import Any

from mcp import MCPDeprecationWarning
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    EmptyResult,
    JSONRPCMessage,
    ListPromptsResult,
    ListToolsResult,
    Prompt,
    Tool,
)
from starlette.applications import Starlette

from conformance.example import offers
from conformance.example.contents import said
from conformance.example.tools import NOTHING, TOOLS

__all__ = ["ExampleServer"]

NAME = "conformance-example"
RETRY_MILLISECONDS = 500
Context = ServerRequestContext[Any, Any]


class Events(EventStore):
    """Keeps all events of a short run, so that clients can come back for what they missed."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self._events):
            return None
        stream_id = self._events[int(last_event_id) - 1][0]
        for place in range(int(last_event_id), len(self._events)):
            stream, message = self._events[place]
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(place + 1)))
        return stream_id


class _Server(Server[Any]):
    """Says to clients of the older revisions, too, that its lists may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> Any:
        changes = NotificationOptions(prompts_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *rest, **more)


class ExampleServer:
    """A server with everything that the suite asks for."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._tools: tuple[Tool, ...] = ()
        self._prompts: tuple[Prompt, ...] = ()
        with warnings.catch_warnings():
            # `logging/setLevel` is gone from 2026-07-28, and belongs to 2025-11-25.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            self.server = _Server(
                NAME,
                version="1.0.0",
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
                on_list_prompts=self._list_prompts,
                on_get_prompt=offers.get_prompt,
                on_list_resources=offers.list_resources,
                on_list_resource_templates=offers.list_templates,
                on_read_resource=offers.read,
                on_completion=offers.complete,
                on_subscribe_resource=_accept,
                on_unsubscribe_resource=_accept,
                on_set_logging_level=_accept,
                on_subscriptions_listen=ListenHandler(self._bus),
            )
        sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
        self.server.middleware.append(sealed)

    def app(self) -> Starlette:
        """Return it as an application that serves `/mcp`."""
        return self.server.streamable_http_app(
            event_store=Events(), retry_interval=RETRY_MILLISECONDS
        )

    async def _list_tools(self, context: Context, params: Any) -> ListToolsResult:
        listed = [tool.record for tool in TOOLS.values()]
        return ListToolsResult(tools=[*listed, *TRIGGERS, *self._tools])

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> Any:
        if params.name == "test_trigger_tool_change":
            self._tools = () if self._tools else (EXTRA_TOOL,)
            await context.session.send_tool_list_changed()
            await self._bus.publish(ToolsListChanged())
            return said("The list of tools has changed.")
        if params.name == "test_trigger_prompt_change":
            self._prompts = () if self._prompts else (EXTRA_PROMPT,)
            await context.session.send_prompt_list_changed()
            await self._bus.publish(PromptsListChanged())
            return said("The list of prompts has changed.")
        if params.name == EXTRA_TOOL.name:
            return said("Here for now.")
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}")
        return await TOOLS[params.name].work(context, params)

    async def _list_prompts(self, context: Context, params: Any) -> ListPromptsResult:
        return await offers.list_prompts(self._prompts)


async def _accept(context: Context, params: Any) -> EmptyResult:
    return EmptyResult()


def _trigger(name: str, description: str) -> Tool:
    return Tool(name=name, description=description, input_schema=NOTHING)


TRIGGERS = (
    _trigger("test_trigger_tool_change", "Changes the list of tools."),
    _trigger("test_trigger_prompt_change", "Changes the list of prompts."),
)
EXTRA_TOOL = _trigger("test_extra_tool", "Comes and goes.")
EXTRA_PROMPT = Prompt(name="test_extra_prompt", description="Comes and goes.")
