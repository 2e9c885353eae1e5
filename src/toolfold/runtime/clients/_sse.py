"""Server-sent events: bytes in, events out, wherever the bytes were cut.

The reader is lenient where servers are careless (no blank line at the end, any kind of
line ending, an `error:` field) and firm about size: a line that never ends is an error.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EventReader", "EventTooLongError", "ServerSentEvent"]


class ServerSentEvent(NamedTuple):
    """One event of a stream."""

    name: str
    """What kind it is; empty where the server does not say."""

    data: str


class EventTooLongError(Exception):
    """An event is longer than the reader takes."""


class EventReader:
    """Turns the bytes of a stream into events.

    Args:
        limit: How many bytes one event may have.
    """

    __slots__ = ("_after_return", "_data", "_is_first", "_limit", "_name", "_pieces", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._data: list[str] = []
        self._name = ""
        self._size = 0
        self._is_first = True
        self._after_return = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that these bytes complete.

        Raises:
            EventTooLongError: One of them is longer than the limit.
        """
        if self._after_return and data:
            # The line feed of a pair that was cut in the middle ends no second line.
            data = data.removeprefix(b"\n")
            self._after_return = False
        self._after_return = self._after_return or data.endswith(b"\r")
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerSentEvent] = []
        for line in lines[:-1]:
            self._add(line)
            whole = b"".join(self._pieces)
            self._pieces.clear()
            if whole.startswith(b":"):
                self._size -= len(whole)  # a comment, to keep the connection alive
            else:
                self._line(whole.decode("utf-8", "replace"), events)
        self._add(lines[-1])
        return events

    def close(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream completes, if there is one."""
        return self.feed(b"\n\n")

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise EventTooLongError
        if piece:
            self._pieces.append(piece)

    def _line(self, line: str, events: list[ServerSentEvent]) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix("\ufeff")
        if not line:
            if self._data:
                events.append(ServerSentEvent(self._name, "\n".join(self._data)))
            self._data = []
            self._name = ""
            self._size = 0
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "error":  # as llama.cpp sends one
            self._name = "error"
            self._data.append(value)
