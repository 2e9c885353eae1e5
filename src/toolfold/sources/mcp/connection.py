"""One living connection to a server, in whichever revision of the protocol it speaks.

Requests go out and results come back as they are on the wire: nothing is parsed into
models, so nothing is lost or refused. The revision is found out once, at the start: a
server that answers `server/discover` speaks 2026-07-28, every other one is greeted with
`initialize`. This is the one module that speaks to servers through the protocol's library.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version as installed
from typing import Any, Protocol, TypeAlias

from mcp.shared.dispatcher import CallOptions, DispatchContext, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from toolfold.errors import ToolfoldError
from toolfold.sources.mcp.transports._responses import FATE, Answers, Fate, Said
from toolfold.tool import Json, is_array, is_object

__all__ = [
    "Connection",
    "ConnectionLostError",
    "GoneError",
    "Peer",
    "UnheardError",
    "is_gone",
    "is_unheard",
]

_log = logging.getLogger(__name__)

DISCOVER_TIMEOUT = 5.0
"""How long a server may be silent about `server/discover` before it is greeted, in seconds."""

PING_TIMEOUT = 5.0
"""How long a server has to show that it still knows a session, in seconds."""

CAPABILITIES: Mapping[str, Json] = {
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
    "sampling": {},
}
"""What every server is told a client can do; some offer tools only to those who can. What
the client of a call cannot do is refused at that call."""

ASKS = ("elicitation/create", "sampling/createMessage", "roots/list")
"""What a server may ask a client for."""

_PAGES_AT_MOST = 1_000
_ITEMS_AT_MOST = 100_000

Params: TypeAlias = Mapping[str, Json]


class ConnectionLostError(ToolfoldError):
    """A connection to a server could not be made."""


class GoneError(MCPError):
    """A request failed because the connection is no more."""


class UnheardError(GoneError):
    """A request failed because the connection is no more, and the server has run nothing."""


class SessionLostError(UnheardError):
    """A server over HTTP no longer knows us: it was restarted, and has run nothing."""


class Peer(Protocol):
    """What listens to a server on this side."""

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        """Answer a server's request."""
        ...

    def told(self, method: str, params: Params) -> None:
        """Take a notification that belongs to no call for certain. Must be quick."""
        ...

    def logged(self, params: Params) -> None:
        """Take a log message, in the context of its call where the transport knows it."""
        ...


def client_info() -> dict[str, Json]:
    """Return how we introduce ourselves."""
    return {"name": "toolfold", "version": installed("toolfold")}


