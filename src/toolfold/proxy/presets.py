"""What stays open: a known client's own tools, else every tool that is no MCP server's.

A client is known by what it sends: its name in `user-agent`, a header that nobody else sends.
Its own tools are what its model was trained or told to use at every step, so they stay open
even where nothing else tells them from the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["CLIENTS", "KnownClient", "known_client", "open_names"]


class KnownClient(NamedTuple):
    """A client, and how it is known."""

    name: str
    agents: tuple[str, ...]
    """What its `user-agent` begins with, in lower case."""

    headers: tuple[str, ...] = ()
    """Headers that only it sends."""

    served: tuple[str, ...] = ()
    """What the names of its MCP servers' tools begin with, where no other tool's does."""

    @property
    def preset(self) -> str:
        """The name of the list of its own tools."""
        return f"preset:{self.name}"


CLIENTS: tuple[KnownClient, ...] = (
    KnownClient(
        "claude-code",
        ("claude-cli/", "claude-code/"),
        ("x-claude-code-session-id",),
        served=("mcp__",),
    ),
    # Some of its own tools stand in a namespace, too.
    KnownClient(
        "codex", ("codex_cli_rs/", "codex_exec/", "codex-tui/", "codex/"), served=("mcp__",)
    ),
    KnownClient("opencode", ("opencode/",), ("x-opencode-session",)),
    KnownClient("goose", ("goose/",)),
)
"""The clients that are known; `preset:NAME` is the list of each one's own tools."""

_MCP_PREFIXES = ("mcp__", "mcp_")


def known_client(headers: Mapping[str, str]) -> KnownClient | None:
    """Return the client that sends these headers, if it is known.

    Args:
        headers: The request's headers, their names in lower case.
    """
    agent = headers.get("user-agent", "").lower()
    for client in CLIENTS:
        if agent.startswith(client.agents) or any(name in headers for name in client.headers):
            return client
    return None


def open_names(
    names: Sequence[str], headers: Mapping[str, str], namespaced: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return which of a client's tools stay open, as names and patterns.

    Args:
        names: The names of its tools.
        headers: The request's headers.
        namespaced: Those of the names that stand in a namespace.
    """
    client = known_client(headers)
    if client is not None and client.served:
        own = tuple(name for name in names if not name.startswith(client.served))
    else:
        served = {name for name in names if name in namespaced or name.startswith(_MCP_PREFIXES)}
        own = tuple(name for name in names if name not in served) if served else ()
    return (*((client.preset,) if client is not None else ()), *map(_literal, own))


def _literal(name: str) -> str:
    """Return a pattern that matches a name and nothing else."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
