"""Leases: what one replica has and no other, until a time, unless it says again that it wants it.

The database's clock alone decides when a lease ends. A holder counts from before it asked, by a
clock of its own machine that goes on while a process is paused or a machine sleeps, and for less
long than the database does: at whatever moment two replicas are asked, at most one of them says
that it holds a lease. A fencing token grows with every tenure, so that what comes late from an
earlier holder is known for that.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

from toolfold.store.postgres.line import Line

__all__ = ["CHANNEL", "MARGIN", "RENEWAL", "SECONDS", "Lease", "Leases", "Standing", "now"]

CHANNEL = "toolfold_leases"
"""Where it is announced that a lease is free; the payload is its name."""

SECONDS = 10.0
"""How long a lease lasts from when it was last asked for, in seconds."""

RENEWAL = 1.0
"""How often a holder asks again, in seconds."""

MARGIN = 0.1
"""For which share of its time a lease is not relied upon, though it lasts: clocks run unevenly,
and what depends on it must have ended."""

_TAKE = """
insert into toolfold.leases as l (tenant, name, holder, token, ends)
values (%(tenant)s, %(name)s, %(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s))
on conflict (tenant, name) do update set
    holder = excluded.holder,
    token = l.token + case when l.holder = excluded.holder and l.ends > clock_timestamp()
        and not %(anew)s then 0 else 1 end,
    ends = clock_timestamp() + make_interval(secs => %(seconds)s)
where l.holder = excluded.holder or l.ends <= clock_timestamp()
returning token
"""

_LOOK = """
select holder, token, ends > clock_timestamp() from toolfold.leases
where tenant = %(tenant)s and name = %(name)s
"""

_LEAVE = """
with left_free as (
    update toolfold.leases set ends = clock_timestamp()
    where tenant = %(tenant)s and name = %(name)s and holder = %(holder)s and token = %(token)s
        and ends > clock_timestamp()
    returning name
)
select pg_notify(%(channel)s, name) from left_free
"""


def now() -> float:
    """Return the seconds of this machine's clock; it goes on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Lease(NamedTuple):
    """A lease that this replica has, as long as `now()` is less than `until`."""

    name: str

    token: int
    """Greater than that of every tenure before."""

    until: float


class Standing(NamedTuple):
    """Who has a lease, as the database says."""

    holder: uuid.UUID | None
    """None where nobody has it now."""

    token: int
    """That of the last tenure; 0 where there was none."""


class Leases:
    """The leases of a tenant, as one replica sees them. Asked by one thread at a time.

    Args:
        line: Where they are kept.
        holder: This replica.
        seconds: How long one lasts.
        clock: The seconds of this machine, which never stand still.
    """

    def __init__(
        self,
        line: Line,
        holder: uuid.UUID,
        *,
        seconds: float = SECONDS,
        clock: Callable[[], float] = now,
    ) -> None:
        self._line = line
        self._holder = holder
        self._clock = clock
        self.seconds = seconds

    def take(self, name: str, *, anew: bool = False) -> Lease | None:
        """Have a lease from now on, for the first time or again; None where another has it.

        Args:
            name: The lease.
            anew: Whether to begin another tenure, where this replica has it already.

        Raises:
            StoreAwayError: The database is away; a lease that was held before lasts as it did.
        """
        standing = self.look(name)
        if standing.holder not in (None, self._holder):
            return None  # looked at, so that a row is not locked by all who wait for it
        values = {"name": name, "holder": self._holder, "seconds": self.seconds, "anew": anew}
        began = self._clock()
        row = self._line.ask(_TAKE, values)
        if row is None:
            return None
        return Lease(name, int(row[0]), began + self.seconds * (1 - MARGIN))

    def look(self, name: str) -> Standing:
        """Return who has a lease.

        Raises:
            StoreAwayError: The database is away.
        """
        row = self._line.ask(_LOOK, {"name": name})
        if row is None:
            return Standing(None, 0)
        return Standing(row[0] if row[2] else None, int(row[1]))

    def leave(self, lease: Lease) -> None:
        """Let a lease go before its time, where it is still held; others hear of it.

        Raises:
            StoreAwayError: The database is away; the lease ends by itself.
        """
        values = {"name": lease.name, "holder": self._holder, "token": lease.token}
        self._line.ask(_LEAVE, {**values, "channel": CHANNEL})
