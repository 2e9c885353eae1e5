"""What a tool calls its arguments: names that every model API takes, each once."""

from __future__ import annotations

import re
from collections.abc import Container

__all__ = ["argument_name"]

_LIMIT = 64
_ALLOWED = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")


def argument_name(name: str, taken: Container[str], instead: str) -> str:
    """Return what a parameter is called as an argument.

    Args:
        name: What the API calls it.
        taken: What others are called.
        instead: What stands behind the name where another has it.
    """
    plain = name if _ALLOWED.match(name) else _NOT_ALLOWED.sub("_", name).strip("_")[:_LIMIT]
    found = plain = plain or instead
    number = 1
    while found in taken:
        end = f"_{instead}" if number == 1 else f"_{instead}_{number}"
        found = plain[: _LIMIT - len(end)] + end
        number += 1
    return found
