"""What became of a call: why it did not run, how it ended, what of its result is missing."""

from __future__ import annotations

from collections.abc import Sequence

from toolfold.prompts.bridge_tools import DEFAULT_NAMES, BridgeNames
from toolfold.prompts.wording import did_you_mean, quoted

__all__ = [
    "CALL_NAME_MISSING",
    "CANCELLED",
    "CUT_OFF",
    "DELEGATED_TOO_DEEP",
    "DENIED",
    "HOOK_FAILED",
    "NOBODY_TO_ASK",
    "NOT_STARTED",
    "NO_OUTPUT",
    "STOOD_IN_TEXT",
    "TASK",
    "bridge_in_bridge",
    "call_directly",
    "failed",
    "gave_up",
    "not_available",
    "not_connected",
    "refused",
    "result_cut",
    "timed_out",
    "withheld",
]

CALL_NAME_MISSING = 'Which tool? Give its name, as {"name": "…", "arguments": {…}}.'
CUT_OFF = "the call was cut off"
CANCELLED = "Cancelled before it ended. It may have had effects."
DENIED = "The user said no. Do not try it again; ask the user, or go on without it."
HOOK_FAILED = "The check of this call failed."
NOBODY_TO_ASK = "The user must be asked first, and cannot be asked here. Go on without it; say so."
NOT_STARTED = "Cancelled before it began."
STOOD_IN_TEXT = (
    "It stood in your text, where it may be a quotation. If you mean it, make it as a tool call."
)
NO_OUTPUT = "Done. It returned nothing."
DELEGATED_TOO_DEEP = "Tasks are delegated too deep. Do this one yourself."
TASK = "All it must know"
"""What an agent that is a tool says about its one parameter."""


def call_directly(name: str) -> str:
    """Return the answer about a core tool."""
    return f"{name} is one of your listed tools: call it directly."


def not_available(name: str, near: Sequence[str]) -> str:
    """Return the answer about a name that is unknown or out of scope: both read the same."""
    shown = f"{quoted(name)} is not available in this session."
    return f"{shown} {did_you_mean(near)}" if near else shown


def bridge_in_bridge(name: str, names: BridgeNames = DEFAULT_NAMES) -> str:
    """Return the answer to a bridge tool inside `tool_call`."""
    call = names.call
    if name == call:
        return f"{call} cannot run itself. Give it the name of the tool that you want to run."
    return f"{call} cannot run {name}: call {name} directly."


def not_connected(name: str) -> str:
    """Return the answer to a call of a tool of which only the definition is there."""
    return f"{name} is not connected here: only its definition is known. Say so."


def refused(name: str, reason: str) -> str:
    """Return the answer to a call that the host did not let run."""
    return f"{name} was not run. {reason}"


def withheld(name: str) -> str:
    """Return the answer to a call that ran, and whose result a hook could not check."""
    return f"{name} ran, but the check of its result failed. It may have had effects."


def failed(name: str, kind: str, reason: str) -> str:
    """Return the answer to a call whose tool raised."""
    return f"{name} failed: {kind}{f': {reason}' if reason else ''}"


def timed_out(name: str, seconds: float) -> str:
    """Return the answer to a call that took too long."""
    return f"{name} did not end within {seconds:g} s and was stopped. It may have had effects."


def gave_up(name: str) -> str:
    """Return the answer to a call that cancelled itself."""
    return f"{name} stopped by itself without a result."


def result_cut(shown: int, whole: int) -> str:
    """Foot of a result that was too long."""
    return f"(Cut: the first {shown:,} of {whole:,} characters. Ask for less, or for a part.)"
