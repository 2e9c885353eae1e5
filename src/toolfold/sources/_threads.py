"""Threads for plain functions, so that one that hangs holds up nobody else.

A thread cannot be stopped from outside. These are daemons: one that never ends is left
alone, costs the process nothing at its exit, and no other call waits for it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

__all__ = ["in_thread"]

_IDLE_SECONDS = 10.0
_Job = Callable[[], None]

_idle: list[queue.SimpleQueue[_Job]] = []
_lock = threading.Lock()


async def in_thread(function: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own, with this task's context, and return its result.

    Where the task is cancelled the thread goes on by itself and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def job() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except Exception as caught:
            # A future takes no StopIteration.
            stop = isinstance(caught, StopIteration)
            error = RuntimeError("it raised StopIteration") if stop else caught
        except BaseException as caught:  # meant for this thread, not for the event loop
            error = RuntimeError(f"it raised {type(caught).__name__}")
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, value, error)

    _submit(job)
    return await done


def _submit(job: _Job) -> None:
    with _lock:
        jobs = _idle.pop() if _idle else None
    if jobs is None:
        jobs = queue.SimpleQueue[_Job]()
        threading.Thread(target=_work, args=(jobs,), name="toolfold-tool", daemon=True).start()
    jobs.put(job)


def _work(jobs: queue.SimpleQueue[_Job]) -> None:
    while True:
        try:
            job = jobs.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            with _lock:
                if jobs in _idle:
                    _idle.remove(jobs)
                    return
            continue  # it was taken just now: its job is on the way
        job()
        with _lock:
            _idle.append(jobs)
