"""Where one MCP server stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ServerState", "ServerStatus"]

ServerState = Literal[
    "waiting", "starting", "ready", "failed", "stopped", "quarantined", "disabled", "removed"
]
"""Where a server stands. A waiting one starts at its first call; a disabled one was turned off by
a person, a removed one is in the configuration no more."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Where one server stands."""

    name: str
    transport: Literal["stdio", "http", "sse", "openapi"]
    state: ServerState

    tools: int = 0
    """How many of its tools are served."""

    restarts: int = 0
    """How often it was started again."""

    since: float = 0.0
    """When it came into this state, in seconds since 1970."""

    error: str | None = None
    """Why it failed, in one line."""

    quarantined: int = 0
    """How many of its tools wait for a person's approval."""

    cause: str | None = None
    """Why it was not there the last time, without its own words; kept when it is there again."""

    retry_in: float | None = None
    """In how many seconds it is tried again: 0 while it is being started, None for never."""

    @property
    def kind(self) -> str:
        """What it is: a server, or an HTTP API beside them."""
        return "API" if self.transport == "openapi" else "server"

    @property
    def title(self) -> str:
        """What a person reads: `server 'github'`."""
        return f"{self.kind} {self.name!r}"
