"""The MCP server that clients see, in every revision of the protocol.

One middleware answers what the gateway knows, with plain records that nothing parses on
their way; the protocol's library does the rest: handshakes, sessions, streams. This is
the one module that speaks to clients through it.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib.metadata import version as installed
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcp.server.connection import Connection
from mcp.server.context import (
    CallNext,
    HandlerResult,
    ServerMiddleware,
    ServerRequestContext,
)
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    ListenHandler,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVEL_META_KEY,
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from toolfold import prompts
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.conversations import HttpConversation, conversation_of
from toolfold.serve.mcp._once import ARRIVED, RepeatableCall
from toolfold.serve.mcp._param_headers import check_headers, speaks_of_arguments
from toolfold.serve.mcp.client_channels import SessionChannel, StreamChannel, ask, tell
from toolfold.serve.mcp.connected_clients import LEVELS, ConnectedClient, ListKind, reaches
from toolfold.serve.principals import Principal, principal_of
from toolfold.sources.mcp.connection import Params
from toolfold.sources.mcp.relay import can
from toolfold.tool import Json, is_object

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig

__all__ = ["Downstream", "make_server"]

_log = logging.getLogger(__name__)
_STATE = "toolfold.client"
_STREAMS_AT_MOST = 1024
_requests = count()
_GREETINGS = frozenset({"initialize", "server/discover"})
_REMOVED = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""What 2026-07-28 no longer has: the library says so."""
Context: TypeAlias = ServerRequestContext[Any, Any]


def connection_of(context: Context) -> Connection:
    """Return the connection of a request. The library keeps it, but not in the open."""
    return context.session._connection  # pyright: ignore[reportPrivateUsage]


