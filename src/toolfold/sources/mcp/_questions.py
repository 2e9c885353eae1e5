"""A server's question to the person behind a client, with the server's name on it.

The gateway asks too, before a call that may destroy something. So that no server can speak
in its voice, or in another server's, what a server asks begins with its name and stands
behind it, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolfold import prompts
from toolfold._bounds import cut, one_line, visible
from toolfold.tool import Json, is_object

__all__ = ["signed", "signed_result"]

ELICITATION = "elicitation/create"
_MESSAGE_LIMIT = 4_000
_NAME_LIMIT = 64
_LINES = re.compile(r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])[^\S\n]*")


def signed(server: str, method: object, params: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the parameters of a server's question, its name before what it says.

    Args:
        server: The name of the server, as the configuration has it.
        method: What it asks for.
        params: What came with it.
    """
    if method != ELICITATION:
        return params
    said = params.get("message")
    text = visible(cut(said, _MESSAGE_LIMIT)).strip() if isinstance(said, str) else ""
    lines = [line.rstrip() for line in _LINES.split(text) if line.strip()]
    return {**params, "message": prompts.servers_question(one_line(server, _NAME_LIMIT), lines)}


def signed_result(server: str, result: dict[str, Json]) -> dict[str, Json]:
    """Return a result in which a server asks for input, with its name on each question."""
    asked = result.get("inputRequests")
    if not is_object(asked):
        return result
    return {
        **result,
        "inputRequests": {
            key: {**each, "params": signed(server, each.get("method"), params)}
            if is_object(each) and is_object(params := each.get("params"))
            else each
            for key, each in asked.items()
        },
    }
