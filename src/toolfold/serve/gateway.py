"""The gateway itself: what a client's request comes to, whatever it came over.

Every request has a principal. The principal's scope is applied before there is a catalog,
so whatever is answered here, list, search, description, error or news, knows of nothing
else. A call that resolves to a real tool goes to that tool's server, and what the server
answers goes back as it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolfold import prompts
from toolfold.answer import Answer, Invocation
from toolfold.bounds import one_line
from toolfold.dispatch.records import FoldRecord, Observer, Observers, SearchRecord
from toolfold.dispatch.spans import Spans
from toolfold.memo import Memo
from toolfold.scope import EVERYTHING, Scope
from toolfold.serve import words
from toolfold.serve.catalog.pool import Pool
from toolfold.serve.catalog.views import View, Views
from toolfold.serve.mcp.connected_clients import ConnectedClient, ConnectedClients
from toolfold.serve.mcp.notifications import Notifications
from toolfold.serve.mcp.resources import ResourceCatalog, ResourceRoute
from toolfold.serve.principals import LOCAL, Principal
from toolfold.serve.watch import Watch, as_errors, text_result
from toolfold.session import SessionStore
from toolfold.sources.mcp.relay import TOKEN_PREFIX, Caller, Parking, RelayedCall, can
from toolfold.sources.mcp.upstream import ServerDownError, Upstream
from toolfold.tokens import compact
from toolfold.tool import Json, Tool, is_object

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.sources.mcp.manifests import Manifests
    from toolfold.sources.mcp.transports.process import Child

__all__ = ["Gateway"]

RESOURCE_NOT_FOUND = -32002

_ROUNDS_AT_MOST = 16
_ARGUMENTS_SHOWN = 600
_CARRIED = ("inputResponses", "requestState")
_ENVELOPE = "io.modelcontextprotocol/"
_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

_log = logging.getLogger(__name__)


class Gateway:
    """All servers behind one.

    Args:
        config: The servers, how to serve and how to fold.
        scope: The tools that exist for anybody at all.
        observers: Who is told of calls, searches and servers.
        trust: Which tools wait for a person's approval.
        manifests: What the servers listed in earlier runs.
        children: Processes that are being started already, by server.
        auth: Makes what signs the HTTP requests to a server.
        spans: Makes OpenTelemetry's spans.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        scope: Scope = EVERYTHING,
        observers: tuple[Observer, ...] = (),
        trust: Trust | None = None,
        manifests: Manifests | None = None,
        children: Mapping[str, Awaitable[Child]] | None = None,
        auth: Callable[[Any], Any] | None = None,
        spans: Spans | None = None,
    ) -> None:
        self.config = config
        self._scope = scope
        self._narrowed: Memo[Principal, Principal] = Memo(1024)
        self._spans = spans or Spans()
        self.observers = Observers(observers)
        serve = config.serve
        self.pool = Pool(
            config.servers,
            observers=self.observers,
            parallel=serve.max_parallel,
            lazy=serve.lazy,
            limit=serve.description_limit,
            trust=trust,
            manifests=manifests,
            children=children,
            auth=auth,
        )
        self.views = Views(self.pool, config.settings, serve.context_length, serve.mode)
        self.offers = ResourceCatalog(self.pool, serve.description_limit)
        self.clients = ConnectedClients()
        self.news = Notifications(self.pool, self.views, self.offers, self.clients)
        self.sessions = SessionStore()
        self.parking = Parking()
        self._told_fold: FoldRecord | None = None

    async def __aenter__(self) -> Gateway:
        self.news.on_tools = self._tell_fold
        self.news.listen()
        self.pool.run()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.parking.close()
        self.news.close()
        await self.pool.stop()

    def narrowed(self, principal: Principal) -> Principal:
        """Return a principal within what exists for anybody at all."""
        if self._scope.holds_everything:
            return principal
        return self._narrowed.get_or(principal, lambda: self._narrow(principal))

    def _narrow(self, principal: Principal) -> Principal:
        allow, deny = self._scope.allow, self._scope.deny
        return replace(principal, scope=principal.scope.narrow(allow=allow, deny=deny))

    async def view(self, principal: Principal) -> View:
        """Return what a principal sees, once the servers have had a moment to start."""
        await self.pool.settled()
        return await self.views.of(principal)

    async def _tell_fold(self) -> None:
        view = await self.views.of(self.narrowed(LOCAL))
        report = view.folded.report
        record = FoldRecord(
            view.folded.active, report.tools_before, report.tokens_before, report.tokens_after
        )
        if record != self._told_fold:
            self._told_fold = record
            self.observers.folded(record)

    # ---- tools

    async def list_tools(self, principal: Principal, key: str) -> tuple[list[Json], str]:
        """Return what a client lists now, and a digest of what it would list at first."""
        view = await self.view(principal)
        return view.listed(self.sessions.get(key)), view.digest

    async def call_tool(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Return what a client's call comes to.

        Raises:
            MCPError: The server refuses, or the request is none.
        """
        if _is_continuation(params):
            return await self.parking.conduct(caller, params, _never)
        name = params.get("name")
        if not isinstance(name, str):
            raise MCPError(INVALID_PARAMS, "a call needs a `name`")
        view = self.views.ready(principal) or await self.view(principal)
        session = self.sessions.get(caller.key)
        began = time.time()
        if name == prompts.TOOL_SEARCH and view.folded.active:
            resolved = await asyncio.to_thread(
                view.folded.resolve, name, params.get("arguments"), session=session
            )
        else:
            resolved = view.folded.resolve(name, params.get("arguments"), session=session)
        if isinstance(resolved, Answer):
            return self._answered(resolved, caller, principal, view, params, began)
        if resolved.session is not session:
            self.sessions.put(caller.key, resolved.session)
        return await self._invoke(resolved, caller, principal, view, params)

    def _answered(
        self,
        answer: Answer,
        caller: Caller,
        principal: Principal,
        view: View,
        params: Mapping[str, Json],
        began: float,
    ) -> dict[str, Json]:
        # Another search of this client may have ended meanwhile: what it revealed stays.
        before = self.sessions.get(caller.key)
        after = answer.session
        if set(after.revealed) - set(before.revealed):
            after = before.reveal(after.revealed)
        if after != before:
            self.sessions.put(caller.key, after)
        text = answer.text
        if params.get("name") == prompts.TOOL_SEARCH and view.folded.active:
            arguments = params.get("arguments")
            query = arguments.get("query") if is_object(arguments) else None
            self.observers.searched(
                SearchRecord(
                    began, principal.name, caller.key, str(query or "")[:2000],
                    len(answer.hits), time.time() - began,
                )
            )  # fmt: skip
            if view.reveals:
                text = text.replace(prompts.HITS_FOOT, words.REVEALED_FOOT)
                if after.revealed != before.revealed:
                    self.news.revealed(caller.key)
        return text_result(text, is_error=answer.is_error)

    async def _invoke(
        self,
        invocation: Invocation,
        caller: Caller,
        principal: Principal,
        view: View,
        params: Mapping[str, Json],
    ) -> dict[str, Json]:
        tool = invocation.tool
        route = view.stock.routes[tool.name]
        try:
            upstream = self.pool.upstream(route.server, caller.key)
        except ServerDownError as error:
            text = words.server_down(tool.shown_name, route.server, error.reason, lost=False)
            return text_result(text, is_error=True)
        asks = self.config.serve.destructive != "allow" and tool.is_destructive
        request = {"name": route.name, "arguments": dict(invocation.arguments)}
        again = any(tool.annotations.get(h) is True for h in ("readOnlyHint", "idempotentHint"))
        schema = tool.parameters if route.has_headers else None

        async def work(call: RelayedCall) -> dict[str, Json]:
            watch = Watch(self.observers, invocation, principal, caller, view)
            with self._spans.call(tool.name, route.server) as ended, watch.until(ended):
                if asks and (refusal := await self._approve(call, tool, invocation.arguments)):
                    return watch.refused(refusal)
                # A server that has just been started may list something else by now.
                await upstream.ready()
                if self.pool.is_held_back(tool.name):
                    return watch.refused(words.held_back(tool.shown_name))
                result = await self._forward(
                    upstream, "tools/call", request, call, params, again=again, schema=schema
                )
                watch.ended(result)
                self.offers.note_links(route.server, result)
            return watch.result

        return await self._conduct(caller, params, upstream, work, asks=asks)

    async def _approve(
        self, call: RelayedCall, tool: Tool, arguments: Mapping[str, Json]
    ) -> str | None:
        """Ask about a destructive call; return why it does not run, where it does not."""
        if self.config.serve.destructive == "refuse":
            return words.refused(tool.shown_name)
        if not can(call.caller.capabilities, "elicitation"):
            return words.cannot_ask(tool.shown_name)
        shown = one_line(compact(arguments), _ARGUMENTS_SHOWN)
        answer = await call.ask(
            "elicitation/create",
            {
                "mode": "form",
                "message": words.question(tool.shown_name, tool.source or "", shown),
                "requestedSchema": {"type": "object", "properties": {}},
            },
        )
        return None if answer.get("action") == "accept" else words.declined(tool.shown_name)

    # ---- on the way

    async def _conduct(
        self,
        caller: Caller,
        params: Mapping[str, Json],
        upstream: Upstream,
        work: Callable[[RelayedCall], Awaitable[dict[str, Json]]],
        *,
        asks: bool = False,
    ) -> dict[str, Json]:
        """Run a request; where it may have to be parked, in a task of its own."""
        may_park = caller.is_modern and any(
            can(caller.capabilities, what) for what in ("elicitation", "sampling", "roots")
        )
        if may_park and (asks or upstream.connection is None or not upstream.connection.is_modern):
            return await self.parking.conduct(caller, params, work)
        call = RelayedCall(caller)
        try:
            return await work(call)
        finally:
            await call.settle()

    async def _forward(
        self,
        upstream: Upstream,
        method: str,
        request: Mapping[str, Json],
        call: RelayedCall,
        params: Mapping[str, Json],
        *,
        again: bool = False,
        schema: Mapping[str, Json] | None = None,
    ) -> dict[str, Json]:
        """Ask a server for a client, and see the server's own questions through."""
        caller = call.caller
        sent = dict(request)
        meta = _meta(params, caller)
        if meta:
            sent["_meta"] = meta
        passes = caller.is_modern and call.parking is None
        if passes:
            sent.update((key, params[key]) for key in _CARRIED if key in params)
        result = await upstream.request(method, sent, call, again=again, schema=schema)
        for _ in range(_ROUNDS_AT_MOST):
            if passes or result.get("resultType") != "input_required":
                return result
            answers = await call.ask_all(result.get("inputRequests") or {})
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            sent = {**sent, "inputResponses": answers, **state}
            result = await upstream.request(method, sent, call, schema=schema)
        raise MCPError(INVALID_PARAMS, "the server does not stop asking")

    # ---- resources, prompts, completions

    async def read_resource(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Read a resource of the server that has it."""
        uri = str(params.get("uri", ""))
        place = None if _is_continuation(params) else await self.offers.resource(principal, uri)
        return await self._at(
            place, "resources/read", "uri", caller, params,
            MCPError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri}),
        )  # fmt: skip

    async def get_prompt(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Get a prompt of the server that has it."""
        name = str(params.get("name", ""))
        place = None if _is_continuation(params) else await self.offers.prompt(principal, name)
        return await self._at(
            place, "prompts/get", "name", caller, params,
            MCPError(INVALID_PARAMS, f"no prompt named {one_line(name, 100)!r}"),
        )  # fmt: skip

    async def _at(
        self,
        place: ResourceRoute | None,
        method: str,
        key: str,
        caller: Caller,
        params: Mapping[str, Json],
        missing: MCPError,
    ) -> dict[str, Json]:
        if _is_continuation(params):
            return await self.parking.conduct(caller, params, _never)
        if place is None:
            raise missing
        upstream = self.pool.upstream(place.server, caller.key)
        request = {k: v for k, v in params.items() if k not in (*_CARRIED, "_meta")}
        request[key] = place.name

        async def work(call: RelayedCall) -> dict[str, Json]:
            with as_errors():
                return await self._forward(upstream, method, request, call, params, again=True)

        return await self._conduct(caller, params, upstream, work)

    async def complete(
        self, caller: Caller, principal: Principal, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Complete an argument of a prompt or of a resource's template."""
        ref = params.get("ref")
        ref = ref if is_object(ref) else {}
        key = "uri" if ref.get("type") == "ref/resource" else "name"
        wanted = str(ref.get(key, ""))
        find = self.offers.resource if key == "uri" else self.offers.prompt
        place = await find(principal, wanted)
        if place is None:
            raise MCPError(INVALID_PARAMS, f"nothing to complete for {one_line(wanted, 100)!r}")
        upstream = self.pool.upstream(place.server, caller.key)
        if not upstream.can("completions"):
            return {"completion": {"values": []}}
        request = {k: v for k, v in params.items() if k != "_meta"}
        request["ref"] = {**ref, key: place.name}
        with as_errors():
            return await self._forward(
                upstream, "completion/complete", request, RelayedCall(caller), params, again=True
            )

    # ---- clients

    def joined(self, client: ConnectedClient) -> None:
        """A client is connected."""
        self.clients.add(client)

    async def left(self, client: ConnectedClient) -> None:
        """A client is gone."""
        await self.news.unsubscribe_all(client)
        # A stream of 2026-07-28 may end while its client goes on asking.
        if self.clients.remove(client) and not client.is_modern:
            await self.pool.forget(client.key)

    def set_level(self, client: ConnectedClient, level: str) -> None:
        """From now on, a client wants log messages of this level on."""
        client.level = level
        mildest = self.clients.mildest_level
        if mildest is not None:
            for upstream in self.pool.all:
                upstream.set_level(mildest)

    def roots_changed(self, client: ConnectedClient) -> None:
        """A client's folders changed, or became known."""
        for upstream in self.pool.all:
            # Folders of one among several clients are no business of a server that all share.
            if upstream.client == client.key or (
                upstream.client is None and len(self.clients) == 1
            ):
                upstream.roots_changed()


def _is_continuation(params: Mapping[str, Json]) -> bool:
    token = params.get("requestState")
    return isinstance(token, str) and token.startswith(TOKEN_PREFIX)


def _meta(params: Mapping[str, Json], caller: Caller) -> dict[str, Json]:
    """Return what of a request's `_meta` goes on: not what is between the client and us."""
    given = params.get("_meta")
    meta = (
        {k: v for k, v in given.items() if k != "progressToken" and not k.startswith(_ENVELOPE)}
        if is_object(given)
        else {}
    )
    # Older clients get logs unasked; a server of 2026-07-28 sends them only when asked.
    level = caller.log_level or (None if caller.is_modern else "info")
    if level is not None:
        meta[_LEVEL_KEY] = level
    return meta


async def _never(call: RelayedCall) -> Json:
    raise AssertionError("a continued call has begun long ago")
