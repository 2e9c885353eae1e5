"""The arguments of a verb, read: what is wrong is said with the argument's name."""

from __future__ import annotations

from collections.abc import Mapping

from toolfold.serve.control.messages import ControlError
from toolfold.tool import Json

__all__ = ["number", "text"]

_TEXT_LIMIT = 1_000


def text(arguments: Mapping[str, Json], key: str, *, default: str | None = None) -> str:
    """Return an argument that is a text.

    Args:
        arguments: What came.
        key: The argument.
        default: What it is where it is not given; None where it must be.

    Raises:
        ControlError: It is missing, or is none.
    """
    value = arguments.get(key, default)
    if not isinstance(value, str) or len(value) > _TEXT_LIMIT or (default is None and not value):
        raise ControlError("bad_request", f"`{key}` must be a text")
    return value


def number(arguments: Mapping[str, Json], key: str, *, default: int, high: int) -> int:
    """Return an argument that is a whole number from 0 on; a greater one than may be is cut.

    Args:
        arguments: What came.
        key: The argument.
        default: What it is where it is not given.
        high: The greatest that it may be.

    Raises:
        ControlError: It is none.
    """
    value = arguments.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ControlError("bad_request", f"`{key}` must be a whole number from 0 on")
    return min(value, high)
