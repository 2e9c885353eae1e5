"""Sources that are not there now: which, why, and when they are tried again.

A server that is dead or still starting has tools that nobody can find. What a caller may
know of it is an `AbsentSource`: made anew for each question, within the caller's scope, so
that an answer can name it instead of pointing elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolfold.tool import Tool

__all__ = ["AbsentSource"]

_SEPARATORS = re.compile(r"[\W_]+")
_QUALIFYING = re.compile(r"__|[./:]")
_NAME_LIMIT = 200
_PREFIXES = ("functions.", "mcp__")
_SAYS_NOTHING = frozenset(
    "a an and api app cli data for http https local mcp my of official remote server servers "
    "service stdio the tool tools".split()
)


@dataclass(frozen=True, slots=True)
class AbsentSource:
    """A source that cannot be asked now, as one caller may know of it."""

    name: str
    """What the source is called."""

    cause: str | None = None
    """Why, as a clause that holds none of the source's own words; None while it starts for the
    first time."""

    retry_in: float | None = None
    """In how many seconds it is tried again: 0 where that is under way, None for never."""

    tools: tuple[Tool, ...] = ()
    """What it had when it last ran, where no list holds that any more. It is looked through to
    say what a search would have found, and never shown."""

    @property
    def is_starting(self) -> bool:
        """Whether its first start is under way."""
        return self.cause is None

    def seen_by(
        self, admits: Callable[[Tool], bool], listed: Sequence[Tool], *, is_reached: bool
    ) -> AbsentSource | None:
        """Return it as a caller may know of it, or None where the caller may not.

        Args:
            admits: Whether a tool exists for the caller.
            listed: Its tools that are listed still.
            is_reached: Whether the caller's scope holds tools of it, whatever they are; asked
                where none of them is known.
        """
        if not (listed or self.tools):
            return self if is_reached else None
        tools = tuple(tool for tool in self.tools if admits(tool))
        if not tools and not any(admits(tool) for tool in listed):
            return None
        return replace(self, tools=tools)

    def owns(self, name: str) -> bool:
        """Whether a name is, or begins like, that of one of its tools."""
        if any(name in (tool.name, tool.wire_name, tool.bare_name) for tool in self.tools):
            return True
        name = name[:_NAME_LIMIT]
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        own = _plain(self.name)
        splits = list(_QUALIFYING.finditer(name))
        if not splits:
            return _plain(name).startswith(f"{own} ")
        return any(_plain(name[: split.start()]) == own for split in splits)

    def is_named_in(self, request: str) -> bool:
        """Whether a request speaks of it: has its name, or a word of that which says something."""
        request = request.lower()
        words = [word for word in _plain(self.name).split() if word not in _SAYS_NOTHING]
        return any(_has_word(request, word) for word in words or [_plain(self.name)])


def _plain(name: str) -> str:
    return _SEPARATORS.sub(" ", name.lower()).strip()


def _has_word(text: str, word: str) -> bool:
    # Beside letters of another script, as in Chinese, a word stands without blanks.
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None
