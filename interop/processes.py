"""The program as a user runs it, for as long as a test needs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["TOOLFOLD", "listening"]

TOOLFOLD = str(Path(sys.executable).parent / "toolfold")
_ADDRESS = re.compile(r"listening on (http://\S+)")


@contextmanager
def listening(
    command: Sequence[str],
    *,
    patience: float,
    env: Mapping[str, str] | None = None,
    is_heard: bool = False,
) -> Generator[str]:
    """Run a command that says where it listens; yields the address.

    Args:
        command: The command.
        patience: How many seconds it has to say so, and to end.
        env: More variables.
        is_heard: Whether it must say nothing on its standard output.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if is_heard else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        encoding="utf-8",
    )
    log: list[str] = []
    found: list[str] = []
    heard = threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)
            if not found and (match := _ADDRESS.search(line)):
                found.append(match[1])
                heard.set()
        heard.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        heard.wait(patience)
        assert found, "".join(log)
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.stdout.read() if process.stdout else "", process.wait(patience)
        reader.join(patience)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        assert out == "", out
        assert not [line for line in log if "Traceback" in line], "".join(log)
