"""How the gateway is asked to end, from before anything is started.

The handlers of signals are in place before there is an event loop, so that a signal is
never taken for what it means to a bare process: an end at once that leaves servers behind.
Who asks once has everything ended in order; who asks twice has it killed. A hang-up is no
wish to end: where there is a configuration to read again, it means that, and one that comes
during the start is obeyed after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from toolfold.sources.mcp.transports import _process_groups as process_groups

__all__ = ["StopSignal", "stopping"]

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
_HANG_UP = getattr(signal, "SIGHUP", None)

IGNORED = (
    "SIGHUP is ignored: a changed configuration is read at the next start; SIGTERM ends the process"
)

_log = logging.getLogger(__name__)


class Reloads(Protocol):
    """What reads the configuration again."""

    def soon(self, by: str) -> None:
        """Read it again, soon.

        Args:
            by: Why, as a clause for the log.
        """
        ...


class StopSignal:
    """The wish that the gateway ends.

    Args:
        will_reload: Whether there will be a configuration to read again.
    """

    def __init__(self, *, will_reload: bool = False) -> None:
        self._is_asked = False
        self._will_reload = will_reload
        self._reloading: Reloads | None = None
        self._hung_up_early = False
        self._event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def event(self) -> asyncio.Event:
        """Return what is set when the gateway is asked to end, for the running loop."""
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        if self._is_asked:
            self._event.set()
        return self._event

    def reloads(self, reloading: Reloads | None) -> None:
        """Have a hang-up read the configuration again, where there is one to read."""
        self._will_reload, self._reloading = reloading is not None, reloading
        if self._hung_up_early:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._reloading is not None:
            self._reloading.soon("SIGHUP")
        elif not self._will_reload:
            _log.warning("%s", IGNORED)

    def take(self, number: int) -> None:
        """Take a signal."""
        if number == _HANG_UP:
            # A handler may run in the middle of anything, so it does nothing by itself.
            self._hung_up_early = self._reloading is None
            self._soon(lambda event: self._hang_up())
        else:
            self._ask(number)

    def _ask(self, number: int) -> None:
        if self._is_asked:  # asked twice: no more patience
            process_groups.kill_all()
            os._exit(128 + number)
        self._is_asked = True
        self._soon(lambda event: event.set())

    def _soon(self, act: Callable[[asyncio.Event], None]) -> None:
        if self._loop is not None and self._event is not None:
            with contextlib.suppress(RuntimeError):  # the loop has come to its end
                self._loop.call_soon_threadsafe(act, self._event)


@contextmanager
def stopping(*, will_reload: bool = False) -> Generator[StopSignal]:
    """Take signals as the wish to end; what is left of the servers at the end is killed.

    Args:
        will_reload: Whether there will be a configuration that a hang-up has read again.
    """
    stop = StopSignal(will_reload=will_reload)
    before = {
        number: signal.getsignal(number)
        for number in (getattr(signal, name, None) for name in _SIGNALS)
        # One that was told not to care, as by `nohup`, does not.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        for number in before:
            signal.signal(number, lambda taken, frame: stop.take(taken))
        with process_groups.guarded():
            yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
