"""How a running gateway stands, as its own user may know it: no secret and no token in it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from toolfold.dispatch.records import CallRecord, FoldRecord, SearchRecord, Silent
from toolfold.serve.control.moments import moment
from toolfold.sources.mcp.server_status import ServerStatus
from toolfold.tool import Json

if TYPE_CHECKING:
    from toolfold.serve.gateway import Gateway

__all__ = ["GatewayReport", "Tally"]


class Tally(Silent):
    """Counts the calls of each source, and the searches."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.searches = 0
        self.fold: FoldRecord | None = None

    def called(self, record: CallRecord) -> None:
        """Count a call."""
        self.calls[record.server] += 1
        self.failed[record.server] += record.outcome not in ("ok", "cancelled")

    def searched(self, record: SearchRecord) -> None:
        """Count a search."""
        self.searches += 1

    def folded(self, record: FoldRecord) -> None:
        """Keep what folding saves."""
        self.fold = record


class GatewayReport:
    """Says how a gateway stands.

    Args:
        gateway: The gateway.
        tally: What has been counted.
        transport: What its clients come over.
        address: Returns where it listens, once it does.
        more: Returns what else there is to say.
    """

    def __init__(
        self,
        gateway: Gateway,
        tally: Tally,
        transport: Literal["stdio", "http"],
        *,
        address: Callable[[], str | None] = lambda: None,
        more: Callable[[], dict[str, Json]] = dict,
    ) -> None:
        self._gateway = gateway
        self._tally = tally
        self._transport = transport
        self._began = time.time()
        path = gateway.config.path
        self._config = None if path is None else str(path.absolute())
        self._address = address
        self._more = more

    async def status(self, arguments: Mapping[str, Json]) -> Json:
        """Answer the verb `status`."""
        gateway, tally = self._gateway, self._tally
        return {
            "pid": os.getpid(),
            "version": version("toolfold"),
            "transport": self._transport,
            "address": self._address(),
            "since": moment(self._began),
            "config": self._config,
            "stopping": gateway.calls.is_closing,
            "clients": len(gateway.clients),
            "in_flight": gateway.pool.in_flight,
            "calls": tally.calls.total(),
            "failed": tally.failed.total(),
            "searches": tally.searches,
            "folded": _folding(tally.fold),
            "servers": self.servers(),
            "left_out": list(gateway.config.disabled),
            "profiles": self._profiles(),
            "functions": [self._other(name, tools) for name, tools in gateway.pool.others.items()],
            **self._more(),
        }

    def _profiles(self) -> list[Json]:
        asking = Counter(client.admitted.profile for client in self._gateway.clients)
        return [
            {"name": profile.name, "clients": asking[profile.name]}
            for profile in self._gateway.config.profiles
        ]

    def servers(self) -> list[Json]:
        """Return how the servers stand, those that are turned off, too."""
        return [self._server(status) for status in self._gateway.pool.statuses]

    def _server(self, status: ServerStatus) -> Json:
        left = status.retry_in
        return {
            "name": status.name,
            "transport": status.transport,
            "state": status.state,
            "since": moment(status.since),
            "tools": status.tools,
            "quarantined": status.quarantined,
            "restarts": status.restarts,
            "cause": status.cause,
            "retry_in": None if left is None else round(left, 1),
            **self._counts(status.name),
        }

    def _other(self, name: str, tools: int) -> Json:
        others = self._gateway.others
        return {
            "name": name,
            "kind": self._kind(name),
            "tools": tools,
            "quarantined": others.waiting_of(name),
            "cause": others.cause(name),
            **self._counts(name),
        }

    def _kind(self, source: str) -> str:
        apis = self._gateway.config.apis
        return "openapi" if any(api.name == source for api in apis) else "functions"

    def _counts(self, source: str) -> dict[str, Json]:
        return {"calls": self._tally.calls[source], "failed": self._tally.failed[source]}


def _folding(record: FoldRecord | None) -> Json:
    if record is None:
        return None
    return {
        "active": record.is_active,
        "tools": record.tools,
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
        "tokens_saved": record.tokens_saved,
        "reason": record.reason,
    }
