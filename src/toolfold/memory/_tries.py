"""What may go wrong, done: said once and passed over, or done later where a database is away."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from toolfold.memory._kept import StoreError
from toolfold.store.store import StoreAwayError

__all__ = ["POSTPONED", "Tries"]

POSTPONED = 1_000
"""How much is kept in this process until a database is back; the oldest leaves first."""

_SAID_AT_MOST = 16
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Tries:
    """Does things that may fail. `attempt` belongs to one thread."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._postponed: deque[Callable[[], None]] = deque()
        self._is_away = False

    @property
    def has_postponed(self) -> bool:
        """Whether something waits for a database that is away."""
        return bool(self._postponed)

    def guarded(self, work: Callable[[], T], otherwise: T) -> T:
        """Do something; whatever goes wrong with the file, say it once and go on without.

        Args:
            work: What to do.
            otherwise: What comes of it where it goes wrong.
        """
        try:
            return work()
        except (StoreError, StoreAwayError) as error:
            self.say(str(error))
        except Exception as error:
            self.say(f"the memory failed and is passed over: {error!r}")
        return otherwise

    def attempt(self, job: Callable[[], None], *, keeps: bool = True) -> None:
        """Do something, and before it what a database that was away has not taken yet.

        Args:
            job: What to do.
            keeps: Whether it is done later where the database is away now.
        """
        try:
            while self._postponed:
                self._do(self._postponed[0])
                self._postponed.popleft()
            self._do(job)
        except StoreAwayError as error:
            if not self._is_away:
                self._is_away = True
                _log.warning(
                    "%s; searches go on with what is known, and what is learnt waits here", error
                )
            if keeps:
                self._postponed.append(job)
            if len(self._postponed) > POSTPONED:
                self._postponed.popleft()
                self.say("the database is away for long: some of what was learnt is lost")
        else:
            self._is_away = False

    def end(self) -> None:
        """Say what is lost."""
        if self._postponed:
            self.say("the database is away: some of what was learnt is lost")

    def say(self, what: str) -> None:
        """Say what went wrong, once."""
        if what not in self._said and len(self._said) < _SAID_AT_MOST:
            self._said.add(what)
            _log.warning("%s", what)

    def _do(self, job: Callable[[], None]) -> None:
        try:
            job()
        except StoreAwayError:
            raise
        except StoreError as error:
            self.say(str(error))
        except Exception as error:
            self.say(f"the memory failed and is passed over: {error!r}")
