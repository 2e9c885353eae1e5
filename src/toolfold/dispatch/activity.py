"""The activity feed: what really runs, for people and logs, made from the records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.dispatch.records import CallRecord, SearchRecord, Silent
from toolfold.sources.calls import Via
from toolfold.tool import Json

__all__ = ["Activity", "ActivityFeed", "Listener"]

_log = logging.getLogger(__name__)

_SHOWN = 200

ActivityKind: TypeAlias = Literal[
    "searched", "rejected", "started", "progress", "finished", "refused"
]


@dataclass(frozen=True, slots=True)
class Activity:
    """One thing that happened to a call."""

    kind: ActivityKind
    """A call is rejected for a mistake in it, refused where the host did not let it run."""

    tool: str
    """The real tool's name; where there is none, the name that was called."""

    call_id: str = ""
    agent: str = "agent"
    toolset: str | None = None
    via: Via | Literal["resource", "prompt"] = "direct"

    place: int = 0
    """Which call of the turn it is, from 0; ids may be missing or double."""

    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The tool's arguments."""

    seconds: float = 0.0
    """How long it took; 0 before it ended."""

    size: int = 0
    """The length of the result, in characters, before it was cut."""

    is_error: bool = False
    message: str = ""
    """Of progress, what the tool said; of a refusal or rejection, why; of a search, what was
    asked."""

    fraction: float | None = None
    """Of progress: how far, from 0 to 1."""

    found: tuple[str, ...] = ()
    """Of a search: the tools it found."""


Listener: TypeAlias = Callable[[Activity], None]
"""Hears of every activity. What it raises is logged, and changes nothing."""


class ActivityFeed(Silent):
    """Turns records into activities for a listener.

    Args:
        listener: Who hears of them.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def answered(self, record: SearchRecord) -> None:
        """A search, a describe, or a call that came to no tool."""
        asked = record.arguments if isinstance(record.arguments, str) else record.query
        meant = record.meant
        self._tell(
            Activity(
                "searched" if record.error is None else "rejected",
                record.name if meant is None else meant.name,
                record.call_id,
                record.principal,
                None if meant is None else meant.toolset_name,
                "tool_call" if record.role == prompts.TOOL_CALL else "direct",
                record.position,
                is_error=record.error is not None,
                message=one_line(asked, _SHOWN) if record.error is None else record.error,
                found=record.found,
            )
        )

    def started(self, record: CallRecord) -> None:
        """A call begins."""
        self._tell(_activity(record, "started"))

    def progressed(self, record: CallRecord, message: str, fraction: float | None) -> None:
        """A call says how far it is."""
        self._tell(_activity(record, "progress", message=message, fraction=fraction))

    def called(self, record: CallRecord) -> None:
        """A call is over."""
        if record.outcome == "refused":
            refused = _activity(record, "refused", message=record.error or "", is_error=True)
            self._tell(refused)
            return
        if not record.started:
            return  # given up before anything was told of it
        text = record.output.text if record.output is not None else ""
        is_error = record.output is not None and record.output.is_error
        self._tell(
            _activity(
                record,
                "finished",
                seconds=record.seconds,
                size=0 if record.outcome == "cancelled" else len(text),
                is_error=is_error,
                message=one_line(text, _SHOWN) if is_error else "",
            )
        )

    def _tell(self, activity: Activity) -> None:
        try:
            self._listener(activity)
        except Exception:
            _log.exception("an activity listener failed")


def _activity(
    record: CallRecord,
    kind: ActivityKind,
    *,
    seconds: float = 0.0,
    size: int = 0,
    is_error: bool = False,
    message: str = "",
    fraction: float | None = None,
) -> Activity:
    return Activity(
        kind,
        record.tool,
        record.call_id,
        record.principal,
        record.toolset,
        record.via,
        record.position,
        record.arguments or {},
        seconds,
        size,
        is_error,
        message,
        fraction,
    )
