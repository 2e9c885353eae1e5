"""What live servers list, written to the shared catalog: off the event loop, by digest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from toolfold.serve.catalog.pool import Pool
from toolfold.store.store import StoreAwayError
from toolfold.tool import Tool

if TYPE_CHECKING:
    from toolfold.shared import SharedCatalog

__all__ = ["CatalogFeed"]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""How long is waited before what could not be written is written again, in seconds."""

_log = logging.getLogger(__name__)


class CatalogFeed:
    """Keeps a shared catalog at what the sources of a gateway list.

    Args:
        catalog: The catalog.
        pool: The sources.
        shared: Returns tools as they are to be shared.
    """

    def __init__(
        self,
        catalog: SharedCatalog,
        pool: Pool,
        shared: Callable[[Sequence[Tool]], Sequence[Tool]],
    ) -> None:
        self._catalog = catalog
        self._pool = pool
        self._shared = shared
        self._waiting: set[str] = set()
        self._is_wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Write no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def note(self, sources: Iterable[str]) -> None:
        """Take note, in the event loop, that sources may list other tools than before."""
        self._waiting.update(sources)
        if self._waiting:
            self._is_wanted.set()
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="catalog feed")

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            sources, self._waiting = sorted(self._waiting), set()
            for place, name in enumerate(sources):
                try:
                    await self._push(name)
                except StoreAwayError as error:
                    _log.warning("the tools of %s are not in the shared catalog: %s", name, error)
                    self.note(sources[place:])
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                    break
                except Exception:
                    _log.exception("the tools of %s cannot be shared", name)
            else:
                pause = FIRST_PAUSE

    async def _push(self, name: str) -> None:
        listed = self._pool.listed(name)
        if listed is None:
            return
        own, held = listed
        taken = {tool.name for tool in own}
        held = [tool for tool in held if tool.name not in taken]
        await asyncio.to_thread(self._written, name, own, held)

    def _written(self, name: str, own: Sequence[Tool], held: Sequence[Tool]) -> None:
        pushed = self._catalog.push(
            self._shared((*own, *held)),
            prune=True,
            sources=[name],
            waiting={tool.name for tool in held},
        )
        if pushed.refused:
            _log.warning("%s: these tools cannot be shared: %r", name, pushed.refused)
        if pushed.added or pushed.changed or pushed.removed:
            _log.info(
                "%s in the shared catalog: %d new, %d changed, %d gone",
                name, pushed.added, pushed.changed, pushed.removed,
            )  # fmt: skip
