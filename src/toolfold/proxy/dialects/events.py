"""Server-sent events, written."""

from __future__ import annotations

from toolfold._json_values import parse, sendable
from toolfold.runtime.clients._sse import EventReader, EventTooLongError, ServerSentEvent
from toolfold.tool import Json, is_object

__all__ = ["EVENT_LIMIT", "EventReader", "EventTooLongError", "event", "read_event", "rewritten"]

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
