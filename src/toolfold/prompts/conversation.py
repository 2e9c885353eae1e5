"""What a conversation says to its model by itself: notes, corrections, what stands for the old."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolfold.prompts.bridge_tools import DEFAULT_NAMES, BridgeNames
from toolfold.prompts.wording import quoted

__all__ = [
    "DEFINED_BELOW",
    "LEFT_OUT",
    "NOT_AGAIN",
    "SAID_NOTHING",
    "SEARCHED_ENOUGH",
    "again",
    "call_in_prose",
    "found_earlier",
    "just_done",
    "may_help",
    "no_such_call",
    "result_earlier",
    "unreadable_call",
]

DEFINED_BELOW = "(The tools that were found are defined below. Go on.)"
"""What closes a user's turn before definitions that come in with the conversation."""

SAID_NOTHING = "(Your last reply was empty. Answer in words, or call a tool.)"
"""What a model is told that ended without a word and without a call."""

SEARCHED_ENOUGH = "I searched several times for a tool that fits and found none that I could use."
"""What a client reads where its model did nothing but search until it was stopped."""


def unreadable_call(name: str, *, exists: bool | None = None) -> str:
    """Return the correction of a message that was meant as a call and could not be run.

    Args:
        name: The name in it, or an empty text.
        exists: Whether there is such a tool, where that is known.
    """
    if name and exists:
        return (
            f"Nothing was run: your call of {quoted(name)} cannot be read. Make it again, with one "
            "JSON object of arguments."
        )
    if name and exists is False:
        return (
            f"Nothing was run: there is no tool {quoted(name)}. Call a tool by its exact name, or "
            "answer in plain words."
        )
    shown = f" of {quoted(name)}" if name else ""
    return (
        f"Nothing was run: your message was the text of a call{shown}, and there is no such "
        "tool, or the call cannot be read. Call a tool by its exact name, with one JSON object "
        "of arguments; or answer in plain words."
    )


def call_in_prose(name: str) -> str:
    """Return the correction of a message that holds a call's JSON among words."""
    return (
        f"Nothing was run: your message only shows a call of {quoted(name)}. If you mean it, make "
        "it as a tool call, without words around it; if not, answer in plain words."
    )


def no_such_call(name: str, signature: str) -> str:
    """Return the correction of a message that was meant as a call of what there is not.

    Args:
        name: The name in it.
        signature: How the tool is called that it most likely means.
    """
    return (
        f"Nothing was run: there is no tool {quoted(name)}. If this one fits, call it now, by its "
        f"exact name: {signature}"
    )


def may_help(
    signatures: Iterable[str],
    names: BridgeNames = DEFAULT_NAMES,
    *,
    is_weak: bool = False,
    listed: Sequence[str] = (),
) -> str:
    """Return the note behind a user's message that names the tools that may help.

    Args:
        signatures: How the folded ones are called.
        names: What the bridge's tools are called.
        is_weak: Whether even the likeliest is probably none.
        listed: Open tools that come before them.
    """
    first = f": first {' and '.join(listed)}, called directly; then these" if listed else ""
    lead = f"{'No close match; nearest tools' if is_weak else 'Tools that may help'}{first}"
    return f"({lead}, to be run with {names.call}: {'; '.join(signatures)})"


def found_earlier(names: Sequence[str], at_most: int) -> str:
    """Return what stands for an older discovery: what it found, on one line."""
    if not names:
        return "(An earlier answer, shortened.)"
    more = f" and {len(names) - at_most:,} more" if len(names) > at_most else ""
    return f"(Found earlier, still there: {', '.join(names[:at_most])}{more}.)"


NOT_AGAIN = "Not run again: this very call has just been made, and it worked."
"""What a call comes to that only repeats the one before."""


def just_done(names: Sequence[str]) -> str:
    """Return the note behind a reply that only repeats the calls which have just worked."""
    has = "has" if len(names) == 1 else "have"
    return (
        f"It is done: {' and '.join(names)} {has} run. Do not call it again. Say in one sentence "
        "what was done, or go on with what is left."
    )


LEFT_OUT = "(Left out.)"
"""What stands for a discovery so old that not even its line is kept."""


def result_earlier(size: int) -> str:
    """Return what stands for an older result of a tool."""
    return f"(An earlier result of {size:,} characters, left out. Call the tool again if needed.)"


def again(times: int) -> str:
    """Foot of a result that came again and again."""
    return (
        f"(You have made the same calls {times} times. Do something else, or answer with what "
        "you have.)"
    )