class ClientRequest:
    """One request of a client, and the way back while it lasts."""

    def __init__(
        self,
        context: Context,
        principal: Principal,
        client: ConnectedClient | None,
        key: str,
        *,
        remembers: bool = True,
    ) -> None:
        self._context = context
        self.principal = principal
        self.client = client
        self.params: Params = context.params or {}
        self.is_modern = client is None
        self.key = key
        self.remembers = remembers
        # Requests of 2026-07-28 over HTTP carry no session: any two may be of two clients.
        shared = client is None and context.request is not None
        self.origin = f"{key} {next(_requests)}" if shared else key
        self.owner = principal.whose
        self.repeatable: RepeatableCall | None = None
        meta = self.params.get("_meta")
        self._meta: Params = meta if is_object(meta) else {}

    @property
    def request_id(self) -> str | int | None:
        """What the client calls the request."""
        return self._context.request_id

    @property
    def arrived(self) -> float:
        """When it came in, by the monotonic clock; now, where nobody took note."""
        request = self._context.request
        found = None if request is None else request.scope.get(ARRIVED)
        return found if isinstance(found, float) else time.monotonic()

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of the request, where it came over HTTP."""
        request = self._context.request
        return None if request is None else request.headers

    @property
    def capabilities(self) -> Params:
        """What the client can do."""
        if self.client is not None:
            return self.client.capabilities
        given = self._meta.get(CLIENT_CAPABILITIES_META_KEY)
        return given if is_object(given) else {}

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked for progress reports."""
        return self._meta.get("progressToken") is not None

    @property
    def log_level(self) -> str | None:
        """From which level on the client wants log messages, where it said so."""
        if self.client is not None:
            return self.client.level
        level = self._meta.get(LOG_LEVEL_META_KEY)
        return level if level in LEVELS else None

    async def ask(self, method: str, params: Params) -> dict[str, Json]:
        """Ask the client in the middle of its request."""
        return await ask(self._context.session, method, params, self._context.request_id)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report progress."""
        await self._context.session.report_progress(done, total, message)

    async def log(self, params: Params) -> None:
        """Pass a log message on, where the client wants it."""
        wanted = self.log_level if self.is_modern else self.log_level or "debug"
        if wanted is not None and reaches(params.get("level"), wanted):
            session = self._context.session
            await tell(session, "notifications/message", params, self._context.request_id)

    async def close_stream(self) -> None:
        """Close the stream of the request, where the client comes back for the rest."""
        if self._context.close_sse_stream is not None:
            await self._context.close_sse_stream()


class Downstream:
    """Answers clients for a gateway: the middleware of its MCP server.

    Args:
        gateway: The gateway.
        local: Who clients over standard input and output are.
    """

    def __init__(self, gateway: Gateway, local: Principal) -> None:
        self._gateway = gateway
        self._local = local
        gateway.doors.append(self)
        self._streams = 0
        self._pipe = HttpConversation(f"2026:{uuid.uuid4().hex}", is_known=True)
        self._answers: dict[str, Callable[[ClientRequest], Awaitable[dict[str, Json]]]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
        }

    async def __call__(self, context: Context, call_next: CallNext) -> HandlerResult:
        """Answer a request, or leave it to the library."""
        if context.request_id is None:
            return await self._noted(context, call_next)
        if context.method == "subscriptions/listen":
            return await self._listen(context)
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        answer = self._answers.get(context.method)
        if context.method in _GREETINGS:
            return self._instructed(context, await call_next(context))
        if answer is None or (is_modern and context.method in _REMOVED):
            return await call_next(context)
        if is_modern:
            conversation = self._conversation(context)
            exchange = ClientRequest(
                context,
                self._principal(context),
                None,
                conversation.key,
                remembers=conversation.is_known,
            )
            result = await answer(exchange)
            return result if "resultType" in result else {"resultType": "complete", **result}
        if context.session.client_params is None:
            return await call_next(context)  # before the handshake: the library refuses
        client = self._client(context)
        result = await answer(ClientRequest(context, client.principal, client, client.key))
        if "resultType" in result:
            result = {key: value for key, value in result.items() if key != "resultType"}
        return result

    def _instructed(self, context: Context, greeting: HandlerResult) -> HandlerResult:
        """Return a greeting with what holds for the profile that a client asks under."""
        folding = self._gateway.views.folding(self._admitted(context)).settings
        text = prompts.instructions(folding.bridge_prefix, folding.listing)
        if isinstance(greeting, BaseModel):
            return greeting.model_copy(update={"instructions": text})
        return {**greeting, "instructions": text} if greeting else greeting

    def prepared(self, config: GatewayConfig) -> Callable[[], None]:
        """Return what has clients over standard input and output be who they are by now."""
        serve = config.serve
        local = replace(self._local, read_only=serve.read_only, rate_limit=serve.rate_limit)
        return lambda: self._keep_to(local)

    def _keep_to(self, local: Principal) -> None:
        before, self._local = self._local, local
        for client in self._gateway.clients:
            if client.admitted == before:
                client.admitted = local
            client.principal = self._gateway.narrowed(client.admitted)

    def _admitted(self, context: Context) -> Principal:
        """Return who asks, by the door that let them in."""
        request = context.request
        return self._local if request is None else principal_of(request.scope)

    def _principal(self, context: Context) -> Principal:
        return self._gateway.narrowed(self._admitted(context))

    def _conversation(self, context: Context) -> HttpConversation:
        """Return the conversation of a client without a session, by its pipe or by the door."""
        return self._pipe if context.request is None else conversation_of(context.request.scope)

    def _client(self, context: Context) -> ConnectedClient:
        """Return the client of an older revision's connection, known from its first request."""
        connection = connection_of(context)
        client = connection.state.get(_STATE)
        if client is None:
            key = connection.session_id or uuid.uuid4().hex
            client = ConnectedClient(
                key,
                self._principal(context),
                SessionChannel(context.session),
                is_modern=False,
                admitted=self._admitted(context),
            )
            capabilities = context.session.client_capabilities
            if capabilities is not None:
                client.capabilities = capabilities.model_dump(by_alias=True, exclude_none=True)
            connection.state[_STATE] = client
            if self._gateway.roaming is not None:
                self._gateway.roaming.number_questions(connection)
            self._gateway.joined(client)
            connection.exit_stack.push_async_callback(self._gateway.left, client)
        elif context.request is not None:
            # The next access token of the same person may be worth less, or more.
            before, client.admitted = client.principal, self._admitted(context)
            client.principal = self._principal(context)
            if client.principal != before:
                self._gateway.news.judged_anew(client)
        return client

    async def _noted(self, context: Context, call_next: CallNext) -> HandlerResult:
        done = await call_next(context)
        is_old = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
        if is_old and context.session.client_params is not None:
            if context.method == "notifications/initialized":
                client = self._client(context)
                if can(client.capabilities, "roots"):
                    self._gateway.news.roots_changed(client)
            elif context.method == "notifications/roots/list_changed":
                self._gateway.news.roots_changed(self._client(context))
        return done

    # ---- tools

    async def _list_tools(self, exchange: ClientRequest) -> dict[str, Json]:
        tools, digest = await self._gateway.list_tools(
            exchange.principal, exchange.key, remembers=exchange.remembers
        )
        if exchange.client is not None:
            exchange.client.known["tools"] = digest
        return _listed(exchange, "tools", tools)

    async def _call_tool(self, exchange: ClientRequest) -> dict[str, Json]:
        headers = exchange.headers if exchange.is_modern else None
        if headers is not None and speaks_of_arguments(exchange.params, headers):
            # A tool's headers are known from the list that the client itself gets: whoever
            # does not see the tool hears nothing of them.
            tools, _ = await self._gateway.list_tools(
                exchange.principal, exchange.key, remembers=exchange.remembers
            )
            check_headers(exchange.params, headers, tools)
        if self._gateway.roaming is not None:
            exchange.repeatable = self._gateway.roaming.repeatable(exchange)
        return await self._gateway.call_tool(
            exchange, exchange.principal, exchange.params, remembers=exchange.remembers
        )

    # ---- resources and prompts

    async def _list_resources(self, exchange: ClientRequest) -> dict[str, Json]:
        found = await self._gateway.offers.resources(exchange.principal)
        await self._note(exchange, "resources")
        return _listed(exchange, "resources", found)

    async def _list_templates(self, exchange: ClientRequest) -> dict[str, Json]:
        found = await self._gateway.offers.templates(exchange.principal)
        await self._note(exchange, "resources")
        return _listed(exchange, "resourceTemplates", found)

    async def _list_prompts(self, exchange: ClientRequest) -> dict[str, Json]:
        found = await self._gateway.offers.prompts(exchange.principal)
        await self._note(exchange, "prompts")
        return _listed(exchange, "prompts", found)

    async def _note(self, exchange: ClientRequest, kind: ListKind) -> None:
        """Remember what a client knows, so that it is told when that changes."""
        if exchange.client is not None:
            known = await self._gateway.news.digest(exchange.principal, kind)
            exchange.client.known[kind] = known

    async def _read_resource(self, exchange: ClientRequest) -> dict[str, Json]:
        read = await self._gateway.requests.read_resource(
            exchange, exchange.principal, exchange.params
        )
        return read if read.get("resultType") == "input_required" else _cached(exchange, read)

    async def _get_prompt(self, exchange: ClientRequest) -> dict[str, Json]:
        return await self._gateway.requests.get_prompt(
            exchange, exchange.principal, exchange.params
        )

    async def _complete(self, exchange: ClientRequest) -> dict[str, Json]:
        return await self._gateway.requests.complete(exchange, exchange.principal, exchange.params)

    async def _subscribe(self, exchange: ClientRequest) -> dict[str, Json]:
        client, uri = exchange.client, str(exchange.params.get("uri", ""))
        if client is None or not await self._gateway.news.subscribe(client, uri):
            raise MCPError(-32002, "Resource not found", {"uri": uri})
        await self._wished(client)
        return {}

    async def _unsubscribe(self, exchange: ClientRequest) -> dict[str, Json]:
        if exchange.client is not None:
            uri = str(exchange.params.get("uri", ""))
            await self._gateway.news.unsubscribe(exchange.client, uri)
            await self._wished(exchange.client)
        return {}

    async def _set_level(self, exchange: ClientRequest) -> dict[str, Json]:
        level = exchange.params.get("level")
        if level not in LEVELS or exchange.client is None:
            raise MCPError(INVALID_PARAMS, "there is no such level")
        self._gateway.news.set_level(exchange.client, level)
        await self._wished(exchange.client)
        return {}

    async def _wished(self, client: ConnectedClient) -> None:
        if self._gateway.roaming is not None:
            await self._gateway.roaming.has_wished(client)

    async def _listen(self, context: Context) -> HandlerResult:
        """Tell a client of 2026-07-28 of changes for as long as it listens."""
        try:
            params = SubscriptionsListenRequestParams.model_validate(context.params or {})
        except ValidationError:
            raise MCPError(INVALID_PARAMS, "Invalid request parameters") from None
        if self._streams >= _STREAMS_AT_MOST:
            raise MCPError(INTERNAL_ERROR, "too many streams")
        principal = self._principal(context)
        stream = StreamChannel()
        key, admitted = self._conversation(context).key, self._admitted(context)
        client = ConnectedClient(key, principal, stream, is_modern=True, admitted=admitted)
        client.known["tools"] = (await self._gateway.view(principal)).digest
        for kind in ("resources", "prompts"):
            client.known[kind] = await self._gateway.news.digest(principal, kind)
        self._streams += 1
        self._gateway.joined(client)
        try:
            for uri in params.notifications.resource_subscriptions or ():
                await self._gateway.news.subscribe(client, uri)
            done = await ListenHandler(stream.bus)(context, params)
            return {**done.model_dump(by_alias=True, exclude_none=True), "resultType": "complete"}
        finally:
            self._streams -= 1
            await self._gateway.left(client)


