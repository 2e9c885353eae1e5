"""The first answer to a client, given before the protocol's library is there.

Importing the library takes longer than some clients like to wait. What it would answer to
the first request, `initialize` or `server/discover`, is known: it is the same each time. So
the thread that reads our input answers it at once; later the library answers it too, for
itself, and that second answer is dropped. Whatever is not quite as expected is left to it.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import NamedTuple

from toolfold import prompts
from toolfold._json_values import compact_bytes, parse_strict
from toolfold.tool import Json, is_object

__all__ = ["CAPABILITIES", "Greeting", "greeting"]

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"

CAPABILITIES: dict[str, Json] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
"""What clients are told that the gateway has, in every revision."""

_ENVELOPE = "io.modelcontextprotocol/"


class Greeting(NamedTuple):
    """The answer to a client's first request."""

    id: str | int
    """The request's."""

    line: bytes


def server_info() -> dict[str, Json]:
    """Return how the gateway introduces itself."""
    return {"name": "toolfold", "title": "toolfold", "version": version("toolfold")}


def greeting(line: bytes, instructions: str = prompts.INSTRUCTIONS) -> Greeting | None:
    """Return the answer to a first line, where it is one of the two that open a connection.

    Args:
        line: The line.
        instructions: What the client may put into its system prompt.
    """
    try:
        request = parse_strict(line)
    except ValueError:
        return None
    if not is_object(request) or request.get("jsonrpc") != "2.0":
        return None
    number, params = request.get("id"), request.get("params")
    if isinstance(number, bool) or not isinstance(number, int | str) or not is_object(params):
        return None
    if request.get("method") == "initialize":
        result = _initialized(params)
    elif request.get("method") == "server/discover":
        result = _discovered(params)
    else:
        return None
    if result is None:
        return None
    answer = {"jsonrpc": "2.0", "id": number, "result": {**result, "instructions": instructions}}
    return Greeting(number, compact_bytes(answer) + b"\n")


def _initialized(params: dict[str, Json]) -> dict[str, Json] | None:
    wanted = params.get("protocolVersion")
    info = params.get("clientInfo")
    if (
        wanted not in HANDSHAKES
        or not is_object(params.get("capabilities"))
        or not is_object(info)
        or not isinstance(info.get("name"), str)
        or not isinstance(info.get("version"), str)
    ):
        return None
    return {
        "protocolVersion": wanted,
        "capabilities": CAPABILITIES,
        "serverInfo": server_info(),
        "instructions": "",
    }


def _discovered(params: dict[str, Json]) -> dict[str, Json] | None:
    meta = params.get("_meta")
    if (
        not is_object(meta)
        or meta.get(f"{_ENVELOPE}protocolVersion") != MODERN
        or not is_object(meta.get(f"{_ENVELOPE}clientCapabilities"))
    ):
        return None
    return {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": CAPABILITIES,
        "instructions": "",
        "_meta": {f"{_ENVELOPE}serverInfo": server_info()},
        "ttlMs": 0,
        "cacheScope": "private",
    }
