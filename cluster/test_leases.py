"""Leases: no two replicas ever believe at one moment that they have the same one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.postgres import Postgres
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.leases import CHANNEL, Leases, now
from toolfold.store.postgres.line import Line
from toolfold.store.postgres.news import News
from toolfold.store.store import StoreAwayError

Opener = Callable[..., Database]
_NUMBERS = count()


class Belief(NamedTuple):
    """That a replica had a lease: from when to when, by one clock for all."""

    began: float
    ended: float
    replica: int
    token: int


def check(beliefs: list[Belief]) -> None:
    """No two replicas' beliefs overlap, and tokens grow from one to the next."""
    beliefs.sort()
    for one, other in pairwise(beliefs):
        if one.replica != other.replica:
            assert one.ended <= other.began, (one, other)
            assert one.token < other.token, (one, other)
        assert one.token <= other.token, (one, other)


class Habits(NamedTuple):
    """How one replica behaves."""

    skew: float
    pauses: list[float]
    """How long it stands still after each time that it asked."""

    leaves: bool
    """Whether it lets a lease go, or lets it end."""


habits = st.builds(
    Habits,
    st.floats(-1000, 1000),
    st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.05, 0.15]), min_size=3, max_size=6),
    st.booleans(),
)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(replicas=st.lists(habits, min_size=2, max_size=4))
def test_no_two_replicas_believe_at_one_moment_that_they_have_a_lease(
    address: str, replicas: list[Habits]
) -> None:
    name = f"lease {next(_NUMBERS)}"
    beliefs: list[Belief] = []
    pause = threading.Event()

    def live(number: int) -> None:
        habit = replicas[number]
        line = Line(Database(address))
        leases = Leases(line, uuid.uuid4(), seconds=0.08, clock=lambda: now() + habit.skew)
        for still in habit.pauses:
            lease = leases.take(name)
            pause.wait(still)
            began = now()
            if lease is None:
                continue
            until = lease.until - habit.skew
            if habit.leaves:
                until = min(until, began + 0.01)
                pause.wait(max(until - now(), 0))
            if began < until:
                beliefs.append(Belief(began, until, number, lease.token))
            if habit.leaves:
                leases.leave(lease)
        line.close()

    with ThreadPoolExecutor(len(replicas)) as pool:
        list(pool.map(live, range(len(replicas))))
    check(beliefs)


def test_a_lease_is_renewed_by_its_holder_and_left_for_others(
    address: str, open_database: Opener
) -> None:
    database = open_database(address)
    here, there = (Leases(Line(database), uuid.uuid4()) for _ in range(2))
    heard: list[str | None] = []
    with News(open_database(address), {CHANNEL: heard.append}) as news:
        assert news.is_listening.wait(10)
        first = here.take("a")
        assert first is not None and first.token == 1
        assert now() < first.until < now() + 10
        assert there.take("a") is None
        again = here.take("a")
        assert again is not None and again.token == 1 and again.until > first.until
        assert there.look("a").token == 1
        here.leave(again)
        here.leave(again)
        taken = there.take("a")
        assert taken is not None and taken.token == 2
        here.leave(again)  # what was left long ago is not another's to lose
        assert there.look("a").holder is not None
        assert here.take("a") is None
        assert here.take("b") is not None
        deadline = time.monotonic() + 10
        while heard != [None, "a"] and time.monotonic() < deadline:
            threading.Event().wait(0.02)
        assert heard == [None, "a"]


def test_tenants_have_leases_of_their_own(address: str, open_database: Opener) -> None:
    one, two = (
        Leases(Line(open_database(address, tenant=name)), uuid.uuid4()) for name in ("one", "two")
    )
    assert one.take("a") is not None
    assert two.look("a") == (None, 0)
    assert two.take("a") is not None


def test_with_the_database_away_a_lease_ends_by_the_holders_own_clock(
    postgres_alone: tuple[Postgres, str], open_database: Opener
) -> None:
    server, address = postgres_alone
    leases = Leases(Line(open_database(address)), uuid.uuid4(), seconds=0.5)
    lease = leases.take("a")
    assert lease is not None
    server.stop("immediate")
    with pytest.raises(StoreAwayError):
        leases.take("a")
    threading.Event().wait(max(lease.until - now(), 0))
    server.start()
    other = Leases(Line(open_database(address)), uuid.uuid4(), seconds=0.5)
    taken = other.take("a")
    while taken is None:
        taken = other.take("a")
    assert taken.token == 2
    assert leases.take("a") is None


HOLDER = """
import sys, time, uuid
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.leases import Leases, now
from toolfold.store.postgres.line import Line

leases = Leases(Line(Database(sys.argv[1])), uuid.uuid4(), seconds=0.6)
while True:
    lease = leases.take("a")
    renewal = now() + 0.1
    while (moment := now()) < renewal:
        if lease is not None and moment < lease.until:
            print(moment, lease.token, flush=True)
        time.sleep(0.002)
"""


def test_a_process_that_was_paused_for_longer_than_its_lease_does_not_believe_that_it_has_it(
    address: str, tmp_path: Path
) -> None:
    outputs = [tmp_path / str(number) for number in range(3)]
    processes: list[subprocess.Popen[bytes]] = []
    for output in outputs:
        with output.open("w", encoding="utf-8") as file:
            command = [sys.executable, "-c", HOLDER, address]
            processes.append(subprocess.Popen(command, stdout=file))
    pause = threading.Event()
    deadline = time.monotonic() + 40
    try:
        # Whoever has it is paused for longer than it lasts, until each has had it.
        while not all(output.stat().st_size for output in outputs) and time.monotonic() < deadline:
            for process in processes:
                os.kill(process.pid, signal.SIGSTOP)
                pause.wait(0.8)
                os.kill(process.pid, signal.SIGCONT)
                pause.wait(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
    beliefs: list[Belief] = []
    for number, output in enumerate(outputs):
        for line in output.read_text(encoding="utf-8").splitlines():
            if len(line.split()) == 2:  # the last may be cut off
                moment, token = line.split()
                beliefs.append(Belief(float(moment), float(moment), number, int(token)))
    assert {belief.replica for belief in beliefs} == {0, 1, 2}
    check(beliefs)
