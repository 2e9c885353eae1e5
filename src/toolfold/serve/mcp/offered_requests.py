"""What clients ask for that is no call of a tool: resources, prompts, completions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Literal

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolfold._bounds import one_line
from toolfold.serve.mcp._bounded_results import bounded_contents, bounded_messages, limit_of
from toolfold.serve.mcp._fetches import recorded
from toolfold.serve.mcp._parking import is_continuation
from toolfold.serve.mcp._results import as_errors
from toolfold.serve.mcp.resources import ResourceRoute
from toolfold.serve.principals import Principal
from toolfold.sources.mcp.relay import Caller, RelayedCall
from toolfold.tool import Json, is_object

if TYPE_CHECKING:
    from toolfold.serve.gateway import Gateway

__all__ = ["OfferedRequests"]

RESOURCE_NOT_FOUND = -32002
_CARRIED = ("inputResponses", "requestState")


class OfferedRequests:
    """Brings requests for what servers offer beside tools to the server that has it.

    Args:
        gateway: The gateway.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def read_resource(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Read a resource of the server that has it."""
        uri = str(params.get("uri", ""))
        place = (
            None if is_continuation(params) else await self._gateway.offers.resource(principal, uri)
        )
        work = self._at(
            place, "resources/read", "uri", caller, principal, params,
            MCPError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri}),
        )  # fmt: skip
        return await self._recorded("resource", uri, place, caller, principal, params, work)

    async def get_prompt(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Get a prompt of the server that has it."""
        name = str(params.get("name", ""))
        place = (
            None if is_continuation(params) else await self._gateway.offers.prompt(principal, name)
        )
        work = self._at(
            place, "prompts/get", "name", caller, principal, params,
            MCPError(INVALID_PARAMS, f"no prompt named {one_line(name, 100)!r}"),
        )  # fmt: skip
        return await self._recorded("prompt", name, place, caller, principal, params, work)

    async def _recorded(
        self,
        via: Literal["resource", "prompt"],
        name: str,
        place: ResourceRoute | None,
        caller: Caller,
        principal: Principal,
        params: Mapping[str, Json],
        work: Awaitable[dict[str, Json]],
    ) -> dict[str, Json]:
        """Wait for something that is no call of a tool, and tell the observers of it."""
        with recorded(
            self._gateway.observers, self._gateway.calls, via, name, caller, principal
        ) as fetch:
            fetch.server = None if place is None else place.server
            fetch.params = params
            fetch.result = await work
            return fetch.result

    async def _at(
        self,
        place: ResourceRoute | None,
        method: str,
        key: str,
        caller: Caller,
        principal: Principal,
        params: Mapping[str, Json],
        missing: MCPError,
    ) -> dict[str, Json]:
        if is_continuation(params):
            return await self._gateway.parking.take_up(caller, params)
        self._gateway.calls.admit()
        if place is None:
            raise missing
        with as_errors():
            upstream = self._gateway.pool.upstream(place.server, caller.key, principal.name)
        request = {k: v for k, v in params.items() if k not in (*_CARRIED, "_meta")}
        request[key] = place.name

        async def work(call: RelayedCall) -> dict[str, Json]:
            with as_errors():
                result = await upstream.forward(method, request, call, again=True)
            bounded = bounded_contents if method == "resources/read" else bounded_messages
            return bounded(result, limit_of(upstream, self._gateway.config.serve))

        return await self._gateway.conduct(caller, params, upstream, work)

    async def complete(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Complete an argument of a prompt or of a resource's template."""
        self._gateway.calls.admit()
        ref = said if is_object(said := params.get("ref")) else {}
        key = "uri" if ref.get("type") == "ref/resource" else "name"
        wanted = str(ref.get(key, ""))
        find = self._gateway.offers.resource if key == "uri" else self._gateway.offers.prompt
        place = await find(principal, wanted)
        if place is None:
            raise MCPError(INVALID_PARAMS, f"nothing to complete for {one_line(wanted, 100)!r}")
        with as_errors():
            upstream = self._gateway.pool.upstream(place.server, caller.key, principal.name)
        if not upstream.can("completions"):
            return {"completion": {"values": []}}
        request = {k: v for k, v in params.items() if k != "_meta"}
        request["ref"] = {**ref, key: place.name}
        with self._gateway.calls.entered(), as_errors():
            call = RelayedCall(caller, params)
            return await upstream.forward("completion/complete", request, call, again=True)
