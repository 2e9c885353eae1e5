"""A gateway over a configuration file that can be written and read again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.gateways import ODD, until
from toolfold.config.configured_sources import load_apis
from toolfold.config.gateway_config import GatewayConfig, load_gateway
from toolfold.redact import Redactor
from toolfold.serve.control.gateway_control import GatewayControl
from toolfold.serve.gateway import Gateway
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.reload.reloading import Reloading
from toolfold.sources.function_modules import load_functions


def entry(name: str, *flags: str, **more: Any) -> dict[str, Any]:
    """A server of ours, as a file names it."""
    import sys

    return {
        "command": sys.executable,
        "args": [ODD, "stdio", *flags],
        "env": {"WHO": f"{name}:"},
        "allow": ["echo", "slow", "pid"],
        **more,
    }


class Reloaded:
    """A running gateway and its file."""

    def __init__(self, file: Path, gateway: Gateway, reloading: Reloading, verbs: Any) -> None:
        self.verbs = verbs
        self.file = file
        self.gateway = gateway
        self.reloading = reloading

    def write(
        self, servers: dict[str, Any], blocks: dict[str, Any] | None = None, **serve: Any
    ) -> None:
        write(self.file, servers, blocks, **serve)

    async def ask(self, verb: str, **arguments: Any) -> Any:
        return await self.verbs[verb](arguments)

    async def has(self, *tools: str) -> None:
        """Wait until these tools are served."""
        await until(lambda: set(tools) <= set(self.gateway.pool.stock.sources), 30)


def write(
    file: Path, servers: dict[str, Any], blocks: dict[str, Any] | None = None, **serve: Any
) -> None:
    whole = {
        "mcpServers": servers,
        "serve": {"audit": "off", "state_dir": str(file.parent / "state"), **serve},
        "tools": {"tool_search": {"enabled": "off", "cache_dir": "off"}},
        **(blocks or {}),
    }
    file.write_text(json.dumps(whole), "utf-8")


@asynccontextmanager
async def reloaded(
    folder: Path,
    servers: dict[str, Any],
    audit: AuditLog | None = None,
    blocks: dict[str, Any] | None = None,
    **serve: Any,
) -> AsyncIterator[Reloaded]:
    """A gateway over a file, once no server is starting any more."""
    file = folder / "toolfold.json"
    write(file, servers, blocks, **serve)

    def load() -> GatewayConfig:
        return load_gateway(file, strict=False)

    control = GatewayControl("http", redactor=Redactor(), audit=audit)
    async with (
        Gateway(
            load(),
            observers=control.observers,
            sources=[*map(load_functions, load().functions), *load_apis(load())],
        ) as made,
        control.opened(made, load) as opened,
    ):
        await until(lambda: all(u.is_settled for u in made.pool.upstreams.values()), 30)
        assert opened.reloading is not None
        yield Reloaded(file, made, opened.reloading, opened.verbs)
