"""How much one caller may ask for: how often, and how large.

Both limits are values of their own, without a clock or a socket in them, so that their
laws can be tested. Of a `Bucket`: in no stretch of `w` seconds are more than
`burst + rate * w / 60` requests admitted. Of `read_within`: no more than `limit` bytes of
a body are held.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = [
    "Bucket",
    "Message",
    "Rates",
    "Receive",
    "SharedRates",
    "TooLargeError",
    "burst_of",
    "read_within",
]

Message = MutableMapping[str, Any]
"""One event of ASGI."""

Receive = Callable[[], Awaitable[Message]]
"""Where ASGI's events come from."""

Clock = Callable[[], int]
"""Nanoseconds from some moment on; never goes back."""

_MINUTE = 60_000_000_000
_LEAST_BURST = 10
_BUCKETS = 10_000


class TooLargeError(Exception):
    """A body is longer than the limit."""


class SharedRates(Protocol):
    """Buckets that several replicas draw from."""

    async def take(self, name: str, per_minute: int, burst: int) -> int | None:
        """Admit a request and return 0, or return the nanoseconds until one is admitted.

        None says that it cannot be counted now, and is to be counted here.
        """
        ...


def burst_of(per_minute: int) -> int:
    """Return how many requests are admitted at once, after a rest.

    It is what ten seconds bring, and ten at least (all of it, where a minute brings less):
    opening a session takes a handful of requests.
    """
    return max(min(per_minute, _LEAST_BURST), per_minute // 6)


@dataclass(slots=True)
class Bucket:
    """A token bucket, kept as the one moment at which it would be full again.

    Example:
        bucket = Bucket(per_minute=60, burst=2)
        assert [bucket.take(0), bucket.take(0)] == [0, 0]
        assert bucket.take(0) == 1_000_000_000
        assert bucket.take(1_000_000_000) == 0
    """

    per_minute: int
    """Requests that are admitted a minute, on and on."""

    burst: int
    """Requests that are admitted at once, after a rest."""

    _full: int | None = field(default=None, init=False)

    def take(self, now: int) -> int:
        """Admit a request and return 0, or return the nanoseconds until one is admitted."""
        # Whole nanoseconds, rounded up: a sum of fractions would drift over the bound.
        interval = -(-_MINUTE // self.per_minute)
        full = now if self._full is None else max(self._full, now)
        wait = full - now - (self.burst - 1) * interval
        if wait > 0:
            return wait
        self._full = full + interval
        return 0

    def is_full(self, now: int) -> bool:
        """Whether it is as it was at first."""
        return self._full is None or self._full <= now


class Rates:
    """A bucket for each principal that has a limit.

    Args:
        clock: Where the time comes from.
    """

    def __init__(self, clock: Clock = time.monotonic_ns) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    @property
    def kept(self) -> int:
        """How many are kept."""
        return len(self._buckets)

    def take(self, name: str, per_minute: int) -> int:
        """Admit a request and return 0, or return the nanoseconds until one is admitted."""
        if per_minute <= 0:
            return 0
        bucket = self._buckets.get(name)
        if bucket is None and len(self._buckets) >= _BUCKETS:
            self._forget_full()
        if bucket is None or bucket.per_minute != per_minute:
            bucket = self._buckets[name] = Bucket(per_minute, burst_of(per_minute))
        return bucket.take(self._clock())

    def _forget_full(self) -> None:
        """Let go of the buckets that are as new; there may be more people than tokens."""
        now = self._clock()
        kept = {name: bucket for name, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._buckets = kept


async def read_within(receive: Receive, limit: int, declared: int | None) -> Receive:
    """Read a whole body and return a `receive` that gives it again.

    The application reads it whole as well, and reading first is what lets a body without
    a declared length be refused before anything is answered.

    Raises:
        TooLargeError: The body is longer than the limit.
    """
    if declared is not None and declared > limit:
        raise TooLargeError
    messages: list[Message] = []
    size = 0
    more = True
    while more:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            break
        size += len(message.get("body", b""))
        if size > limit:
            raise TooLargeError
        more = message.get("more_body", False)
    messages.reverse()

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
