"""The gateway's and the proxy's audit log, as a reader wants it: calls by time, by session.

A line that cannot be read is counted and passed over: one that is being written may be half.
"""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path
from typing import Any

from toolfold._json_values import parse
from toolfold.errors import CatalogError
from toolfold.tool import Json, is_object

__all__ = ["audit_view", "is_audit"]

LINES_AT_MOST = 5_000
"""How many calls are shown: the newest."""

_CALL = ("at", "principal", "session", "server", "tool", "via", "outcome", "seconds")
_SIZES = ("request_size", "result_size", "arguments", "error")
_REQUEST = ("upstream", "model", "rounds", "searches", "calls", "tools", "tokens_before")
_COUNTS = ("tokens_after", "prompt_tokens", "cached_tokens", "completion_tokens")
_CHANGE = ("at", "principal", "verb", "target", "outcome", "detail")


def is_audit(line: str) -> bool:
    """Whether a line is one of an audit log."""
    try:
        value = parse(line.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return is_object(value) and {"at", "principal", "outcome"} <= value.keys()


def audit_view(file: Path) -> dict[str, Any]:
    """Return the calls of an audit log, the oldest first.

    Raises:
        CatalogError: It cannot be read.
    """
    kept: deque[dict[str, Json]] = deque(maxlen=LINES_AT_MOST)
    count = unreadable = 0
    try:
        with file.open("rb") as lines:
            for line in lines:
                if not line.strip():
                    continue
                value = _value(line)
                if value is None:
                    unreadable += 1
                else:
                    count += 1
                    kept.append(value)
    except OSError as error:
        raise CatalogError(
            f"cannot read `{file}`: {error.strerror}", hint="see whose it is, and who may read it"
        ) from None
    calls = [_row(value) for value in kept]
    outcomes = Counter(str(call["outcome"]) for call in calls)
    names = Counter(str(call["tool"]) for call in calls if call.get("tool"))
    return {
        "name": file.name,
        "kind": "audit",
        "calls": calls,
        "older": count - len(calls),
        "unreadable": unreadable,
        "outcomes": dict(outcomes.most_common()),
        "tools": [{"name": name, "calls": times} for name, times in names.most_common(20)],
    }


def _value(line: bytes) -> dict[str, Json] | None:
    try:
        value = parse(line)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) and "outcome" in value else None


def _row(value: dict[str, Json]) -> dict[str, Any]:
    if "verb" in value:  # what somebody changed in a running gateway
        return {name: value.get(name) for name in _CHANGE}
    names = (*_CALL, *_SIZES) if "upstream" not in value else ("at", "principal", *_REQUEST)
    names += ("outcome", "seconds", "error", *_COUNTS) if "upstream" in value else ()
    return {name: value.get(name) for name in names}
