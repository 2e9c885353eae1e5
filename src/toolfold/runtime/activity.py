"""The activity feed: what really runs, for people and logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolfold.tool import Json

__all__ = ["Activity", "Listener"]


@dataclass(frozen=True, slots=True)
class Activity:
    """One thing that happened to a call."""

    kind: Literal["searched", "rejected", "started", "progress", "finished", "refused"]
    """A call is rejected that came to no tool, refused where the host did not let it run."""

    tool: str
    """The real tool's name; where there is none, the name that was called."""

    call_id: str = ""
    agent: str = "agent"
    toolset: str | None = None
    via: Literal["direct", "tool_call"] = "direct"

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
