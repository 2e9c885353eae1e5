"""The time during which this replica has a lease: renewed again and again, and over in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress

from toolfold.sources.mcp._tasks import heard
from toolfold.store.postgres.leases import RENEWAL, Lease, now
from toolfold.store.store import StoreAwayError

__all__ = ["ENDING", "Tenure"]

ENDING = 3.0
"""How long before a lease is no more what depends on it is ended, in seconds."""

_log = logging.getLogger(__name__)


class Tenure:
    """One tenure of a lease.

    It is over when another has the lease, or when it could not be renewed until there is just the
    time left to end in order what depends on it.

    Args:
        lease: The lease, as it was taken.
        take: Takes it again.
    """

    def __init__(
        self, lease: Lease, take: Callable[[str], Coroutine[None, None, Lease | None]]
    ) -> None:
        self._lease = lease
        self._take = take
        self.token = lease.token
        self.over = asyncio.Event()
        """Set when whatever depends on it must end."""
        self.on_renewed: Callable[[float], None] = lambda until: None
        """Told until when it lasts."""
        self._renewing = asyncio.create_task(self._renew(), name=f"lease {lease.name}")
        self._renewing.add_done_callback(heard)

    @property
    def lease(self) -> Lease:
        """The lease, as it was last renewed."""
        return self._lease

    @property
    def holds(self) -> bool:
        """Whether this replica has the lease, at this very moment, and may begin something."""
        return not self.over.is_set() and now() < self._lease.until

    async def end(self) -> None:
        """Renew it no more."""
        self.over.set()
        self._renewing.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({self._renewing})

    async def _renew(self) -> None:
        why = "it could not be renewed in time"
        while (left := self._lease.until - ENDING - now()) > 0:
            renewal = asyncio.ensure_future(self._take(self._lease.name))
            done, _ = await asyncio.wait({renewal}, timeout=left)
            if not done:
                renewal.add_done_callback(heard)
                break
            try:
                lease = renewal.result()
            except StoreAwayError:
                lease = self._lease
            self._lease = lease or self._lease
            if lease is None or lease.token != self.token:
                why = "another replica has it"
                break
            self.on_renewed(lease.until)
            await asyncio.sleep(RENEWAL)
        _log.warning("the lease %r is over: %s", self._lease.name, why)
        self.over.set()
