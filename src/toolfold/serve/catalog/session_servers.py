"""Servers that run for one client alone, where `per_session` says so."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from toolfold.serve.principals import LOCAL
from toolfold.sources.mcp.mcp_source import McpSource, ServerDownError

__all__ = ["SessionServers"]

OWN_AT_MOST = 256
"""How many connections of single clients there may be."""

OWN_OF_A_TOKEN_AT_MOST = 64
"""How many of them one token may have, so that others find room."""

_log = logging.getLogger(__name__)


class SessionServers:
    """The connections of single clients, by server and client.

    Args:
        make: Makes the connection of a client, from the source that all share and its key.
    """

    def __init__(self, make: Callable[[McpSource, str], McpSource]) -> None:
        self._make = make
        self._by_client: dict[tuple[str, str], McpSource] = {}
        self._owners: dict[tuple[str, str], str] = {}
        self._is_full = False

    @property
    def all(self) -> tuple[McpSource, ...]:
        """Every one of them."""
        return tuple(self._by_client.values())

    def of(self, shared: McpSource, client: str, principal: str) -> McpSource:
        """Return a client's own connection to a server; its first call makes it.

        Args:
            shared: The source that all share.
            client: The client's key.
            principal: Whose client it is.

        Raises:
            ServerDownError: Too many clients have one already.
        """
        key = shared.name, client
        own = self._by_client.get(key)
        if own is None:
            self._check_room(shared.name, principal)
            own = self._by_client[key] = self._make(shared, client)
            self._owners[key] = principal
            own.run()
        return own

    def _check_room(self, server: str, principal: str) -> None:
        """Raise `ServerDownError` where there is no room for one more client of a principal."""
        if len(self._by_client) >= OWN_AT_MOST:
            if not self._is_full:  # once, until there is room again
                _log.warning("there are %d servers for single clients: no more", OWN_AT_MOST)
            self._is_full = True
            raise ServerDownError(
                server, "serves too many clients already", lost=False, retry_in=math.inf
            )
        self._is_full = False
        owned = sum(owner == principal for owner in self._owners.values())
        if owned >= OWN_OF_A_TOKEN_AT_MOST and principal != LOCAL.name:
            reason = f"serves {owned} conversations of this token already"
            raise ServerDownError(server, reason, lost=False, retry_in=math.inf)

    def keeps(self, client: str) -> bool:
        """Whether servers run for one client alone."""
        return any(own == client for _, own in self._by_client)

    def taken_out(self, *, server: str | None = None, client: str | None = None) -> list[McpSource]:
        """Return the connections of a server or of a client, which are here no more."""
        keys = [key for key in self._by_client if key[0] == server or key[1] == client]
        for key in keys:
            self._owners.pop(key, None)
        return [self._by_client.pop(key) for key in keys]
