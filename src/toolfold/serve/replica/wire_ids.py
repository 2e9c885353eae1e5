"""Ids on the wire that say which replica they are of.

What a replica asks a client is numbered, what it sends on a stream has an id, and a call that
waits for its client has a token: whoever of the replicas gets them back sees whose they are.
"""

from __future__ import annotations

import secrets
import uuid
from typing import NamedTuple
from urllib.parse import quote, unquote

from toolfold.tool import Json

__all__ = ["EventPlace", "event_place", "first_request_id", "is_asked_by"]

_COUNTED = 21
"""So many bits of a number count what one replica asks in one session."""

_REPLICA = (1 << 31) - 1
_LONGEST_STREAM = 200


def first_request_id(replica: uuid.UUID) -> int:
    """Return a number from which a replica counts what it asks a client.

    Every number that follows is exact in a JavaScript client, too. A replica that leaves a
    session and comes back to it begins elsewhere.
    """
    start = secrets.randbelow(1 << (_COUNTED - 1))
    return ((replica.int & _REPLICA) << _COUNTED) + start


def is_asked_by(number: Json, replica: uuid.UUID) -> bool:
    """Whether a question that a client answers was asked by a replica."""
    if isinstance(number, str) and number.isascii() and number.isdecimal() and len(number) < 20:
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        return False
    return number >> _COUNTED == replica.int & _REPLICA


class EventPlace(NamedTuple):
    """Where an event of a session was sent."""

    replica: uuid.UUID
    number: int
    stream: str
    """The stream, by the request that it belongs to; empty where that is too long to say."""

    @property
    def id(self) -> str:
        """It, for the client."""
        stream = quote(self.stream, safe="", errors="replace")
        named = stream if len(stream) <= _LONGEST_STREAM else ""
        return f"{self.replica.hex}.{self.number}.{named}"


def event_place(event: str) -> EventPlace | None:
    """Return where an event was sent that a client comes back with; None where it is none."""
    replica, _, rest = event.partition(".")
    number, _, stream = rest.partition(".")
    is_number = number.isascii() and number.isdecimal() and len(number) < 20
    if len(replica) != 32 or not is_number or len(stream) > _LONGEST_STREAM:
        return None
    try:
        return EventPlace(uuid.UUID(hex=replica), int(number), unquote(stream))
    except ValueError:
        return None
