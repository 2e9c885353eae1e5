"""Which tools exist for a caller.

Search, describe and call all ask the same `Scope`, so a tool that a caller may not use
is not merely refused: it cannot be found. A scope is derived from another one by
narrowing, and narrowing never adds a tool; there is no method that widens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from toolfold.errors import ConfigError
from toolfold.tool import Tool

__all__ = ["EVERYTHING", "Scope", "matches", "name_matches"]


@dataclass(frozen=True, slots=True)
class Scope:
    """A set of tools, written as patterns.

    A tool is in the scope when an `allow` pattern matches it, no `deny` pattern does, and
    it is in the scope this one was narrowed from. A pattern is a shell glob over the full
    name; with `@` before it, over the name of the toolset:

        reader = Scope(allow=("@github", "jira_get_*"), deny=("*delete*",))
        assert Tool("create_issue", source="github") in reader
        assert Tool("delete_repo", source="github") not in reader
    """

    allow: tuple[str, ...] = ("*",)
    """Patterns of which one must match. An empty tuple is an empty scope."""

    deny: tuple[str, ...] = ()
    """Patterns of which none may match. They win over `allow`."""

    within: Scope | None = None
    """The scope this one was narrowed from."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow", _patterns("allow", self.allow))
        object.__setattr__(self, "deny", _patterns("deny", self.deny))

    def __contains__(self, tool: Tool) -> bool:
        if self.within is not None and tool not in self.within:
            return False
        return matches(tool, self.allow) and not matches(tool, self.deny)

    def narrow(self, *, allow: Iterable[str] = ("*",), deny: Iterable[str] = ()) -> Scope:
        """Return the part of this scope that the patterns leave."""
        return Scope(_patterns("allow", allow), _patterns("deny", deny), within=self)

    def also(self, other: Scope) -> Scope:
        """Return what is in this scope and in another one, too."""
        within = other if self.within is None else self.within.also(other)
        return Scope(self.allow, self.deny, within=within)

    def denies(self, name: str) -> bool:
        """Whether a `deny` pattern, of this scope or of one it is within, matches a name."""
        if self.within is not None and self.within.denies(name):
            return True
        return name_matches(name, None, self.deny)

    @property
    def holds_everything(self) -> bool:
        """Whether no tool can be outside."""
        inherited = self.within is None or self.within.holds_everything
        return inherited and "*" in self.allow and not self.deny


def matches(tool: Tool, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the tool's name, or, after `@`, its toolset."""
    return name_matches(tool.name, tool.toolset_name, patterns)


def name_matches(name: str, toolset: str | None, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches a name, or, after `@`, a toolset."""
    return any(_match(name, toolset, pattern) for pattern in patterns)


def _patterns(field: str, patterns: Iterable[str]) -> tuple[str, ...]:
    # A bare string is a sequence of one-letter patterns, and "*" among them would
    # allow everything.
    if isinstance(patterns, str):
        raise ConfigError(
            f"`{field}` is the string {patterns!r}, not a list of patterns",
            hint=f"write [{patterns!r}]",
        )
    return tuple(patterns)


def _match(name: str, toolset: str | None, pattern: str) -> bool:
    if pattern == name or pattern == "*":
        return True
    if pattern.startswith("@"):
        return toolset is not None and _glob(pattern[1:]).match(toolset) is not None
    return _glob(pattern).match(name) is not None


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


EVERYTHING = Scope()
"""The scope that holds every tool. The default for a caller with no configuration."""
