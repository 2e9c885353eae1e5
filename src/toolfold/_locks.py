"""A lock between processes, held on a file of its own.

The system gives it back when its holder ends, however that happens, so there is no stale
lock to clear away. The file stays: to remove it would let two processes hold two of them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["file_lock"]


@contextmanager
def file_lock(path: Path, seconds: float = 5.0) -> Generator[None]:
    """Hold the lock of a file.

    Raises:
        TimeoutError: Another process held it for so many seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise TimeoutError
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)  # which gives the lock back


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # the second on some network file systems
            return False
        return True
