"""The names under which servers' tools and prompts are served: `server__tool`.

Clients take `[A-Za-z0-9_-]{1,64}`. A pair of a server and a tool that fits as it stands
keeps its letters; any other ends in eight digits of its digest, as does one that looks as
if it did. A name depends on its pair alone, not on what else there is or on who came
first. Should two pairs come to one name all the same, both orders of arrival settle it
alike: the pair that sorts first keeps the name, and the other gets a longer digest.

A server may ask for another prefix, or for none. Without one, a name that holds `__` is
served as everywhere else: nobody can spell out the name of another server's tool.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Route", "exposed_name", "exposed_names", "own_names"]

LIMIT = 64
SEPARATOR = "__"

_SERVER_LIMIT = 28
_RUNS = re.compile(r"_{2,}")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
_LIKE_A_DIGEST = re.compile(r"_[0-9a-f]{8,}\Z")


class Route(NamedTuple):
    """Where a tool of the catalog is really called."""

    server: str
    name: str
    """The server's own name for it."""
    has_headers: bool = False
    """Whether some of its parameters travel as headers."""


def exposed_name(server: str, tool: str) -> str:
    """Return the name under which a tool of a server is served."""
    plain = f"{server}{SEPARATOR}{tool}"
    return plain if _fits(server, tool, plain) else _digested(server, tool, 8)


def own_names(server: str, prefix: str | None, tools: Iterable[str]) -> dict[str, str]:
    """Return the names under which one server's tools are served, by its own names for them.

    Args:
        server: The server's name.
        prefix: What it asks for in place of its name; None where it asks for nothing.
        tools: What it calls its tools.
    """
    tools = list(tools)
    bare = {tool for tool in tools if prefix == "" and _stands_alone(tool)}
    front = prefix or server
    named = exposed_names((front, tool) for tool in tools if tool not in bare)
    return {own: name for name, (_, own) in named.items()} | {own: own for own in bare}


def _stands_alone(tool: str) -> bool:
    return SEPARATOR not in tool and len(tool) <= LIMIT and not _NOT_ALLOWED.search(tool)


def exposed_names(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return pairs of server and tool by the names under which they are served."""
    ordered = sorted(set(pairs), key=lambda pair: (not _keeps(*pair), pair))
    names: dict[str, tuple[str, str]] = {}
    for server, tool in ordered:
        name = exposed_name(server, tool)
        digits = 8
        while name in names and digits < 40:
            digits += 8
            name = _digested(server, tool, digits)
        names[name] = (server, tool)
    return names


def _keeps(server: str, tool: str) -> bool:
    return _fits(server, tool, f"{server}{SEPARATOR}{tool}")


def _fits(server: str, tool: str, plain: str) -> bool:
    # With these, the first `__` of a name is where the server ends: two pairs never meet.
    splits = bool(server and tool) and SEPARATOR not in server and not server.endswith("_")
    # And a name that looks digested is digested: no server can spell out another one's.
    looks = _NOT_ALLOWED.search(plain) or _LIKE_A_DIGEST.search(tool)
    return splits and len(plain) <= LIMIT and not looks


def _digested(server: str, tool: str, digits: int) -> str:
    pair = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha1(pair, usedforsecurity=False).hexdigest()[:digits]
    # No `__` in it: patterns such as `github__*` must not take in a server `github__other`.
    front = _RUNS.sub("_", _NOT_ALLOWED.sub("_", server)[:_SERVER_LIMIT]).strip("_")
    room = LIMIT - len(front) - len(SEPARATOR) - 1 - digits
    return f"{front}{SEPARATOR}{_NOT_ALLOWED.sub('_', tool)[: max(room, 0)]}_{digest}"[:LIMIT]
