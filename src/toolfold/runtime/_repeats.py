"""Calls that were made, worked, and are made once more.

Small models tend to repeat the call that has just worked instead of saying so. What changes
something would then be done twice. A repetition is told by the real tool and its arguments,
whether it came through the bridge or not, and only right behind the call that worked: what
only reads may be asked again, and so may what failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolfold import prompts
from toolfold.errors import InvalidToolError
from toolfold.fold import Folded
from toolfold.runtime._loose import loose_json
from toolfold.runtime.messages import Call, ResultMessage
from toolfold.tool import Json, Tool, canonical, is_object

__all__ = ["JustMade"]


class JustMade:
    """The calls of the last reply that worked and changed something."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def repeated(self, calls: Sequence[Call], folded: Folded) -> tuple[str, ...]:
        """Return the names of the tools where a reply is nothing but such calls again."""
        if not self._keys:
            return ()
        keys = [made.key for call in calls if (made := _made(call, folded))]
        again = [self._keys[key] for key in keys if key in self._keys]
        return tuple(dict.fromkeys(again)) if len(again) == len(calls) else ()

    def note(self, calls: Sequence[Call], results: Sequence[ResultMessage], folded: Folded) -> None:
        """Take what the calls of a reply came to."""
        self._keys.clear()
        for call, result in zip(calls, results, strict=True):
            made = None if result.is_error else _made(call, folded)
            if made is not None and not made.tool.is_read_only:
                self._keys[made.key] = made.tool.shown_name


class _Made(NamedTuple):
    """A call of a real tool."""

    tool: Tool
    key: str
    """What is the same for two calls of one tool with one set of arguments."""


def _made(call: Call, folded: Folded) -> _Made | None:
    target = _target(call, folded)
    if target is None:
        return None
    name, arguments = target
    tool = folded.catalog.find(name)
    try:
        return None if tool is None else _Made(tool, f"{tool.name} {canonical(arguments)}")
    except InvalidToolError:
        return None


def _target(call: Call, folded: Folded) -> tuple[str, Json] | None:
    """Return the real tool that a call names, and what it is given; None for the bridge's own."""
    read = loose_json(call.arguments)
    given: Json = read.value if read is not None else None
    role = folded.bridge.role(call.name)
    if role is None:
        return call.name, given
    if role != prompts.TOOL_CALL or not is_object(given):
        return None
    name = given.get("name")
    return (name, given.get("arguments", {})) if isinstance(name, str) else None
