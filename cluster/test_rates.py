"""How often a caller may ask, counted over all replicas."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.postgres import Postgres
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.rates import PostgresRates

Opener = Callable[..., Database]

_NUMBERS = count()


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    per_minute=st.sampled_from([60, 600, 6_000, 59_999]),
    burst=st.integers(1, 5),
    replicas=st.integers(1, 4),
    takes=st.integers(5, 25),
)
def test_over_all_replicas_no_more_than_the_bound_are_admitted(
    address: str, per_minute: int, burst: int, replicas: int, takes: int
) -> None:
    name = f"somebody {next(_NUMBERS)}"
    here = [PostgresRates(Database(address)) for _ in range(replicas)]
    together = threading.Barrier(replicas)
    admitted: list[tuple[float, float]] = []

    def ask(rates: PostgresRates) -> None:
        together.wait(10)
        for _ in range(takes):
            before = time.monotonic()
            wait = rates.take_now(name, per_minute, burst)
            if not wait:
                admitted.append((before, time.monotonic()))
            assert 0 <= wait <= 60e9 / per_minute * burst + 1e6

    try:
        with ThreadPoolExecutor(replicas) as pool:
            list(pool.map(ask, here))
    finally:
        for rates in here:
            rates.close()

    admitted.sort()
    assert min(burst, replicas * takes) <= len(admitted)
    for first, (began, _) in enumerate(admitted):
        for last in range(first, len(admitted)):
            stretch = max(ended for _, ended in admitted[first : last + 1]) - began
            assert last - first + 1 <= burst + per_minute * stretch / 60


def test_callers_and_tenants_have_buckets_of_their_own(address: str, open_database: Opener) -> None:
    here, there = (PostgresRates(open_database(address, tenant=name)) for name in ("a", "b"))
    assert here.take_now("x", 60, 1) == 0
    assert 0 < here.take_now("x", 60, 1) <= 1e9
    assert here.take_now("y", 60, 1) == 0
    assert there.take_now("x", 60, 1) == 0
    here.close()
    there.close()


def test_with_the_database_away_nothing_is_counted_here_and_it_is_said_once(
    postgres_alone: tuple[Postgres, str], open_database: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    server, address = postgres_alone
    rates = PostgresRates(open_database(address))

    async def main() -> None:
        assert await rates.take("x", 60, 2) == 0
        await asyncio.to_thread(server.stop, "immediate")
        assert [await rates.take("x", 60, 2) for _ in range(5)] == [None] * 5
        began = time.monotonic()
        assert await rates.take("x", 60, 2) is None
        assert time.monotonic() - began < 0.1  # nobody waits for it
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(20):
            while await rates.take("x", 60, 2) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    with caplog.at_level(logging.INFO, "toolfold.store.postgres.rates"):
        asyncio.run(main())
    rates.close()
    said = [record.message for record in caplog.records]
    assert len(said) == 2
    assert said[0].endswith("until it is back, each replica counts requests for itself")
    assert said[1] == "requests are counted over all replicas again"
