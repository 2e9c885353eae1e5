"""How a client is asked and told, in each family of revisions, in its requests or outside."""

from __future__ import annotations

from typing import Any, cast

from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ConfigDict

from toolfold.serve.mcp.connected_clients import ListKind
from toolfold.sources.mcp.connection import Params
from toolfold.sources.mcp.relay import can
from toolfold.tool import Json

__all__ = ["SessionChannel", "StreamChannel", "ask", "tell"]

_NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_EVENTS = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class _Message(BaseModel):
    """A request or a notification that goes out as it is."""

    method: str
    params: dict[str, Any] | None = None


class _Anything(BaseModel):
    """A result that is taken as it is."""

    model_config = ConfigDict(extra="allow")


async def ask(session: ServerSession, method: str, params: Params, related: Any) -> dict[str, Any]:
    """Ask a client, in a request of its own where one is named, and return what it answers."""
    metadata = None if related is None else ServerMessageMetadata(related_request_id=related)
    message = _Message(method=method, params=dict(params) or None)
    answer = await session.send_request(cast("Any", message), _Anything, metadata=metadata)
    return answer.model_dump(mode="json")


async def tell(session: ServerSession, method: str, params: Params, related: Any = None) -> None:
    """Tell a client, in a request of its own where one is named."""
    message = _Message(method=method, params=dict(params) or None)
    await session.send_notification(cast("Any", message), related)


class SessionChannel:
    """Reaches a client of an older revision outside its requests."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    async def list_changed(self, kind: ListKind) -> None:
        """Say that a list changed."""
        await tell(self._session, f"notifications/{kind}/list_changed", {})

    async def updated(self, uri: str) -> None:
        """Say that a resource changed."""
        await tell(self._session, "notifications/resources/updated", {"uri": uri})

    async def log(self, params: Params) -> None:
        """Pass a log message on."""
        await tell(self._session, "notifications/message", params)

    async def ask(self, method: str, params: Params) -> dict[str, Json] | None:
        """Ask the client something, where it can be asked."""
        capabilities = self._session.client_capabilities
        known = capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities else {}
        if not can(known, _NEEDS[method]):
            return None
        return await ask(self._session, method, params, None)


class StreamChannel:
    """Reaches a client of 2026-07-28 on the stream that it listens on."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()

    async def list_changed(self, kind: ListKind) -> None:
        """Say that a list changed."""
        await self.bus.publish(_EVENTS[kind]())

    async def updated(self, uri: str) -> None:
        """Say that a resource changed."""
        await self.bus.publish(ResourceUpdated(uri=uri))

    async def log(self, params: Params) -> None:
        """This revision has log messages only within requests."""

    async def ask(self, method: str, params: Params) -> dict[str, Json] | None:
        """This revision has no questions outside requests."""
