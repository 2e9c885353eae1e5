"""The smallest host there can be: it keeps a calendar in memory and runs what is called.

Enough to show a call that is validated and really run. A host of yours would hold the
servers behind the other tools too.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolfold.answer import Invocation
from toolfold.tool import Json

__all__ = ["Calendar"]


class Calendar:
    """A calendar in memory."""

    def __init__(self) -> None:
        self.events: dict[str, Mapping[str, Json]] = {}

    def run(self, invocation: Invocation) -> dict[str, Json]:
        """Run one of the calendar's tools and return its result."""
        match invocation.tool.name:
            case "create_calendar_event":
                key = f"evt_{len(self.events) + 1}"
                self.events[key] = invocation.arguments
                return {"event_id": key, "status": "confirmed"}
            case "list_calendar_events":
                return {"events": [{"event_id": key, **e} for key, e in self.events.items()]}
            case name:
                return {"error": f"{name} is not connected in this demo"}
