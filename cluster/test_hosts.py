"""The hosts of the proving ground, and the database on them: parted, mended, failed over."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cluster import hosts, postgres
from cluster.hosts import Host, Network, remove_leftovers
from cluster.postgres import OWNER, Postgres, Standby, either

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def network() -> Iterator[Network]:
    if reason := hosts.why_not():
        pytest.skip(reason)
    with Network("a", "b", "c") as made:
        yield made


def listening(host: Host) -> socket.socket:
    """A socket on a host; whoever holds it may be anywhere."""
    return host.run(lambda: socket.create_server((host.address, 7000)))


def connected(host: Host, to: Host) -> socket.socket:
    return host.run(lambda: socket.create_connection((to.address, 7000), timeout=0.5))


def test_a_cut_link_carries_nothing_and_a_mended_one_what_was_sent_meanwhile(
    network: Network,
) -> None:
    a, b, c = (network[name] for name in "abc")
    with listening(b) as door, connected(a, b) as old:
        kept, _ = door.accept()
        with kept:
            network.part("a", "b")
            old.sendall(b"over the cut")
            kept.settimeout(0.3)
            with pytest.raises(TimeoutError):
                kept.recv(100)
            with pytest.raises(TimeoutError):
                connected(a, b)
            connected(c, b).close()

            network.mend("a", "b")
            kept.settimeout(10)
            assert kept.recv(100) == b"over the cut"
            connected(a, b).close()


def test_a_host_has_no_way_out(network: Network) -> None:
    done = subprocess.run(
        network["a"].command("ip", "route"), check=True, capture_output=True, text=True
    )

    assert [line.split()[0] for line in done.stdout.splitlines()] == [hosts.SUBNET]


def test_a_crash_ends_all_that_runs_on_a_host_and_nothing_else(network: Network) -> None:
    sleep = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"
    one = network["a"].start([sys.executable, "-c", sleep])
    other = network["b"].start([sys.executable, "-c", sleep])
    network["a"].crash()

    assert one.wait(5) == -signal.SIGKILL
    assert network["a"].pids() == []
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_host_with_a_part_of_a_core_gets_no_more(network: Network) -> None:
    busy = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
    try:
        network["a"].limit(0.1)
    except OSError as error:
        pytest.skip(f"cores cannot be shared out here: {error}")
    process = network["a"].start([sys.executable, "-S", "-E", "-c", f"{busy}\ninput()"], stdin=-1)
    spent, end = 0.0, time.monotonic() + 2
    while time.monotonic() < end and process.poll() is None:
        spent = network["a"].cpu_seconds()
        time.sleep(0.1)

    assert spent < 0.5
    process.communicate("")


def test_what_a_killed_run_left_is_removed_by_the_next(network: Network) -> None:
    run = """
import sys, time
from cluster.hosts import Network
with Network("left") as made:
    print(made["left"].namespace, made["left"].start(["sleep", "60"]).pid, flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", run]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert killed.stdout is not None
    with killed.stdout:
        namespace, pid = killed.stdout.readline().split()
    assert Path(f"/run/netns/{namespace}").exists()
    remove_leftovers()
    assert Path(f"/run/netns/{namespace}").exists()  # its run is still there
    killed.kill()
    killed.wait()
    remove_leftovers()

    assert not Path(f"/run/netns/{namespace}").exists()
    status = Path(f"/proc/{pid}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()
    assert Path(f"/run/netns/{network['a'].namespace}").exists()


def test_no_commit_is_lost_when_the_database_fails_over(network: Network) -> None:
    if reason := postgres.why_not():
        pytest.skip(reason)

    with Postgres(host=network["a"]) as first, Standby(first, network["b"]) as second:
        first.wait_for(second)
        address = either((first, second), OWNER, "postgres")

        def asked(statement: str) -> list[tuple[object, ...]]:
            with psycopg.connect(address, autocommit=True) as connection:
                found = connection.execute(statement.encode())
                return found.fetchall() if found.description else []

        on_c = network["c"].run
        on_c(lambda: asked("create table marks (mark int)"))
        on_c(lambda: asked("insert into marks select generate_series(1, 1000)"))
        first.kill()
        second.promote()

        assert on_c(lambda: asked("select count(*) from marks")) == [(1000,)]
        with Standby(second, network["a"]) as third:
            second.wait_for(third)
            on_c(lambda: asked("insert into marks values (0)"))
        assert on_c(lambda: asked("select host(inet_server_addr())")) == [(network["b"].address,)]


def test_a_database_that_was_killed_starts_again(network: Network) -> None:
    if reason := postgres.why_not():
        pytest.skip(reason)
    with Postgres(host=network["a"]) as server:
        for mode in ("fast", "immediate", "kill"):
            server.restart(mode)
            with psycopg.connect(server.address(OWNER)) as connection:
                assert connection.execute("select 1").fetchone() == (1,)


def test_why_there_are_no_hosts_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert hosts.why_not().startswith("no hosts: ")
