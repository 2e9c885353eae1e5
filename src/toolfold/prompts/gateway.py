"""What a model reads from the gateway itself, beside the bridge's own words.

Used as `from toolfold.prompts import gateway as words`: some names mean in a gateway what
another text means in an agent.
"""

from __future__ import annotations

from toolfold.prompts.calls import DENIED

__all__ = ["declined", "question", "refused", "server_down", "timed_out"]

INSTRUCTIONS = (
    "Tools of several servers, named server__tool. If tool_search is listed, most of them are "
    "not: before you say that something cannot be done, look for a tool with it, and run what "
    "it finds as its answer says. Call listed tools directly."
)
"""What a client may put into its system prompt."""


def server_down(tool: str, server: str, reason: str, *, lost: bool) -> str:
    """Return the answer to a call whose server did not take it, or died over it."""
    effects = " It may have had effects." if lost else " It was not run."
    return (
        f"{tool} failed: the server {server!r} {reason}.{effects} The server is being started "
        "again: try once more in a few seconds, or go on without it."
    )


def timed_out(tool: str, server: str, seconds: float) -> str:
    """Return the answer to a call that took too long."""
    return (
        f"{tool} did not end within {seconds:g} s and was given up. It may have had effects. "
        f"The server {server!r} may be busy: ask it for less."
    )


def refused(tool: str) -> str:
    """Return the answer to a destructive call where such are refused."""
    return f"{tool} was not run: it may destroy something, and this gateway refuses such calls."


def held_back(tool: str) -> str:
    """Return the answer to a call of a tool that changed when its server was started."""
    return (
        f"{tool} was not run: its server has changed what it says of it, and a person must look "
        "at it first, with `toolfold trust`. Tell the user."
    )


def cannot_ask(tool: str) -> str:
    """Return the answer to a destructive call of a client that cannot ask its user."""
    return (
        f"{tool} was not run: it may destroy something, so the user must be asked, and this "
        "client cannot ask. Tell the user."
    )


def declined(tool: str) -> str:
    """Return the answer to a destructive call that the user did not want."""
    return f"{tool} was not run. {DENIED}"


def question(tool: str, server: str, arguments: str) -> str:
    """Return what the user is asked before a destructive call."""
    return f"Run {tool} of the server {server!r}? It may destroy something. Arguments: {arguments}"
