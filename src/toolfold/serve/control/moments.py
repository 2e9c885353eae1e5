"""Moments as a gateway tells them: in UTC, as ISO 8601 writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

__all__ = ["moment"]


def moment(seconds: float, precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """Return a moment that is given in seconds since 1970."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision)
    return text.replace("+00:00", "Z")
