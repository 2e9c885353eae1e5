"""Servers and APIs outside a gateway, under the same approvals: what waits is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolfold.config.opened_store import store_of
from toolfold.serve.trust.trusted_api import TrustedApi
from toolfold.sources.mcp.hub import Alone
from toolfold.sources.mcp.server_status import ServerStatus

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.sources.mcp.lifecycle import ListedKind
    from toolfold.sources.mcp.mcp_source import McpSource
    from toolfold.sources.openapi import OpenAPISource
    from toolfold.sources.source import Source
    from toolfold.tool import Tool

__all__ = ["TrustingHub"]


class TrustingHub(Alone):
    """The hub of an agent's servers: holds back what a person must look at first.

    Args:
        trust: Which tools wait for a person's approval; None where none does.
        progress: Told of each server that has started or failed for the first time: its
            status, how many have.
    """

    def __init__(
        self, trust: Trust | None, progress: Callable[[ServerStatus, int], None] | None = None
    ) -> None:
        super().__init__()
        self.first: dict[str, ServerStatus] = {}
        """By server: what its first start came to."""
        self._trust = trust
        self._progress = progress
        self._held: dict[str, frozenset[str]] = {}
        self._apis: list[TrustedApi] = []

    @classmethod
    def of(
        cls, config: GatewayConfig, progress: Callable[[ServerStatus, int], None] | None = None
    ) -> TrustingHub:
        """Return the hub that keeps to what a configuration says of trust."""
        from toolfold.serve.trust.store import TrustStore
        from toolfold.serve.trust.verdicts import Trust

        mode = config.serve.trust
        trust = None if mode == "off" else Trust(TrustStore(store_of(config.serve).documents), mode)
        return cls(trust, progress)

    @property
    def waiting(self) -> int:
        """How many tools wait for a person."""
        apis = sum(api.waiting for api in self._apis)
        return apis + sum(map(len, self._held.values()))

    def status_changed(self, source: McpSource) -> None:
        """Take note of what a first start came to."""
        super().status_changed(source)
        if source.state in ("ready", "failed") and source.name not in self.first:
            self.first[source.name] = source.status
            if self._progress is not None:
                self._progress(source.status, len(self.first))

    def list_changed(self, source: McpSource, kind: ListedKind) -> None:
        """Judge a list as soon as it is there: a call of what it changed may be under way."""
        if kind == "tools":
            source.tools()

    def admitted(self, source: McpSource, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return those of a server's tools that need not wait for a person."""
        if self._trust is None:
            return tools
        sifted = self._trust.sift(source.name, list(tools))
        self._held[source.name] = frozenset(entry.tool.name for entry in sifted.quarantined)
        return sifted.admitted

    def trusted(self, api: OpenAPISource) -> Source:
        """Return an API's source without the operations that wait for a person."""
        if self._trust is None:
            return api
        self._apis.append(TrustedApi(api, self._trust))
        return self._apis[-1]

    async def is_held_back(self, source: McpSource, tool: str) -> bool:
        """Whether a tool that was there a moment ago waits for a person by now."""
        return tool in self._held.get(source.name, ())