def _listed(exchange: ClientRequest, key: str, items: list[Json]) -> dict[str, Json]:
    return _cached(exchange, {key: items})


def _cached(exchange: ClientRequest, result: dict[str, Json]) -> dict[str, Json]:
    # What there is depends on who asks, and may change at any time, whatever its server says.
    return {**result, "ttlMs": 0, "cacheScope": "private"} if exchange.is_modern else result


class _Server(Server[Any]):
    """A server that says to clients of all revisions that its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changes = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(
            notification_options or changes, experimental_capabilities, extensions
        )


async def _unreachable(context: Any, params: Any) -> Any:
    """Stand for what the middleware answers; its being there declares the capability."""
    raise MCPError(INTERNAL_ERROR, "not answered")


def make_server(gateway: Gateway, local: Principal) -> Server[Any]:
    """Return the MCP server of a gateway, for any transport.

    Args:
        gateway: The gateway, which somebody else starts and stops.
        local: Who clients over standard input and output are.
    """
    folding = gateway.config.folding
    # The library would list all tools at each call; the middleware knows what it has listed.
    server = _Server(
        "toolfold",
        version=installed("toolfold"),
        title="toolfold",
        instructions=prompts.instructions(folding.bridge_prefix, folding.listing),
        get_tool_input_schema=lambda name: None,
    )
    for method, params in {
        "tools/list": PaginatedRequestParams,
        "tools/call": CallToolRequestParams,
        "resources/list": PaginatedRequestParams,
        "resources/templates/list": PaginatedRequestParams,
        "resources/read": ReadResourceRequestParams,
        "resources/subscribe": SubscribeRequestParams,
        "resources/unsubscribe": UnsubscribeRequestParams,
        "prompts/list": PaginatedRequestParams,
        "prompts/get": GetPromptRequestParams,
        "completion/complete": CompleteRequestParams,
        "logging/setLevel": SetLevelRequestParams,
        "subscriptions/listen": SubscriptionsListenRequestParams,
    }.items():
        server.add_request_handler(method, params, _unreachable)
    server.middleware.clear()
    server.middleware.append(cast("ServerMiddleware[Any]", Downstream(gateway, local)))
    return server
