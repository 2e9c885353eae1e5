"""Text that may yet be a call, held back event by event until that is known."""

from __future__ import annotations

from toolfold.runtime._replies import ReplyText
from toolfold.runtime.clients._sse import ServerSentEvent
from toolfold.tool import Json

__all__ = ["HeldText"]

Held = tuple[ServerSentEvent, dict[str, Json]]


class HeldText:
    """The text of a round: held until its beginning is prose, and shown from then on."""

    def __init__(self) -> None:
        self.places: set[Json] = set()
        """The places of the parts of the answer that are text."""
        self._text = ReplyText(self._show)
        self._events: list[Held] = []
        self._is_prose = False

    def add(self, text: str, held: Held) -> list[Held]:
        """Take an event and the text in it; return the events that may go out now."""
        self._events.append(held)
        if text and not self._is_prose:
            self._text.add(text)
        return self.released() if self._is_prose else []

    def released(self) -> list[Held]:
        """Return the events that are held."""
        events, self._events = self._events, []
        return events

    def _show(self, text: str) -> None:
        self._is_prose = True
