"""Functions behind the gateway, beside servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.gateways import client, gateway, odd, run, said
from toolfold import ConfigError, Settings, Tool
from toolfold.config.gateway_config import GatewayConfig
from toolfold.config.serve_settings import ServeSettings
from toolfold.serve.gateway import Gateway
from toolfold.sources import Registry
from toolfold.sources.calls import PendingCall


def shop(name: str = "shop") -> Registry:
    registry = Registry(name)

    @registry.tool
    def get_price(item: str) -> int:
        "Tell what an item costs."
        return len(item)

    return registry


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"annotations": {"get_price": {"readOnlyHint": True}}},
        {"aliases": {"get_price": ("cost",)}},
    ],
)
def test_a_function_runs_whatever_the_settings_say_of_it(settings: dict[str, Any]) -> None:
    async def main() -> None:
        async with gateway(sources=[shop()], settings=settings) as made, client(made) as asked:
            assert said(await asked.call_tool("get_price", {"item": "tea"})) == "3"

    run(main)


def test_a_client_is_told_of_a_function_that_a_thread_adds() -> None:
    async def main() -> None:
        registry = shop()
        told = asyncio.Event()

        async def heard(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                told.set()

        def add(name: str) -> None:
            registry.add(Tool(name, f"Do {name}."), _nothing)

        async with gateway(sources=[registry]) as made, client(made, message_handler=heard) as c:
            assert "get_price" in {tool.name for tool in (await c.list_tools()).tools}
            await asyncio.to_thread(add, "later")
            await asyncio.wait_for(told.wait(), 5)
            assert "later" in {tool.name for tool in (await c.list_tools()).tools}

    run(main)


def test_a_registry_can_be_changed_where_no_loop_runs() -> None:
    registry = shop()
    made = Gateway(GatewayConfig((), ServeSettings(audit="off"), Settings()), sources=[registry])

    registry.add(Tool("early", "Do it early."), _nothing)

    async def main() -> None:
        async with made, client(made) as c:
            assert "early" in {tool.name for tool in (await c.list_tools()).tools}

    run(main)
    registry.remove("early")


async def _nothing(call: PendingCall) -> str:
    return "done"


def test_a_source_cannot_have_the_name_of_a_server() -> None:
    config = GatewayConfig((odd("shop"),), ServeSettings(audit="off"), Settings())

    with pytest.raises(ConfigError, match="shop"):
        Gateway(config, sources=[shop()])
