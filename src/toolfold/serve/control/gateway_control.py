"""A running gateway in its user's hands: every verb there is, on its control socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

from toolfold.redact import Redactor
from toolfold.serve.control.control_socket import ControlSocket, Verb
from toolfold.serve.control.gateway_report import GatewayReport, Tally
from toolfold.serve.control.gateway_tools import GatewayTools
from toolfold.serve.control.recent_activity import RecentActivity
from toolfold.serve.control.server_verbs import ServerVerbs
from toolfold.serve.control.trust_verbs import TrustVerbs
from toolfold.serve.observe.changes import ChangeLog

if TYPE_CHECKING:
    from toolfold.dispatch.records import Observer
    from toolfold.memory import Memory
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.observe.audit import AuditLog

__all__ = ["GatewayControl"]


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

    def verbs(self, gateway: Gateway) -> dict[str, Verb]:
        """Return what can be asked of a gateway, by name."""
        report = GatewayReport(gateway, self._tally, self._transport, address=lambda: self.address)
        servers = ServerVerbs(gateway, report.servers, self.changes, self._redactor)
        return {
            "status": report.status,
            "activity": self._activity.activity,
            "tools": GatewayTools(gateway).tools,
            **servers.table,
            **TrustVerbs(gateway, gateway.trust, self.changes).table,
        }

    @asynccontextmanager
    async def opened(self, gateway: Gateway) -> AsyncGenerator[None]:
        """Have a gateway answer its user on a control socket, as long as the block lasts."""
        state = gateway.config.serve.state_folder
        async with ControlSocket(state, self.verbs(gateway)):
            yield
