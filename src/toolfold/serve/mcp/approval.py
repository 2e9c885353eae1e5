"""Approvals in the gateway: the client's own user decides about what may do harm."""

from __future__ import annotations

import logging
from typing import Literal

from mcp.shared.exceptions import MCPError

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold._json_values import compact
from toolfold.dispatch.hooks import Decision, Hook
from toolfold.sources.calls import PendingCall, Refusal
from toolfold.sources.mcp.relay import RelayedCall, can
from toolfold.tool import Json, Tool

__all__ = ["ClientApproval"]

_log = logging.getLogger(__name__)

_ARGUMENTS_SHOWN = 600


class ClientApproval(Hook):
    """Asks through the client before a call that may destroy something, or refuses it.

    Args:
        mode: What `serve.destructive` says.
    """

    def __init__(self, mode: Literal["allow", "ask", "refuse"]) -> None:
        self.mode: Literal["allow", "ask", "refuse"] = mode
        """What is done."""

    def wants(self, tool: Tool) -> bool:
        """Whether calls of a tool are not simply let through."""
        return self.mode != "allow" and tool.is_destructive

    async def before_call(self, call: PendingCall) -> Decision:
        """Ask the user, where the tool may destroy something."""
        if not self.wants(call.tool):
            return None
        if self.mode == "refuse":
            return Refusal(prompts.GATEWAY_REFUSES)
        client = call.client
        if not isinstance(client, RelayedCall) or not can(
            client.caller.capabilities, "elicitation"
        ):
            return Refusal(prompts.CANNOT_ASK)
        shown = one_line(compact(call.arguments), _ARGUMENTS_SHOWN)
        server = None if call.tool.function is not None else call.tool.source or ""
        question = prompts.question(call.tool.shown_name, server, shown)
        form: dict[str, Json] = {
            "mode": "form",
            "message": question,
            "requestedSchema": {"type": "object", "properties": {}},
        }
        try:
            answer = await client.ask("elicitation/create", form)
        except MCPError as error:
            _log.info("the client could not ask about %s: %s", call.tool.name, error)
            return Refusal(prompts.CANNOT_ASK)
        return None if answer.get("action") == "accept" else Refusal(prompts.DENIED)
