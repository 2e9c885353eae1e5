"""Server-sent events, written."""

from __future__ import annotations

from toolfold._json_values import parse, sendable
from toolfold.runtime.clients._sse import EventReader, EventTooLongError, ServerSentEvent
from toolfold.tool import Json, is_object

__all__ = [
    "EVENT_LIMIT",
    "Beginning",
    "EventReader",
    "EventTooLongError",
    "event",
    "read_error",
    "read_event",
    "rewritten",
]

EVENT_LIMIT = 64 * 1024 * 1024
"""How many bytes one event of an upstream may have."""


def event(data: Json, name: str = "") -> bytes:
    """Return an event that holds a JSON value."""
    named = b"event: " + name.encode() + b"\n" if name else b""
    return named + b"data: " + sendable(data) + b"\n\n"


def rewritten(came: ServerSentEvent) -> bytes:
    """Return an event as it came."""
    named = f"event: {came.name}\n" if came.name else ""
    lines = "".join(f"data: {line}\n" for line in came.data.split("\n"))
    return f"{named}{lines}\n".encode("utf-8", "replace")


def read_event(came: ServerSentEvent) -> dict[str, Json] | None:
    """Return the object in an event, or None where there is none."""
    try:
        value = parse(came.data)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def read_error(body: bytes) -> dict[str, Json]:
    """Return the error in a body, as its provider says it; empty where there is none."""
    try:
        value = parse(body)
    except (ValueError, RecursionError):
        return {}
    error = value.get("error") if is_object(value) else None
    return error if is_object(error) and isinstance(error.get("message"), str) else {}


class Beginning:
    """The start of a stream, held until something follows: until then, an error has a status."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._is_over = False

    def held(self, data: bytes) -> bytes:
        """Return what goes out at once of an event that says nothing yet."""
        if self._is_over:
            return data
        self._held.append(data)
        return b""

    def before(self, data: bytes) -> bytes:
        """Return data behind what it follows."""
        if self._is_over or not data:
            return data
        self._is_over = True
        return b"".join((*self._held, data))
