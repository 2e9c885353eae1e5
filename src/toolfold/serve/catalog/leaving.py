"""Servers on their way out: they take no new call, and those under way have a while to end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from toolfold.sources.mcp.mcp_source import McpSource

__all__ = ["Leaving"]

_log = logging.getLogger(__name__)


class Leaving:
    """Sees servers out, and those that are to be started again out and in."""

    def __init__(self) -> None:
        self._leaving: dict[McpSource, asyncio.Task[None]] = {}
        self._restarting: dict[McpSource, asyncio.Task[None]] = {}

    @property
    def all(self) -> tuple[McpSource, ...]:
        """Those that leave and have not left."""
        return tuple(self._leaving)

    def of(self, name: str) -> list[asyncio.Task[None]]:
        """Return what is done when those of a name have left."""
        return [task for source, task in self._leaving.items() if source.name == name]

    def retire(self, source: McpSource, cause: str, seconds: float) -> None:
        """See a server out.

        Args:
            source: The server.
            cause: Why, as a clause.
            seconds: How long calls under way have to end.
        """
        begun = self._restarting.pop(source, None)
        if begun is not None:
            begun.cancel()
        self._begin(self._leaving, source, source.retire(cause, seconds))

    def restart(self, source: McpSource, seconds: float) -> None:
        """Begin to restart a server, where that is not under way.

        Args:
            source: The server.
            seconds: How long calls under way have to end.
        """
        if source not in self._restarting:
            self._begin(self._restarting, source, source.restart(seconds))

    def close(self) -> None:
        """Wait no longer: whoever calls this stops the servers at once."""
        for task in (*self._leaving.values(), *self._restarting.values()):
            task.cancel()

    def _begin(
        self,
        among: dict[McpSource, asyncio.Task[None]],
        source: McpSource,
        work: Coroutine[None, None, None],
    ) -> None:
        task = among[source] = asyncio.create_task(work, name=f"leaving {source.name}")

        def done(task: asyncio.Task[None]) -> None:
            if among.get(source) is task:
                del among[source]
            if not task.cancelled() and task.exception() is not None:
                _log.error("server %s did not end in order: %r", source.name, task.exception())

        task.add_done_callback(done)
