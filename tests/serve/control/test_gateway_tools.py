"""The tools of a running gateway, told a part at a time."""

from __future__ import annotations

from support.controlled import Controlled
from support.gateways import client, gateway, odd, run
from toolfold.catalog import Catalog


def test_all_tools_are_told_in_parts_and_none_that_is_denied() -> None:
    async def talk() -> None:
        async with gateway(odd("one", allow=("echo", "pid"))) as made, client(made) as c:
            await c.list_tools()
            own = Controlled(made)
            first = await own.ask("tools", limit=1)
            rest = await own.ask("tools", offset=1)

            assert first["count"] == rest["count"] == 2
            found = Catalog.read([*first["tools"], *rest["tools"]])
            assert set(found.names) == {"one__echo", "one__pid"}
            assert {tool.source for tool in found} == {"one"}

    run(talk)
