"""A request that is turned away at the door: with which status, why, and with which headers."""

from __future__ import annotations

__all__ = ["RefusedError"]


class RefusedError(Exception):
    """A request is turned away.

    Args:
        status: The status of the answer.
        reason: Why, in one word, for the metrics.
        text: Why, for the client and the log.
        headers: More headers of the answer.
    """

    def __init__(
        self, status: int, reason: str, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.text = text
        self.headers = headers
