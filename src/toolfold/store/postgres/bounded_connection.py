"""A connection that waits for no answer for ever.

Timeouts of statements are the server's own. One that stands still keeps none of them, and its
machine still acknowledges what it is sent: a stuck disk, a paused process, a commit that waits
for a standby which is gone. Whoever waits for too long takes it that the connection is lost.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from psycopg import Connection, OperationalError

__all__ = ["BoundedConnection"]


class _SilentError(Exception):
    """Nothing came in time."""


class BoundedConnection(Connection[Any]):
    """A connection of psycopg's that is closed where an answer takes too long."""

    patience = 10.0
    """How long one answer is waited for, in seconds."""

    def wait(self, gen: Any, *how: Any, **more: Any) -> Any:
        """Wait for an answer.

        Raises:
            OperationalError: It takes too long; the connection is broken.
        """
        try:
            return super().wait(_within(gen, self.patience), *how, **more)
        except _SilentError:
            self.pgconn.finish()
            raise OperationalError(f"no answer came in {self.patience:g} s") from None


def _within(steps: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Go through the steps of an exchange as they are, for so long."""
    end = time.monotonic() + seconds
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted  # falsy, a few times a second, where nothing has come
            if not ready and time.monotonic() > end:
                raise _SilentError
            wanted = steps.send(ready)
    except StopIteration as done:
        return done.value
    finally:
        steps.close()
