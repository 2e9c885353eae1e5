"""Servers' records under the names by which they are served.

A record keeps every field that came with it, known here or not; its name changes, and
what is written to be read is bounded and hides nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace

from toolfold.errors import InvalidToolError
from toolfold.invisible import shown_texts
from toolfold.tool import Json, Tool, is_array, is_object
from toolfold.wire import read

__all__ = ["named_tool", "shown_record"]

# A record with one of these would be read as one of a model API's, under another name.
_OF_OTHERS = ("function", "function_declarations", "functionDeclarations", "input_schema")

_DEPTH = 200
"""How deep a record is looked into; what nests deeper is no tool anybody can call."""

_log = logging.getLogger(__name__)


def named_tool(record: Mapping[str, Json], server: str, own: str, name: str) -> Tool | None:
    """Return a server's tool as it stands in the catalog, or None where it is not one.

    Args:
        record: What the server lists.
        server: The server's name.
        own: What the server calls the tool.
        name: The name under which it is served.
    """
    out: dict[str, Json] = {**_spelled(record, _DEPTH), "name": name}
    for key in _OF_OTHERS:
        out.pop(key, None)
    if not is_object(out.get("inputSchema")):
        out["inputSchema"] = {"type": "object"}
    try:
        tool = read([out], source=server)[0].tools[0]
        return tool if tool.bare_name == own else replace(tool, own_name=own)
    except (InvalidToolError, IndexError) as error:
        _log.warning("server %s: a tool is left out: %s", server, error)
        return None


def _spelled(value: Json, depth: int) -> Json:
    """Return a value in which NaN and the infinities are texts.

    JSON has no word for them, and written they would all be null: a tool that turns one into
    another would be the same tool to whoever approved it.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if depth and is_object(value):
        return {key: _spelled(inner, depth - 1) for key, inner in value.items()}
    if depth and is_array(value):
        return [_spelled(inner, depth - 1) for inner in value]
    return value


def shown_record(record: Mapping[str, Json], limit: int, **changes: Json) -> dict[str, Json]:
    """Return a prompt's or resource's record, changed, with its texts bounded and visible."""
    return dict(shown_texts({**record, **changes}, limit))
