"""Replicas in one process over one PostgreSQL, and clients that ask a different one each time."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import httpx2
import uvicorn

from support.gateways import until
from toolfold.config.gateway_config import GatewayConfig
from toolfold.config.serve_settings import ServeSettings
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.serve.replica.membership import Membership
from toolfold.serve.replica.shared_sessions import SharedSessions
from toolfold.settings import Settings
from toolfold.sources.mcp.server import Server
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.entries import SESSIONS, PostgresEntries

__all__ = ["ACCEPT", "Alternating", "Raw", "Replica", "Told", "events", "replica", "replicas"]

ACCEPT = {"Accept": "application/json, text/event-stream"}


class Replica(NamedTuple):
    """A gateway among others."""

    url: str
    gateway: Gateway


@asynccontextmanager
async def replica(address: str, *servers: Server, **more: Any) -> AsyncGenerator[Replica]:
    """A gateway over HTTP that shares a database."""
    serve: dict[str, Any] = {"audit": "off", **more.pop("serve", {})}
    folding: dict[str, Any] = {"cache_dir": "off", **more.pop("settings", {})}
    profiles = more.pop("profiles", ())
    config = GatewayConfig(servers, ServeSettings(**serve), Settings(**folding), profiles=profiles)
    with Database(address) as database:
        membership = Membership(database, "one of them")
        sessions = SharedSessions(PostgresEntries(database, SESSIONS))
        gateway = Gateway(config, sessions=sessions, **more)
        gateway.membership = membership
        async with membership.opened(), gateway:
            await until(lambda: all(u.is_settled for u in gateway.pool.upstreams.values()), 30)
            async with _serving(make_app(gateway, "127.0.0.1")) as url:
                yield Replica(url, gateway)


@asynccontextmanager
async def _serving(app: Any) -> AsyncGenerator[str]:
    config = uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def replicas(
    address: str, *servers: Server, count: int = 2, **more: Any
) -> AsyncGenerator[list[Replica]]:
    """Several of them."""
    async with AsyncExitStack() as stack:
        async with asyncio.TaskGroup() as group:
            made = [
                group.create_task(stack.enter_async_context(replica(address, *servers, **more)))
                for _ in range(count)
            ]
        yield [task.result() for task in made]


class Alternating(httpx2.AsyncBaseTransport):
    """A balancer without a memory: each request goes to the next replica.

    Args:
        urls: The replicas.
    """

    def __init__(self, *urls: str) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._turns = itertools.cycle([httpx2.URL(url) for url in urls])
        self.asked: list[tuple[str, int | None]] = []
        """Which method was asked for at which port."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        turn = next(self._turns)
        request.url = request.url.copy_with(host=turn.host, port=turn.port)
        request.headers["host"] = f"{turn.host}:{turn.port}"
        self.asked.append((request.method, turn.port))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def client(self, **more: Any) -> httpx2.AsyncClient:
        """Return a client that asks through it."""
        return httpx2.AsyncClient(transport=self, timeout=30, **more)


@dataclass(slots=True)
class Raw:
    """A session of 2025-11-25, message by message.

    Args:
        http: The client.
        headers: What goes with each request.
        path: Where the gateway is asked.
    """

    http: httpx2.AsyncClient
    headers: dict[str, str] = field(default_factory=dict[str, str])
    path: str = "/mcp"

    async def open(self, url: str, **capabilities: Any) -> str:
        """Open the session at a replica; return its id."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = await self.post(url, method="initialize", params=params, id=0)
        assert answer.status_code == 200, answer.text
        self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = "2025-11-25"
        return self.headers["mcp-session-id"]

    async def post(self, url: str, **message: Any) -> httpx2.Response:
        """Post a message to a replica."""
        body = {"jsonrpc": "2.0", **message}
        return await self.http.post(
            f"{url}{self.path}", json=body, headers={**ACCEPT, **self.headers}
        )

    async def call(self, url: str, tool: str, number: int, **arguments: Any) -> Any:
        """Call a tool; return the answer's message."""
        params = {"name": tool, "arguments": arguments}
        answer = await self.post(url, method="tools/call", params=params, id=number)
        assert answer.status_code == 200, answer.text
        return events(answer.text)[-1]

    def stream(
        self, url: str, verb: Literal["GET", "POST"], last: str | None = None, **message: Any
    ) -> Any:
        """Ask something whose answer is read as it comes."""
        more = {} if last is None else {"last-event-id": last}
        headers = {**ACCEPT, **self.headers, **more}
        body = {"json": {"jsonrpc": "2.0", **message}} if message else {}
        return self.http.stream(verb, f"{url}{self.path}", headers=headers, **body)


def events(text: str) -> list[Any]:
    """The messages of a stream."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


class Told:
    """What comes on a stream, message by message.

    Args:
        response: The stream.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()
        self.last = ""
        """The id of the last event."""

    async def event(self) -> str:
        """Return the id of the next event."""
        async for line in self._lines:
            if line.startswith("id: "):
                self.last = line[4:]
                return self.last
        raise AssertionError("the stream ended before")

    async def message(self, method: str) -> Any:
        """Return the next message of a method."""
        async for line in self._lines:
            if line.startswith("id: "):
                self.last = line[4:]
            if (
                line.startswith("data: {")
                and (told := json.loads(line[6:])).get("method") == method
            ):
                return told
        raise AssertionError("the stream ended before")
