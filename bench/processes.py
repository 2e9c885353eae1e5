"""Processes that the bench starts: servers until they listen, and what they hold in memory."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peers import clean_environment

__all__ = ["descendants", "descriptors", "free_port", "resident_mb", "started"]


@contextmanager
def started(command: Sequence[str], port: int) -> Generator[int]:
    """Run a server until it is no longer needed; yield its process id once it listens."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    )
    try:
        while not _listens(port):
            if process.poll() is not None or time.perf_counter() - began > 60:
                raise SystemExit(f"{' '.join(command[:3])} does not start")
            time.sleep(0.01)
        yield process.pid
    finally:
        process.terminate()
        process.wait(15)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def resident_mb(pid: int | str = "self") -> float:
    """Return the resident memory of a process in megabytes; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0.0
    lines = status.read_text(encoding="ascii").splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1_024, 1)


def descriptors(pid: int) -> int:
    """Return how many files and sockets a process has open; 0 where the system does not tell."""
    folder = Path(f"/proc/{pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def descendants(pid: int) -> int:
    """Return how many processes a process has started, by itself or by others, that run."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if words[0] not in "ZX":
                parents[int(folder.name)] = int(words[1])
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return len(found)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
