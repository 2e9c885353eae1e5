"""Gateways over small real servers, for the tests."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client._memory import InMemoryTransport

from toolfold.config.gateway_config import GatewayConfig
from toolfold.config.serve_settings import ServeSettings
from toolfold.config.served_profiles import ServedProfile
from toolfold.dispatch.records import CallRecord, SearchRecord, Silent
from toolfold.scope import EVERYTHING, Scope
from toolfold.serve.gateway import Gateway
from toolfold.serve.mcp.downstream import make_server
from toolfold.serve.principals import LOCAL, Principal
from toolfold.settings import Settings
from toolfold.sources.mcp.server import Server
from toolfold.sources.mcp.server_status import ServerStatus

ODD = str(Path(__file__).parent / "servers" / "odd.py")
ERAS = ("legacy", "auto")


def odd(name: str, *flags: str, env: Mapping[str, str] | None = None, **more: Any) -> Server:
    """A server of ours over its pipes; it speaks the old revision with the flag `old`."""
    own = {"WHO": f"{name}:", **(env or {})}
    args = (ODD, "stdio", *flags)
    return Server(name, "stdio", command=sys.executable, args=args, env=own, **more)


class Seen(Silent):
    """Keeps all that observers are told."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self.searches: list[SearchRecord] = []
        self.statuses: list[ServerStatus] = []

    def called(self, record: CallRecord) -> None:
        self.calls.append(record)

    def searched(self, record: SearchRecord) -> None:
        self.searches.append(record)

    def server_changed(self, status: ServerStatus) -> None:
        self.statuses.append(status)


@asynccontextmanager
async def gateway(
    *servers: Server,
    serve: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    scope: Scope = EVERYTHING,
    profiles: tuple[ServedProfile, ...] = (),
    **more: Any,
) -> AsyncIterator[Gateway]:
    """A running gateway over some servers, when none of them is starting any more."""
    serving: dict[str, Any] = {"audit": "off", **(serve or {})}
    folding: dict[str, Any] = {"cache_dir": "off", **(settings or {})}
    config = GatewayConfig(
        servers, ServeSettings(**serving), Settings(**folding), profiles=profiles
    )
    async with Gateway(config, scope=scope, **more) as made:
        await until(lambda: all(u.is_settled for u in made.pool.upstreams.values()), 30)
        yield made


def client(made: Gateway, mode: str = "legacy", who: Principal = LOCAL, **more: Any) -> Client:
    """The official client, connected in memory, with every message as text in between."""
    return Client(InMemoryTransport(make_server(made, who)), mode=mode, **more)


async def until(holds: Callable[[], Any], seconds: float = 5) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        await asyncio.sleep(0.01)


def said(result: Any) -> str:
    """The text of a result."""
    return result.content[0].text


def run(main: Callable[[], Any], seconds: float = 50) -> None:
    """Run a test to its end."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await main()

    asyncio.run(bounded())
