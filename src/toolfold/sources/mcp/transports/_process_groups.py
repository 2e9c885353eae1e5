"""Every group of processes that runs for us, so that none outlives us.

Whoever starts a group adds it here, and takes it off when nothing is left of it. What is
here when we end is killed: by `kill_all`, which waits for nothing and can be called while
a signal is handled; and, should we be killed ourselves, by a guard. The guard is a shell
that reads from us which groups there are, and comes to the end of its input when we die.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Generator

__all__ = ["add", "discard", "guarded", "kill_all"]

_SHELL = "/bin/sh"
_GUARD = """\
trap '' HUP INT TERM
live=' '
while read -r what group; do
    case $what in
    +) live="$live$group " ;;
    -) live="${live%% $group *} ${live#* $group }" ;;
    esac
done
for group in $live; do kill -s KILL -- "-$group"; done
"""

_groups: set[int] = set()
_guard: subprocess.Popen[bytes] | None = None


def add(group: int) -> None:
    """A group runs."""
    _groups.add(group)
    _tell(f"+ {group}\n")


def discard(group: int) -> None:
    """Nothing is left of a group."""
    if group in _groups:
        _groups.discard(group)
        _tell(f"- {group}\n")


def kill_all() -> None:
    """Kill all groups now."""
    for group in tuple(_groups):
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(group, signal.SIGKILL)
            else:
                os.kill(group, signal.SIGTERM)


@contextlib.contextmanager
def guarded() -> Generator[None]:
    """Within this, groups do not outlive us even where we are killed, as far as that can be."""
    global _guard
    if os.name == "posix":
        with contextlib.suppress(OSError):
            _guard = subprocess.Popen(
                [_SHELL, "-c", _GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                # What ends us by way of our group must not end the guard.
                start_new_session=True,
            )
            assert _guard.stdin is not None
            # A guard that somebody stopped must not stop us.
            os.set_blocking(_guard.stdin.fileno(), False)
    try:
        yield
    finally:
        guard, _guard = _guard, None
        kill_all()
        if guard is not None:
            assert guard.stdin is not None
            guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(1)


def _tell(line: str) -> None:
    if _guard is not None and _guard.stdin is not None:
        with contextlib.suppress(OSError):
            os.write(_guard.stdin.fileno(), line.encode())
