"""A running gateway in its user's hands: every verb there is, on its control socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

from toolfold.redact import Redactor
from toolfold.serve.control.control_socket import ControlSocket, Verb
from toolfold.serve.control.gateway_report import GatewayReport, Tally
from toolfold.serve.control.gateway_tools import GatewayTools
from toolfold.serve.control.recent_activity import RecentActivity
from toolfold.serve.control.server_verbs import ServerVerbs
from toolfold.serve.control.trust_verbs import TrustVerbs
from toolfold.serve.observe.changes import ChangeLog
from toolfold.serve.reload.reloading import Reloading

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.dispatch.records import Observer
    from toolfold.memory import Memory
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.observe.audit import AuditLog

__all__ = ["GatewayControl", "OpenControl"]


class OpenControl(NamedTuple):
    """A gateway that answers its user."""

    verbs: dict[str, Verb]
    """What can be asked, by name."""

    reloading: Reloading | None
    """Reads its configuration again, where it was read from a file."""


class GatewayControl:
    """All that can be asked of a running gateway, and changed in it.

    Args:
        transport: What its clients come over.
        redactor: Takes secrets out of what is told.
        memory: What searches led to.
        audit: Where changes are written down.
    """

    def __init__(
        self,
        transport: Literal["stdio", "http"],
        *,
        redactor: Redactor | None = None,
        memory: Memory | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self._transport: Literal["stdio", "http"] = transport
        self._redactor = redactor or Redactor()
        self._tally = Tally()
        self._activity = RecentActivity(self._redactor, memory)
        self.changes = ChangeLog(audit)
        self.address: str | None = None
        """Where it listens, once it does."""

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who must be told what happens, so that it can be told."""
        return self._tally, self._activity

    def verbs(self, gateway: Gateway, reloading: Reloading | None = None) -> dict[str, Verb]:
        """Return what can be asked of a gateway, by name.

        Args:
            gateway: The gateway.
            reloading: Reads its configuration again.
        """
        report = GatewayReport(
            gateway,
            self._tally,
            self._transport,
            address=lambda: self.address,
            more=lambda: {} if reloading is None else reloading.status,
        )
        servers = ServerVerbs(gateway, report.servers, self.changes, self._redactor)
        return {
            "status": report.status,
            "activity": self._activity.activity,
            "tools": GatewayTools(gateway).tools,
            **servers.table,
            **TrustVerbs(gateway, gateway.trust, self.changes).table,
            **({} if reloading is None else reloading.table),
        }

    @asynccontextmanager
    async def opened(
        self, gateway: Gateway, load: Callable[[], GatewayConfig] | None = None
    ) -> AsyncGenerator[OpenControl]:
        """Have a gateway answer its user on a control socket, as long as the block lasts.

        Args:
            gateway: The gateway.
            load: Reads its configuration as it was read at the start; None where it is not.
        """
        reloading = None
        if load is not None:
            reloading = Reloading(gateway, load, self.changes, self._redactor)
            if gateway.config.serve.watch:
                reloading.watch()
        verbs = self.verbs(gateway, reloading)
        try:
            async with ControlSocket(gateway.config.serve.state_folder, verbs):
                yield OpenControl(verbs, reloading)
        finally:
            if reloading is not None:
                reloading.close()
