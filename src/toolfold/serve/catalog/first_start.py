"""The first start of a gateway's servers: who comes early waits for it, though not for long."""

from __future__ import annotations

import asyncio
from contextlib import suppress

__all__ = ["FirstStart"]


class FirstStart:
    """When every server has started once, well or not.

    Args:
        wait: For how many seconds a first list waits for it.
    """

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._over = asyncio.Event()
        self._began: float | None = None

    def begin(self) -> None:
        """The servers are being started."""
        self._began = asyncio.get_running_loop().time()

    def end(self) -> None:
        """All of them have started, or failed to."""
        self._over.set()

    def wait_for(self, seconds: float) -> None:
        """Have first lists wait so long from now on."""
        self._wait = seconds

    @property
    def is_over(self) -> bool:
        """Whether no server is still starting for the first time."""
        return self._over.is_set()

    @property
    def may_be_seen(self) -> bool:
        """Whether nobody waits any more before looking at what there is."""
        if self._began is None or self.is_over:
            return True
        return asyncio.get_running_loop().time() >= self._began + self._wait

    async def awaited(self, seconds: float = 0.0) -> None:
        """Return when it is over, or when it has taken too long.

        Args:
            seconds: How long it may take, where that is more than a first list waits.
        """
        loop = asyncio.get_running_loop()
        left = (self._began or 0.0) + max(self._wait, seconds) - loop.time()
        if not self.is_over and left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._over.wait()

    async def ended(self) -> None:
        """Return when it is over, however long it takes."""
        await self._over.wait()
