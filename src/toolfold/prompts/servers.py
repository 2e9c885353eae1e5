"""What a model reads where MCP servers are: one is down, has changed, must be asked about."""

from __future__ import annotations

import math
from collections.abc import Sequence

from toolfold._bounds import one_line
from toolfold.prompts.bridge_tools import bridge_names
from toolfold.prompts.wording import plural, source_name

__all__ = [
    "ABSENT_AT_MOST",
    "CANNOT_ASK",
    "FAILED_WORDLESS",
    "GATEWAY_REFUSES",
    "HELD_BACK",
    "INSTRUCTIONS",
    "NAMED_INSTRUCTIONS",
    "NOT_WRITTEN_DOWN",
    "REPLICA_GONE",
    "RESULT_NOT_KEPT",
    "STOPPED",
    "STOPPING",
    "absent_in_short",
    "absent_source",
    "absent_sources",
    "content_left_out",
    "content_link",
    "content_too_long",
    "instructions",
    "more_left_out",
    "question",
    "server_down",
    "server_timed_out",
    "servers_question",
    "structured_left_out",
]

INSTRUCTIONS = (
    "Tools of several servers, named server__tool. If tool_search is listed, most of them are "
    "not: before you say that something cannot be done, look for a tool with it, and run what "
    "it finds as its answer says. Call listed tools directly."
)
"""What a client may put into its system prompt."""

NAMED_INSTRUCTIONS = (
    "Tools of several servers, named server__tool. If tool_search is listed, most of them are "
    "behind it, and those that its description names need no search: before you say that "
    "something cannot be done, look there, or search with it, and run what you find as it says. "
    "Call your other tools directly."
)
"""The same where `tool_search` names the tools behind it."""


def instructions(prefix: str, listing: str) -> str:
    """Return what a client may put into its system prompt.

    Args:
        prefix: What the names of the bridge's tools begin with.
        listing: What the search tool's description lists, as the settings say it.
    """
    chosen = NAMED_INSTRUCTIONS if listing == "names" else INSTRUCTIONS
    return bridge_names(prefix).said(chosen)


HELD_BACK = (
    "Its server has changed what it says of it, and a person must look at it first, with "
    "`toolfold trust`. Tell the user."
)
GATEWAY_REFUSES = "It may destroy something, and this gateway refuses such calls."
CANNOT_ASK = (
    "It may destroy something, so the user must be asked, and this client cannot ask. "
    "Tell the user."
)

ABSENT_AT_MOST = 5
"""How many sources that are not there one answer names."""

_CAUSE_LIMIT = 160

FAILED_WORDLESS = "It failed, and its server does not say why."

STOPPING = (
    "Not run: the gateway is stopping and takes no new calls. Try once more when it is back, or "
    "go on without it."
)
STOPPED = (
    "The gateway was stopped before this ended. It may have had effects: look what has become of "
    "it before you try once more."
)
NOT_WRITTEN_DOWN = (
    "It was not run: what the gateways share could not be reached for a while, and by now it may "
    "have been asked of another. Try once more."
)
REPLICA_GONE = (
    "The gateway that worked on this is gone, and it is not known whether it ran: look what has "
    "become of it before you try once more."
)
RESULT_NOT_KEPT = (
    "It ran, and its result was lost with the connection: look what has become of it before you "
    "try once more."
)


def question(tool: str, server: str | None, arguments: str) -> str:
    """Return what the user is asked before a destructive call; of a function, without a server."""
    of = "" if server is None else f" of the server {server!r}"
    return f"Run {tool}{of}? It may destroy something. Arguments: {arguments}"


def servers_question(server: str, lines: Sequence[str]) -> str:
    """Return what a server asks the user, so that nobody takes it for somebody else's question."""
    if len(lines) < 2:
        return f"The server {server!r} asks: {''.join(lines)}"
    return "\n".join([f"The server {server!r} asks:", *(f"> {line}" for line in lines)])


