"""Runs a program, and kills it and all that it started when it is not told in time to let it live.

A program by itself, which imports nothing of ours: `python -I -S _watched_process.py DESCRIPTOR
UNTIL COMMAND ...`. From the descriptor come later times, one a line, by the clock that goes on
while a machine sleeps. When the time has come, or the descriptor is closed, the group is killed:
whoever should have written was parted from the others, paused or killed.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import sys
import time


def now() -> float:
    """Return the seconds of this machine's clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def reap(process: int) -> None:
    """Wait for the program, and end as it ended."""
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def watch(descriptor: int, until: float) -> None:
    """Return when the time has come."""
    rest = b""
    while (left := until - now()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            continue
        came = os.read(descriptor, 4096)
        if not came:
            return
        *lines, rest = (rest + came).split(b"\n")
        until = max([until, *map(float, lines)])


def main() -> None:
    """Run the program."""
    descriptor, until, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(descriptor, False)
    if until <= now():
        os._exit(1)
    process = os.posix_spawnp(
        command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]
    )
    for pipe in (0, 1, 2):  # they are the program's alone
        os.close(pipe)
    _thread.start_new_thread(reap, (process,))
    watch(descriptor, until)
    os.killpg(0, signal.SIGKILL)


main()
