"""Server-sent events, written."""

from __future__ import annotations

from toolfold._json_values import parse, sendable
from toolfold.runtime.clients._endpoint import Piece
from toolfold.runtime.clients._exchange import ReplyReader
from toolfold.runtime.clients._failure import Failure
from toolfold.runtime.clients._sse import ServerSentEvent
from toolfold.runtime.model import Reply
from toolfold.tool import Json, is_object

__all__ = [
    "BROKE_OFF",
    "EVENT_LIMIT",
    "Beginning",
    "event",
    "is_taken",
    "kind_of",
    "place_in",
    "read_error",
    "read_event",
    "reply_of",
    "rewritten",
    "value_of",
]

BROKE_OFF = "the upstream's answer broke off before its end"
"""What a client is told of a stream that has no end."""

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


def value_of(body: bytes) -> Json:
    """Return the JSON value of a body, or None where it is none."""
    try:
        return parse(body)
    except (ValueError, RecursionError):
        return None


def is_taken(reader: ReplyReader, piece: Piece) -> bool:
    """Whether a reader can read a piece of a reply: no error, and of the shape that it should be.

    Readers trust the shapes of a provider's own events; who else sends some may send anything.
    """
    try:
        reader.read(piece)
    except (Failure, TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return False
    return True


def reply_of(reader: ReplyReader) -> Reply | None:
    """Return the reply that a reader has put together, or None where it is none."""
    try:
        return reader.reply()
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return None


def kind_of(came: ServerSentEvent, content: dict[str, Json]) -> str:
    """Return what kind of event it is."""
    kind = content.get("type")
    return kind if isinstance(kind, str) else came.name


def place_in(content: dict[str, Json], key: str) -> int | None:
    """Return the place that an event is about, where it says one."""
    place = content.get(key)
    return place if isinstance(place, int) else None


def read_event(came: ServerSentEvent) -> dict[str, Json] | None:
    """Return the object in an event, or None where there is none."""
    value = value_of(came.data.encode("utf-8", "surrogatepass"))
    return value if is_object(value) else None


def read_error(body: bytes) -> dict[str, Json]:
    """Return the error in a body, as its provider says it; empty where there is none."""
    value = value_of(body)
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
        return self.ended(data) if data else b""

    def ended(self, data: bytes) -> bytes:
        """Return the last data, and before it what waited for something to follow."""
        if self._is_over:
            return data
        self._is_over = True
        return b"".join((*self._held, data))
