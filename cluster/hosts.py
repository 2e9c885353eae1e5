"""Hosts of their own on one machine: network namespaces on a wire that can be cut.

Each host has its own address, its own loopback and no way out: the wire is in a namespace, too,
and leads nowhere. What is sent over a cut link is dropped without a word, as by a cable that was
pulled: nobody is told, connections hang.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import combinations, count
from pathlib import Path
from typing import IO, Self, TypeVar

__all__ = ["NOBODY", "SUBNET", "Host", "Network", "why_not"]

NOBODY = 65534
"""The user of programs that refuse to be root."""

SUBNET = "198.18.0.0/24"
"""Set aside for tests between hosts (RFC 2544); nothing of it leaves the namespaces."""

_PREFIX = "toolfold-"
_NOWHERE = "02:00:00:00:00:01"
"""An address of nobody: the wire carries frames for it to all, and all of them drop them."""

_CGROUPS = Path("/sys/fs/cgroup")
_PERIOD = 20_000
"""Microseconds over which the share of the cores is counted."""

_CLONE_NEWNET = 0x40000000
_NUMBERS = count()

_T = TypeVar("_T")


def why_not() -> str:
    """Return why hosts cannot be had here; empty where they can."""
    if not sys.platform.startswith("linux"):
        return "no hosts: network namespaces are Linux's"
    if os.geteuid() != 0:
        return "no hosts: network namespaces need root"
    missing = [name for name in ("ip", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"no hosts: `{missing[0]}` is not installed (iproute2, util-linux)"
    try:
        with Network("one"):
            return ""
    except subprocess.CalledProcessError as error:
        return f"no hosts: {error.stderr.strip() or error}"


class Host:
    """One host: an address, and the processes that were started on it."""

    def __init__(self, namespace: str, name: str, address: str) -> None:
        self.namespace = namespace
        self.name = name
        self.address = address
        self._group: Path | None = None
        self._started: list[subprocess.Popen[str]] = []

    def command(self, *command: str, user: int | None = None) -> list[str]:
        """Return the command that runs another one here."""
        who = [] if user is None else ["--setuid", str(user), "--setgid", str(user)]
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *who, "--", *command]

    def start(
        self,
        command: Sequence[str],
        *,
        log: Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | IO[str] = subprocess.DEVNULL,
        stdout: int | IO[str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a process here. What it says is appended to a log."""
        out = subprocess.DEVNULL if log is None else log.open("a", encoding="utf-8")
        whole = self.command(*command)
        if self._group is not None:
            enter = f'echo $$ > {self._group}/cgroup.procs && exec "$@"'
            whole = ["sh", "-c", enter, "sh", *whole]
        try:
            process = subprocess.Popen(
                whole,
                stdin=stdin,
                stdout=out if stdout is None else stdout,
                stderr=out,
                env=None if env is None else dict(env),
                cwd=cwd,
                text=True,
                start_new_session=True,
            )
        finally:
            if not isinstance(out, int):
                out.close()
        self._started.append(process)
        return process

    def run(self, function: Callable[[], _T]) -> _T:
        """Run a function in a thread that is on this host, with all threads that it starts."""

        def entered() -> _T:
            with Path(f"/run/netns/{self.namespace}").open() as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "the host cannot be entered")
            return function()

        with ThreadPoolExecutor(1) as pool:  # a thread of its own: it never comes back
            return pool.submit(entered).result()

    def limit(self, cores: float) -> None:
        """Let what is started here from now on have no more than so much of the cores."""
        quota = int(_PERIOD * cores)
        is_first = (_CGROUPS / "cpu").is_dir()  # cgroups of the first version
        self._group = (_CGROUPS / "cpu" if is_first else _CGROUPS) / self.namespace
        self._group.mkdir(exist_ok=True)
        if is_first:
            (self._group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (self._group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self._group / "cpu.max").write_text(f"{quota} {_PERIOD}")

    def pids(self) -> list[int]:
        """Return the processes that run here."""
        return _pids(self.namespace)

    def cpu_seconds(self) -> float:
        """Return how long the processes that run here have kept a core busy."""
        ticks = 0
        for pid in self.pids():
            with suppress(FileNotFoundError, ProcessLookupError):
                numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(numbers[11]) + int(numbers[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def crash(self) -> None:
        """End everything that runs here at once, as a power cut would, and wait until it has."""
        _crash(self.namespace)
        while self._started:
            self._started.pop().wait()


class Network:
    """Hosts by name, each reached from every other until a link is cut. Open it with `with`.

    Args:
        names: The hosts' names, short ones.
    """

    def __init__(self, *names: str) -> None:
        self._group = f"{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
        self._wire = f"{self._group}-wire"
        self._hosts = {
            name: Host(f"{self._group}-{name}", name, SUBNET.replace("0/24", str(number)))
            for number, name in enumerate(names, 1)
        }

    def __enter__(self) -> Self:
        remove_leftovers()
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts.values():
            with suppress(subprocess.CalledProcessError):  # it was never made
                host.crash()
        _remove(host.namespace for host in self._hosts.values())
        _remove([self._wire])

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def part(self, one: str, *others: str) -> None:
        """Cut the links between one host and some others."""
        for other in others:
            for here, there in ((one, other), (other, one)):
                _ip("-n", self[here].namespace, "neigh", "replace", self[there].address,
                    "lladdr", _NOWHERE, "dev", "eth0", "nud", "permanent")  # fmt: skip

    def mend(self, one: str, *others: str) -> None:
        """Join the links between one host and some others again."""
        for other in others:
            for here, there in ((one, other), (other, one)):
                with suppress(subprocess.CalledProcessError):  # it was never cut
                    _ip("-n", self[here].namespace, "neigh", "del", self[there].address,
                        "dev", "eth0")  # fmt: skip

    def mend_all(self) -> None:
        """Join every link again."""
        for one, other in combinations(self._hosts, 2):
            self.mend(one, other)

    def _build(self) -> None:
        _ip("netns", "add", self._wire)
        _ip("-n", self._wire, "link", "add", "name", "wire", "type", "bridge", "forward_delay", "0")
        _ip("-n", self._wire, "link", "set", "dev", "wire", "up")
        for host in self._hosts.values():
            inside = ("-n", host.namespace)
            _ip("netns", "add", host.namespace)
            _ip("link", "add", "name", host.name, "netns", self._wire, "type", "veth",
                "peer", "name", "eth0", "netns", host.namespace)  # fmt: skip
            _ip("-n", self._wire, "link", "set", "dev", host.name, "master", "wire", "up")
            _ip(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip(*inside, "link", "set", "lo", "up")
            _ip(*inside, "link", "set", "eth0", "up")


def remove_leftovers() -> None:
    """Remove the hosts of runs that were killed, with all that still runs on them."""
    names = [line.split()[0] for line in _ip("netns", "list").splitlines() if line]
    runs = {name: re.match(rf"{_PREFIX}(\d+)-", name) for name in names}
    _remove(name for name, run in runs.items() if run and not Path(f"/proc/{run[1]}").exists())


def _remove(namespaces: Iterable[str]) -> None:
    for namespace in namespaces:
        with suppress(subprocess.CalledProcessError):  # it was never made
            _crash(namespace)
            _ip("netns", "delete", namespace)
        for group in (_CGROUPS / "cpu" / namespace, _CGROUPS / namespace):
            with suppress(OSError):  # there is none
                group.rmdir()


def _crash(namespace: str) -> None:
    end = time.monotonic() + 10
    while pids := _pids(namespace):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            raise TimeoutError(f"{namespace}: {pids} do not end")
        time.sleep(0.01)


def _pids(namespace: str) -> list[int]:
    return [int(pid) for pid in _ip("netns", "pids", namespace).split()]


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
    return done.stdout
