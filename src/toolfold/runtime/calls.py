"""A call on its way to a real tool, and what comes back.

Hooks, approvals and tools see these, never the bridge. Both are values: a hook that
changes a call or an output returns another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal

from toolfold.scope import EVERYTHING, Scope
from toolfold.tool import Json, Tool

__all__ = ["CallContext", "Output", "PendingCall", "Refusal", "current_call"]


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call to a real tool that is about to run."""

    tool: Tool
    """The tool, as the catalog of this turn holds it."""

    arguments: Mapping[str, Json]
    """Its arguments, checked where the tool was folded."""

    via: Literal["direct", "tool_call"] = "direct"
    """How the model called it."""

    id: str = ""
    """The model's id for the call."""

    agent: str = "agent"
    """Who calls: the agent's name, a subagent's behind its parent's."""

    recovered: bool = False
    """Whether the call was read out of plain text. A careful host asks about these."""

    def with_arguments(self, arguments: Mapping[str, Json]) -> PendingCall:
        """Return this call with other arguments."""
        return replace(self, arguments=dict(arguments))


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returned. A tool may return one itself, to say that it failed."""

    text: str
    is_error: bool = False
    value: Json = None
    """The value behind the text, where the tool returned one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that may not run, and what the model is told about it."""

    reason: str


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a running tool can see and do beside its arguments."""

    call: PendingCall
    report: Callable[[str, float | None], None] = field(repr=False)

    scope: Scope = EVERYTHING
    """What the caller may use."""

    stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Say how far the tool is; the activity feed shows it."""
        self.report(message, fraction)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more. A function in a thread should ask."""
        return self.stopped.is_set()


CURRENT: ContextVar[CallContext | None] = ContextVar("toolfold_call", default=None)


def current_call() -> CallContext:
    """Return the call that runs here.

    Example:
        def copy(path: str) -> str:
            current_call().progress("reading", 0.1)

    Raises:
        LookupError: No tool is running here.
    """
    context = CURRENT.get()
    if context is None:
        raise LookupError("no tool call is running here")
    return context
