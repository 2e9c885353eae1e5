"""What passes the proxy, written down with its secrets taken out."""

from __future__ import annotations

from toolfold.dispatch.records import RequestRecord

__all__ = ["Traffic"]


class Traffic:
    """A folder of requests and answers."""

    def add(self, record: RequestRecord, request: bytes, answer: bytes) -> None:
        """Write one request and its answer down."""
