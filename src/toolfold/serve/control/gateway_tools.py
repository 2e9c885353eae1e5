"""The tools that a running gateway has now, a part of them at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolfold.serve.control.verb_arguments import number
from toolfold.tool import Json
from toolfold.wire import write

if TYPE_CHECKING:
    from toolfold.serve.gateway import Gateway

__all__ = ["GatewayTools"]

TOOLS_AT_MOST = 1_000
"""How many tools one answer holds."""

_OFFSET_AT_MOST = 10_000_000


class GatewayTools:
    """The verb `tools`.

    Args:
        gateway: The gateway.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def tools(self, arguments: Mapping[str, Json]) -> Json:
        """Answer which tools there are, as plain records; what waits for a person is none."""
        offset = number(arguments, "offset", default=0, high=_OFFSET_AT_MOST)
        limit = number(arguments, "limit", default=TOOLS_AT_MOST, high=TOOLS_AT_MOST)
        tools = self._gateway.pool.stock.tools
        shown = tools[offset : offset + limit]
        return {"count": len(tools), "tools": [write(tool, "plain") for tool in shown]}
