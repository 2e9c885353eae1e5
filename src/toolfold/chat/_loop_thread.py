"""An event loop that goes on by itself while the program waits at a prompt.

Sources live on it: a server is heard, kept alive and started again also while a person
thinks. What the program asks of it is waited for; Ctrl-C cancels that and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Self, TypeVar

__all__ = ["LoopThread"]

_GRACE_SECONDS = 2.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


class LoopThread:
    """An event loop in a thread of its own; open it with `with`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._is_over = False
        self._thread = threading.Thread(target=self._go, name="toolfold-loop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the loop; leave it even where something does not stop when it is cancelled."""
        if not self.run(_all_stopped()):
            return
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._is_over = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _go(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_over:
            try:
                self._loop.run_forever()
            except BaseException:  # a tool that raises KeyboardInterrupt ends itself alone
                _log.debug("the event loop goes on", exc_info=True)

    def call(self, function: Callable[[], T]) -> T:
        """Return what a function returns that is called on the loop."""

        async def called() -> T:
            return function()

        return self.run(called())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop and return its result.

        Raises:
            KeyboardInterrupt: It was cancelled by Ctrl-C, and has ended; or Ctrl-C was pressed
                again before it had.
        """
        ended: Future[T] = Future()
        task: asyncio.Task[T] | None = None
        context = copy_context()

        def begin() -> None:
            nonlocal task
            task = self._loop.create_task(coroutine, context=context)
            task.add_done_callback(lambda done: _settle(done, ended))

        def cancel() -> None:
            if task is not None:
                task.cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            return ended.result()
        except KeyboardInterrupt:
            if ended.done():  # it was raised on the loop
                raise
        self._loop.call_soon_threadsafe(cancel)
        with suppress(asyncio.CancelledError):
            ended.result()
        raise KeyboardInterrupt


def _settle(task: asyncio.Task[T], ended: Future[T]) -> None:
    if task.cancelled():
        ended.set_exception(asyncio.CancelledError())
        return
    error = task.exception()
    if error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(task.result())


async def _all_stopped() -> bool:
    """Cancel what still runs, and return whether all of it stopped in time."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
    return all(task.done() for task in tasks)
