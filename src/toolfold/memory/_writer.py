"""A thread that does one thing after another, so that nobody waits for a disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

__all__ = ["MemoryWriter"]

QUEUED_AT_MOST = 1_000
"""How much may wait to be done; what comes beyond that is lost."""

PARTING = 10.0
"""How long the last of it may take when all is over, in seconds."""


EVERY = 1.0
"""How often something else is done while nothing waits, in seconds."""


class MemoryWriter:
    """Does jobs in order, in a thread that begins with the first of them.

    Args:
        idle: What else to do, now and then. It must not raise.
    """

    def __init__(self, idle: Callable[[], None] | None = None) -> None:
        self._idle = idle
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(QUEUED_AT_MOST)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, job: Callable[[], None]) -> bool:
        """Have something done soon; return whether it will be.

        Args:
            job: What to do. It must not raise.
        """
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="toolfold-memory", daemon=True
                )
                self._thread.start()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        return True

    def wait(self) -> None:
        """Wait until all that was given so far is done."""
        if self._thread is not None and self._thread.is_alive():
            self._jobs.join()

    def close(self) -> None:
        """Do what is left, and end."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            self._jobs.put(None)
            thread.join(timeout=PARTING)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=None if self._idle is None else EVERY)
            except queue.Empty:
                if self._idle is not None:
                    self._idle()
                continue
            try:
                if job is None:
                    return
                job()
            finally:
                self._jobs.task_done()