def server_down(
    tool: str, server: str, reason: str, *, lost: bool, retry_in: float | None = None
) -> str:
    """Return the answer to a call whose server did not take it, or died over it.

    Args:
        tool: What was called.
        server: Whose it is.
        reason: Why it was not run, or not to its end, as a clause.
        lost: Whether it had been sent.
        retry_in: In how many seconds the server is tried again, infinity for never; None where
            it is being started again as things stand.
    """
    effects = " It may have had effects." if lost else " It was not run."
    if retry_in is None:
        when, next_step = "", "The server is being started again: try once more in a few seconds"
    elif math.isinf(retry_in):
        when, next_step = "", "Tell the user"
    else:
        when, next_step = _tried_again(retry_in), "Try once more then"
    failed = f"{tool} failed: the server {server!r} {reason}{when}.{effects}"
    return f"{failed} {next_step}, or go on without it."


def absent_source(name: str, cause: str | None, retry_in: float | None) -> str:
    """Say that a source is not there, why, and when it is tried again.

    Args:
        name: The source.
        cause: Why, as a clause; None while it starts for the first time.
        retry_in: In how many seconds it is tried again; 0 where it is being tried, None for never.
    """
    shown = source_name(name)
    if cause is None:
        return f"{shown} is still starting."
    when = "" if retry_in is None else _tried_again(retry_in)
    return f"{shown} is not running: {one_line(cause, _CAUSE_LIMIT)}{when}."


def absent_sources(sentences: Sequence[str], more: int, *, starting: bool) -> str:
    """Return what an answer says of sources that are not there, and what to do.

    Args:
        sentences: One for each that is named.
        more: How many are not named.
        starting: Whether all of them are still starting.
    """
    others = [f"So it is with {plural(more, 'more source')}."] if more else []
    whose = "Its tools" if len(sentences) + more == 1 else "Their tools"
    next_step = (
        f"{whose} are not there yet: try again in a moment."
        if starting
        else f"{whose} cannot be run now: tell the user where they are needed."
    )
    return " ".join([*sentences, *others, next_step])


def absent_in_short(count: int) -> str:
    """Return what is said of sources that are not there where there is room for no more."""
    return f"({plural(count, 'source')} not running.)"


def _tried_again(seconds: float) -> str:
    if seconds <= 0:
        return "; it is being tried again"
    return f"; it is tried again in {math.ceil(seconds)} s"


def server_timed_out(tool: str, server: str, seconds: float) -> str:
    """Return the answer to a call of a server's tool that took too long."""
    return (
        f"{tool} did not end within {seconds:g} s and was given up. It may have had effects. "
        f"The server {server!r} may be busy: ask it for less."
    )


def content_left_out(kind: str, uri: str = "", size: int = 0) -> str:
    """Return what stands for content that is no text.

    Args:
        kind: What it is: its media type, where it has one.
        uri: Where it is, if it is anywhere.
        size: Its length in bytes, about; 0 where nobody knows.
    """
    where = f" {uri}" if uri else ""
    long = f", {_bytes(size)}" if size else ""
    return f"[{kind}{where}{long}: not shown, it is no text]"


def content_too_long(kind: str, uri: str, size: int) -> str:
    """Return what stands for content that is longer than the gateway passes on.

    Args:
        kind: What it is: its media type, where it has one.
        uri: Where it is, if it is anywhere.
        size: Its length in bytes, about.
    """
    where = f" {uri}" if uri else ""
    return f"[{kind}{where}, {_bytes(size)}: left out, it is too long. Ask for less.]"


def structured_left_out(size: int, limit: int) -> str:
    """Foot of a result whose structured content is longer than the gateway passes on."""
    return (
        f"(Left out: the structured content, {size:,} characters, of which {limit:,} are passed "
        "on. Ask for less, or for a part.)"
    )


def more_left_out(count: int) -> str:
    """Foot of a result of which more was left out than was named one by one."""
    return f"({count:,} more left out. Ask for less, or for a part.)"


def _bytes(size: int) -> str:
    if size < 1_000:
        return plural(size, "byte")
    return f"{size / 1_000:,.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def content_link(name: str, uri: str) -> str:
    """Return what stands for a link to a resource."""
    return f"[{name or 'resource'}: {uri}]" if uri else f"[{name or 'resource'}]"
