"""How often a caller has asked, over all replicas: one row for each, and one statement.

The row is the moment at which the caller's bucket is full again. The database's clock counts,
and a row that is asked about is nobody else's until it is answered: in no stretch of `w` seconds
are more than `burst + rate * w / 60` requests admitted, whoever admits them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from toolfold.store.postgres.database import Database
from toolfold.store.postgres.line import Line
from toolfold.store.store import StoreAwayError

__all__ = ["PostgresRates"]

PATIENCE = 1.0
"""How long a request waits to be counted by all replicas, in seconds."""

LOOKS = 0.5
"""How often a database that is away is looked for, in seconds."""

KEPT = 3600
"""How long a bucket that is full is kept, in seconds."""

_log = logging.getLogger(__name__)

_MINUTE = 60_000_000

_TAKE = """
with taken as (
    insert into toolfold.rates as r (tenant, name, full_at)
    values (%(tenant)s, %(name)s, clock_timestamp() + %(step)s * interval '1 microsecond')
    on conflict (tenant, name) do update set
        full_at = greatest(r.full_at, clock_timestamp()) + %(step)s * interval '1 microsecond'
    where r.full_at <= clock_timestamp() + %(room)s * interval '1 microsecond'
    returning 0::bigint as wait
)
select wait from taken
union all
select greatest(%(least)s, ceil(extract(epoch from r.full_at - clock_timestamp()) * 1e6)
    - %(room)s)::bigint
from toolfold.rates r
where tenant = %(tenant)s and name = %(name)s and not exists (select from taken)
"""

_FORGET = """
delete from toolfold.rates where tenant = %(tenant)s
    and full_at < clock_timestamp() - %(kept)s * interval '1 second'
"""


class PostgresRates:
    """The buckets of a tenant's callers. Safe to share between event loops.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._line = Line(database)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="toolfold-rates")
        self._is_away = threading.Event()
        self._takes = 0

    async def take(self, name: str, per_minute: int, burst: int) -> int | None:
        """Admit a request and return 0, or return the nanoseconds until one is admitted.

        None says that it cannot be counted now, because the database is away or slow.
        """
        if self._is_away.is_set():
            return None
        counting = self._worker.submit(self.take_now, name, per_minute, burst)
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.wrap_future(counting)
        except (StoreAwayError, TimeoutError) as error:
            self._lost(error)
            return None

    def take_now(self, name: str, per_minute: int, burst: int) -> int:
        """Do the same in this thread.

        Raises:
            StoreAwayError: The database is away.
        """
        step = -(-_MINUTE // per_minute)
        values = {"name": name, "step": step, "room": (burst - 1) * step, "least": 1}
        row = self._line.ask(_TAKE, values)
        self._takes += 1
        if self._takes % 10_000 == 1:
            self._line.ask(_FORGET, {"kept": KEPT})
        # A bucket that another replica has just made and emptied is not seen yet.
        return 1000 * (step if row is None else int(row[0]))

    def close(self) -> None:
        """Count nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._line.close()

    def _lost(self, error: Exception) -> None:
        if self._is_away.is_set():
            return
        self._is_away.set()
        why = str(error) or "the database does not answer in time"
        _log.warning("%s; until it is back, each replica counts requests for itself", why)
        threading.Thread(target=self._await_return, name="toolfold-rates", daemon=True).start()

    def _await_return(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(LOOKS)
            with suppress(StoreAwayError):
                self._line.ask("select 1", {})
                self._is_away.clear()
                _log.info("requests are counted over all replicas again")
                return
