"""Who is there: the requests under way and the sessions open, of each and in all.

A value without a socket in it, so that its laws can be tested: nobody has more requests
under way or more sessions open than they may, and what ended or was idle too long no longer
counts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Presence", "TooManyError", "Visit"]


class TooManyError(Exception):
    """Somebody has as many requests or sessions as they may."""

    def __init__(self, what: Literal["requests", "sessions"]) -> None:
        super().__init__(what)
        self.what = what


@dataclass(slots=True)
class _Session:
    owner: str
    busy: int
    last: float


class Presence:
    """Counts requests and sessions.

    Args:
        requests_each: Requests that one principal may have under way.
        sessions_each: Sessions that one may have open.
        sessions: Sessions that all may have open together.
        idle: Seconds after which a session without a request is no more.
        clock: Where the time comes from.
    """

    def __init__(
        self,
        *,
        requests_each: int = 256,
        sessions_each: int = 500,
        sessions: int = 1_000,
        idle: float = 1_800.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests_each = requests_each
        self._sessions_each = sessions_each
        self._sessions_in_all = sessions
        self._idle = idle
        self._clock = clock
        self._requests: Counter[str] = Counter()
        self._opening: Counter[str] = Counter()
        self._sessions: dict[str, _Session] = {}

    def sessions_of(self, owner: str) -> int:
        """Return how many sessions somebody has open, or is about to."""
        open_ones = sum(session.owner == owner for session in self._sessions.values())
        return open_ones + self._opening[owner]

    def enter(self, owner: str, session: str | None, *, opens: bool) -> Visit:
        """Take a request.

        Args:
            owner: Whose it is.
            session: The session that it names.
            opens: Whether it may open one.

        Raises:
            TooManyError: It is one too many.
        """
        if self._requests[owner] >= self._requests_each:
            raise TooManyError("requests")
        if opens:
            self._forget_idle()
            in_all = len(self._sessions) + self._opening.total()
            if in_all >= self._sessions_in_all or self.sessions_of(owner) >= self._sessions_each:
                raise TooManyError("sessions")
            self._opening[owner] += 1
        self._requests[owner] += 1
        known = self._sessions.get(session) if session is not None else None
        if known is not None and known.owner != owner:
            known = None  # who names another's session changes nothing of it
        if known is not None:
            known.busy += 1
        return Visit(self, owner, session, opens=opens, known=known)

    def forget(self, session: str) -> None:
        """A session counts no more."""
        self._sessions.pop(session, None)

    def _forget_idle(self) -> None:
        oldest = self._clock() - self._idle
        for key in [k for k, s in self._sessions.items() if not s.busy and s.last <= oldest]:
            del self._sessions[key]

    def answered(self, visit: Visit, status: int, session: str | None) -> None:
        """A request of a visit has its answer."""
        if visit.opens and status < 400 and session is not None and session not in self._sessions:
            opened = _Session(visit.owner, 1, self._clock())
            self._sessions[session] = visit.known = opened
            self._opened(visit)

    def left(self, visit: Visit, *, ended: bool) -> None:
        """A visit is over; perhaps its session, too."""
        self._opened(visit)
        _less(self._requests, visit.owner)
        if visit.known is not None:
            visit.known.busy -= 1
            visit.known.last = self._clock()
        if ended and visit.known is not None and visit.session is not None:
            self._sessions.pop(visit.session, None)

    def _opened(self, visit: Visit) -> None:
        if visit.opens:
            visit.opens = False
            _less(self._opening, visit.owner)


class Visit:
    """One request under way."""

    __slots__ = ("_presence", "known", "opens", "owner", "session")

    def __init__(
        self,
        presence: Presence,
        owner: str,
        session: str | None,
        *,
        opens: bool,
        known: _Session | None,
    ) -> None:
        self._presence = presence
        self.owner = owner
        self.session = session
        self.opens = opens
        self.known = known

    def answered(self, status: int, session: str | None) -> None:
        """Take note of the answer's status and of the session that it names."""
        self._presence.answered(self, status, session)

    def leave(self, *, ended: bool) -> None:
        """The request is over; `ended` says that its session is, too."""
        self._presence.left(self, ended=ended)


def _less(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
