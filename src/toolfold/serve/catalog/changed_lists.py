"""Lists that have changed: gathered for a moment, judged, told and kept, one after the other.

What judges a list and what keeps it may be a database, which may be slow or away: both are asked
off the event loop, and nobody else waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from toolfold.serve.catalog.last_lists import LastLists
from toolfold.serve.trust.trusted_api import TrustedApi
from toolfold.sources.mcp.mcp_source import ListedKind, McpSource
from toolfold.sources.source import Source

__all__ = ["ChangedLists", "Judged", "ListChanges", "judged", "judged_ones"]

QUIET = 0.1
"""For how long changes are gathered, in seconds."""

ListChanges = Mapping[ListedKind, set[str]]
"""Whose lists changed, by kind."""

Judged = McpSource | TrustedApi
"""A source of whose tools a person may have to approve some."""

_log = logging.getLogger(__name__)


def judged_ones(sources: Mapping[str, Source], names: Collection[str]) -> list[Judged]:
    """Return those of some sources of whose tools a person may have to approve some."""
    named = (sources[name] for name in names if name in sources)
    return [source for source in named if isinstance(source, Judged)]


async def judged(sources: Sequence[Judged]) -> None:
    """Return when the lists of sources are read, those that are new off the loop."""
    if not all(source.is_read for source in sources):
        await asyncio.to_thread(lambda: [source.tools() for source in sources])


class ChangedLists:
    """What has changed and nobody was told of yet.

    Args:
        sources: Returns the sources that are there, by name.
        tell: Told whose lists changed, once they are judged.
        last: Keeps what servers list for later runs.
    """

    def __init__(
        self,
        sources: Callable[[], Mapping[str, Source]],
        tell: Callable[[ListChanges], None],
        last: LastLists,
    ) -> None:
        self._sources = sources
        self._tell = tell
        self._last = last
        self._changes: dict[ListedKind, set[str]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether all was told."""
        return self._task is None

    def note(self, kind: ListedKind, *sources: str) -> None:
        """Take note, in the event loop, that lists of a kind changed."""
        self._changes.setdefault(kind, set()).update(sources)
        if self._task is None:
            self._task = asyncio.create_task(self._take_up(), name="changed lists")

    async def close(self) -> None:
        """Tell nobody any more, and keep what servers list."""
        if self._task is not None:
            self._task.cancel()
            await self._keep(self._changes)

    async def _take_up(self) -> None:
        try:
            while self._changes:
                await asyncio.sleep(QUIET)
                await judged(judged_ones(self._sources(), self._changes.get("tools", ())))
                changes, self._changes = self._changes, {}
                self._tell(changes)
                # Once for all that was gathered: a server may say a thousand times that it changed.
                await self._keep(changes)
        except Exception:
            _log.exception("what changed could not be taken up")
        finally:
            self._task = None

    async def _keep(self, changes: ListChanges) -> None:
        sources = self._sources()
        names = sorted({name for names in changes.values() for name in names} & sources.keys())
        await self._last.save([s for name in names if isinstance(s := sources[name], McpSource)])
