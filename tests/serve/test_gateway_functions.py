"""Functions behind the gateway, beside servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.gateways import client, gateway, odd, run, said, until
from toolfold import ConfigError
from toolfold.sources import Registry


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