class Connection:
    """A connection to a server: negotiate, ask, list.

    Args:
        streams: What the transport gives to read and to write.
        peer: Who listens to what the server says of itself.
        knows_calls: Whether the transport tells which call a log message belongs to.
    """

    def __init__(self, streams: Any, peer: Peer, *, knows_calls: bool) -> None:
        self._stand(peer)
        read, write = streams
        self._dispatcher: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(
            Answers(read), write
        )
        self._knows_calls = knows_calls
        self._info = client_info()

    def _stand(self, peer: Peer) -> None:
        """Know nothing of the server yet; a connection of another kind begins with this alone."""
        self._peer = peer
        self.started = asyncio.Event()
        """Set when requests can be sent."""
        self.version = ""
        self.is_modern = False
        self.is_closed = False
        self.has_moved = False
        """Whether it ended because the server runs elsewhere from now on."""
        self.capabilities: Mapping[str, Json] = {}
        self.instructions: str | None = None
        self.server_info: Mapping[str, Json] = {}

    async def run(self) -> None:
        """Read what the server sends until it sends no more."""
        try:
            await self._dispatcher.run(
                self._on_request,
                self._on_notify,
                self._intercept,
                task_status=_Started(self.started),
            )
        finally:
            self.is_closed = True

    # ---- what the server says

    async def _on_request(
        self, context: DispatchContext[TransportContext], method: str, params: Params | None
    ) -> dict[str, Json]:
        if method == "ping":
            return {}
        if method not in ASKS:
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found")
        return await self._peer.asked(method, params or {})

    async def _on_notify(
        self, context: DispatchContext[TransportContext], method: str, params: Params | None
    ) -> None:
        self._peer.logged(params or {})

    def _intercept(self, method: str, params: Params | None) -> bool:
        """Take a notification at once, so that a flood of them starts no tasks."""
        if method == "notifications/message":
            if self._knows_calls:
                return False
            self._peer.logged(params or {})
        elif method not in ("notifications/progress", "notifications/cancelled"):
            self._peer.told(method, params or {})
        return True

    # ---- what we say

    async def negotiate(self, *, handshake: bool = False, older_first: bool = False) -> None:
        """Find out which revision the server speaks, and begin.

        Args:
            handshake: Whether to keep to the older revisions, which begin with one.
            older_first: Whether to begin with one of those, where the server speaks both.

        Raises:
            ConnectionLostError: There is none that both speak, or the server's answer is unusable.
            MCPError: The server refuses.
        """
        if handshake:
            await self._initialize()
            return
        if older_first and await self._begins_older():
            return
        try:
            found = await self._discovered()
        except MCPError as error:
            if is_gone(error):
                raise
            _log.debug("no discovery (%s), greeting instead", error)
            found = await self._greeted()
        if found is None:
            return
        versions = found.get("supportedVersions")
        mutual = [v for v in MODERN_PROTOCOL_VERSIONS if is_array(versions) and v in versions]
        if not mutual:
            await self._initialize()
            return
        self._adopt(mutual[-1], found)
        meta = found.get("_meta")
        stamp = meta.get("io.modelcontextprotocol/serverInfo") if is_object(meta) else None
        self.server_info = stamp if is_object(stamp) else {}

    async def _begins_older(self) -> bool:
        """Begin in one of the older revisions; say whether the server speaks one."""
        try:
            await self._initialize()
        except MCPError as error:
            if is_gone(error):
                raise
            _log.debug("no greeting (%s), asking instead", error)
            return False
        return True

    async def _discovered(self) -> dict[str, Json]:
        """Ask what the server speaks; where it refuses the version, with one that it names."""
        try:
            return await self._discover(LATEST_MODERN_VERSION)
        except MCPError as error:
            supported = _supported(error)
            if not supported:
                raise
            known = [v for v in MODERN_PROTOCOL_VERSIONS if v in supported]
            if not known and not set(supported) & set(HANDSHAKE_PROTOCOL_VERSIONS):
                raise ConnectionLostError(f"it speaks only {', '.join(supported)}") from None
            if not known:
                raise
            return await self._discover(known[-1])

    async def _greeted(self) -> dict[str, Json] | None:
        """Greet the server; return what it says to `server/discover` where it wants that."""
        try:
            await self._initialize()
            return None
        except MCPError as refusal:
            # A slow server may have taken the question for the beginning after all.
            if not set(_supported(refusal)) & set(MODERN_PROTOCOL_VERSIONS):
                raise
            return await self._discover(LATEST_MODERN_VERSION)

    async def _discover(self, version: str) -> dict[str, Json]:
        options: CallOptions = {
            "timeout": DISCOVER_TIMEOUT,
            "cancel_on_abandon": False,
            "headers": {
                MCP_PROTOCOL_VERSION_HEADER: version,
                MCP_METHOD_HEADER: "server/discover",
            },
        }
        params = {"_meta": self._envelope(version, CAPABILITIES)}
        return await self._ask("server/discover", params, options)

    async def _initialize(self) -> None:
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": CAPABILITIES,
            "clientInfo": self._info,
        }
        found = await self._ask("initialize", params, {"cancel_on_abandon": False})
        version = found.get("protocolVersion")
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise ConnectionLostError(f"it answers in the unknown revision {version!r}")
        self._adopt(version, found)
        info = found.get("serverInfo")
        self.server_info = info if is_object(info) else {}
        await self.notify("notifications/initialized")

    def _adopt(self, version: str, found: Params) -> None:
        self.version = version
        self.is_modern = version in MODERN_PROTOCOL_VERSIONS
        capabilities = found.get("capabilities")
        self.capabilities = capabilities if is_object(capabilities) else {}
        instructions = found.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else None

    def _envelope(self, version: str, capabilities: Params) -> dict[str, Json]:
        return {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: self._info,
            CLIENT_CAPABILITIES_META_KEY: dict(capabilities),
        }

    async def request(
        self,
        method: str,
        params: dict[str, Json],
        *,
        timeout: float | None,  # noqa: ASYNC109
        on_progress: ProgressFnT | None = None,
        on_closed: Callable[[], Awaitable[None]] | None = None,
        capabilities: Params | None = None,
        schema: Params | None = None,
    ) -> dict[str, Json]:
        """Ask the server, and return its result as it came.

        Args:
            method: What to ask.
            params: With what. The caller's to give away: it is added to.
            timeout: After how many seconds to give up and to tell the server so.
            on_progress: Called with each progress report.
            on_closed: Called when the server closes its stream before it has answered, so that
                it is asked for the rest. The rest is waited for all the same.
            capabilities: What the client of this very call can do.
            schema: The tool's own, where its parameters may travel as headers.

        Raises:
            MCPError: The server refuses, is gone, or took too long.
        """
        options: CallOptions = {}
        if timeout is not None:
            options["timeout"] = timeout
        if on_progress is not None:
            options["on_progress"] = on_progress
        if self.is_modern:
            offered = CAPABILITIES if capabilities is None else capabilities
            params["_meta"] = {
                **(params.get("_meta") or {}),
                **self._envelope(self.version, offered),
            }
            options["headers"] = self._headers(method, params, schema)
        else:
            options["headers"] = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        return await self._ask(method, params, options, on_closed)

    async def _ask(
        self,
        method: str,
        params: Params,
        options: CallOptions,
        on_closed: Callable[[], Awaitable[None]] | None = None,
    ) -> dict[str, Json]:
        """Send a request, and tell the server's own refusal from the end of its connection."""
        fate = Fate(on_closed)
        before = FATE.set(fate)
        try:
            return await self._dispatcher.send_raw_request(method, params, options)
        except MCPError as error:
            raised = error
        finally:
            FATE.reset(before)
        said: object = raised.data
        is_closed = raised.code == CONNECTION_CLOSED
        if not isinstance(said, Said):
            raise GoneError(raised.code, raised.message) if is_closed else raised
        if is_closed and fate.is_cut:
            raise GoneError(raised.code, raised.message)
        if fate.is_refused and not await self._is_known():
            raise SessionLostError(raised.code, raised.message)
        raise MCPError(raised.code, raised.message, said.data)

    async def _is_known(self) -> bool:
        """Whether a server that refused a request with our session still knows the session.

        Servers say that they do not in many ways, and refuse requests of a session that they
        know in the same. One that they cannot but answer settles it.
        """
        fate = Fate()
        before = FATE.set(fate)
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        try:
            await self._dispatcher.send_raw_request(
                "ping", None, {"timeout": PING_TIMEOUT, "headers": headers}
            )
        except MCPError as error:
            _log.debug("no answer to a ping: %s", error)
        finally:
            FATE.reset(before)
        return not fate.is_refused

    def _headers(self, method: str, params: Params, schema: Params | None) -> dict[str, str]:
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version, MCP_METHOD_HEADER: method}
        key = NAME_BEARING_METHODS.get(method)
        if key is not None:
            headers[MCP_NAME_HEADER] = encode_header_value(str(params.get(key, "")))
        if schema is not None and (declared := x_mcp_header_map(dict(schema))):
            headers.update(mcp_param_headers(declared, params.get("arguments") or {}))
        return headers

    async def notify(self, method: str, params: Params | None = None) -> None:
        """Tell the server something."""
        await self._dispatcher.notify(
            method, params, {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.version}}
        )

    async def list_all(self, method: str, key: str, patience: float | None) -> list[Json]:
        """Return all pages of a list, as records.

        A server that repeats a cursor, or never ends, is cut off with what there is.
        """
        items: list[Json] = []
        seen: set[str] = set()
        cursor: Json = None
        for _ in range(_PAGES_AT_MOST):
            params = {} if cursor is None else {"cursor": cursor}
            page = await self.request(method, params, timeout=patience)
            found = page.get(key)
            items.extend(found if is_array(found) else ())
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return items
            if cursor in seen or len(items) > _ITEMS_AT_MOST:
                break
            seen.add(cursor)
        _log.warning("%s does not end: what came after %d entries is left out", method, len(items))
        return items


def _supported(error: MCPError) -> list[str]:
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not is_object(error.data):
        return []
    versions = error.data.get("supported")
    return [v for v in versions if isinstance(v, str)] if is_array(versions) else []


def is_gone(error: MCPError) -> bool:
    """Whether a request failed because the connection is no more."""
    return isinstance(error, GoneError)


def is_unheard(error: MCPError) -> bool:
    """Whether a request failed because the connection is no more, and nothing was run."""
    return isinstance(error, UnheardError)


class _Started:
    """Tells when the dispatcher can send."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def started(self, value: object = None) -> None:
        self._event.set()
