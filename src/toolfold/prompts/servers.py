"""What a model reads where MCP servers are: one is down, has changed, must be asked about."""

from __future__ import annotations

from collections.abc import Sequence

from toolfold.prompts.wording import plural

__all__ = [
    "CANNOT_ASK",
    "FAILED_WORDLESS",
    "GATEWAY_REFUSES",
    "HELD_BACK",
    "INSTRUCTIONS",
    "STOPPED",
    "STOPPING",
    "content_left_out",
    "content_link",
    "question",
    "server_down",
    "server_timed_out",
    "servers_question",
]

INSTRUCTIONS = (
    "Tools of several servers, named server__tool. If tool_search is listed, most of them are "
    "not: before you say that something cannot be done, look for a tool with it, and run what "
    "it finds as its answer says. Call listed tools directly."
)
"""What a client may put into its system prompt."""

HELD_BACK = (
    "Its server has changed what it says of it, and a person must look at it first, with "
    "`toolfold trust`. Tell the user."
)
GATEWAY_REFUSES = "It may destroy something, and this gateway refuses such calls."
CANNOT_ASK = (
    "It may destroy something, so the user must be asked, and this client cannot ask. "
    "Tell the user."
)

FAILED_WORDLESS = "It failed, and its server does not say why."

STOPPING = (
    "Not run: the gateway is stopping and takes no new calls. Try once more when it is back, or "
    "go on without it."
)
STOPPED = (
    "The gateway was stopped before this ended. It may have had effects: look what has become of "
    "it before you try once more."
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


def server_down(tool: str, server: str, reason: str, *, lost: bool) -> str:
    """Return the answer to a call whose server did not take it, or died over it."""
    effects = " It may have had effects." if lost else " It was not run."
    return (
        f"{tool} failed: the server {server!r} {reason}.{effects} The server is being started "
        "again: try once more in a few seconds, or go on without it."
    )


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


def _bytes(size: int) -> str:
    if size < 1_000:
        return plural(size, "byte")
    return f"{size / 1_000:,.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def content_link(name: str, uri: str) -> str:
    """Return what stands for a link to a resource."""
    return f"[{name or 'resource'}: {uri}]" if uri else f"[{name or 'resource'}]"
