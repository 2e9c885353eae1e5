"""Messages that nest deeper than the protocol's library reads.

One tool with a schema like that would take the whole list along. So a list that cannot be
read is looked through here, and loses the entries that nest too deep.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

from pydantic_core import from_json

from toolfold._bounds import one_line
from toolfold._json_values import Json, compact_bytes, is_array, is_object, parse

__all__ = ["levelled", "may_nest"]

DEPTH_LIMIT = 160
"""How deep a message may nest; the protocol's library reads 200 levels."""

SIZE_LIMIT = 4 * 1024 * 1024
"""The longest message that is looked through, in bytes."""

_CUT = b'"\\u0000nested too deep\\u0000"'
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_LISTS = ("tools", "resources", "resourceTemplates", "prompts")

_log = logging.getLogger(__name__)


def may_nest(text: bytes) -> bool:
    """Whether a message may nest deeper than the protocol's library reads."""
    if text.count(b"{") + text.count(b"[") <= DEPTH_LIMIT or len(text) > SIZE_LIMIT:
        return False
    try:
        from_json(text)
    except ValueError:
        return True
    return False


def levelled(text: bytes, server: str) -> bytes | None:
    """Return a list without the entries that nest too deep; None where it is something else.

    Args:
        text: The message.
        server: Who sent it, for the log.
    """
    if len(text) > SIZE_LIMIT:
        return None
    pieces = list(_pieces(text))
    if len(pieces) == 1:
        return None
    try:
        message: Json = parse(b"".join(pieces))
    except (ValueError, RecursionError):
        return None
    rest = _without_cuts(message, server) if is_object(message) else None
    return None if rest is None else compact_bytes(rest)


def _pieces(text: bytes) -> Iterator[bytes]:
    depth, begin = 0, 0
    for match in _TOKEN.finditer(text):
        first = text[match.start()]
        if first in b"[{":
            depth += 1
            if depth == DEPTH_LIMIT + 1:
                yield text[begin : match.start()] + _CUT
        elif first in b"]}":
            if depth == DEPTH_LIMIT + 1:
                begin = match.end()
            depth -= 1
    yield text[begin:]


def _without_cuts(message: dict[str, Json], server: str) -> dict[str, Json] | None:
    result = message.get("result")
    listed = next((key for key in _LISTS if is_object(result) and is_array(result.get(key))), None)
    if listed is None or not is_object(result):
        return None
    kept: list[Json] = []
    for record in result[listed]:
        if _CUT in compact_bytes(record):
            name = record.get("name", record.get("uri")) if is_object(record) else None
            shown = one_line(str(name), 100)
            _log.warning("server %s: %r nests too deep, and is left out", server, shown)
        else:
            kept.append(record)
    result = {**result, listed: kept}
    return None if _CUT in compact_bytes(result) else {**message, "result": result}
