"""A gateway in its user's hands, without a socket between."""

from __future__ import annotations

from typing import Any

from toolfold.serve.control.control_socket import Verb
from toolfold.serve.control.gateway_control import GatewayControl
from toolfold.serve.gateway import Gateway


class Controlled:
    """Asks a gateway's verbs, as the control socket would."""

    def __init__(self, gateway: Gateway, control: GatewayControl | None = None) -> None:
        self.verbs: dict[str, Verb] = (control or GatewayControl("stdio")).verbs(gateway)

    async def ask(self, verb: str, **arguments: Any) -> Any:
        return await self.verbs[verb](arguments)

    async def states(self) -> dict[str, str]:
        listed = await self.ask("servers.list")
        return {server["name"]: server["state"] for server in listed["servers"]}
