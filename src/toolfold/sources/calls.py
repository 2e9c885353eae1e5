"""A call on its way to a real tool, and what comes back.

Hooks, approvals and sources see these, never the bridge. All are values: a hook that
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

__all__ = ["CallClock", "CallContext", "Output", "PendingCall", "Refusal", "Via", "current_call"]

Via = Literal["direct", "tool_call", "revealed"]
"""How a call came: by the tool's own name, through the bridge, or after it was revealed."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call to a real tool that is about to run."""

    tool: Tool
    """The tool, as the catalog of this turn holds it."""

    arguments: Mapping[str, Json]
    """Its arguments, checked where the tool was folded."""

    via: Via = "direct"
    """How the model called it."""

    id: str = ""
    """The model's id for the call."""

    agent: str = "agent"
    """Who calls: the agent's name, a subagent's behind its parent's; a gateway's principal."""

    recovered: bool = False
    """Whether the call was read out of plain text, which may be a quotation."""

    session: str | None = None
    """The session it came in, where the door has sessions."""

    position: int = 0
    """Which call of the turn it is, from 0; ids may be missing or double."""

    doubtful: bool = False
    """Whether it was read out of plain text and its tool is not known to be read-only. It runs
    only where somebody says yes: `Approvals` asks, a hook of the host's own returns
    `call.approved()`."""

    tenant: str = "default"
    """Whose agent it is, among those who share a deployment."""

    client: object = field(default=None, repr=False, compare=False)
    """The client behind the door, for sources and hooks that can ask it something."""

    def with_arguments(self, arguments: Mapping[str, Json]) -> PendingCall:
        """Return this call with other arguments."""
        return replace(self, arguments=dict(arguments))

    def approved(self) -> PendingCall:
        """Return this call as one to which somebody said yes."""
        return replace(self, doubtful=False)


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returned. A tool may return one itself, to say that it failed."""

    text: str
    is_error: bool = False
    value: Json = None
    """The value behind the text, where the tool returned one."""

    raw: dict[str, Json] | None = field(default=None, repr=False)
    """The answer as it came over the wire, where it came over one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that may not run, and what the model is told about it."""

    reason: str


class CallClock:
    """The time that a call has. It stands still while a person is asked."""

    def pause(self) -> None:
        """Let it stand still."""

    def go_on(self) -> None:
        """Start it again, with all its time, once for each pause."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a running tool can see and do beside its arguments."""

    call: PendingCall
    report: Callable[[str, float | None], None] = field(repr=False)

    scope: Scope = EVERYTHING
    """What the caller may use."""

    stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    clock: CallClock = field(default_factory=CallClock, repr=False)
    """Its deadline, for who must wait for a person."""

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
