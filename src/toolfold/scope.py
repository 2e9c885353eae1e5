"""Which tools exist for a caller.

Search, describe and call all ask the same `Scope`, so a tool that a caller may not use
is not merely refused: it cannot be found. A scope is derived from another one by
narrowing, and narrowing never adds a tool; there is no method that widens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from unicodedata import normalize

from toolfold.errors import ConfigError
from toolfold.tool import Tool

__all__ = ["EVERYTHING", "Scope", "matches", "may_match", "name_is_denied", "name_matches", "plain"]

_SEPARATOR = "__"
_CLIENTS_PREFIX = "mcp__"
_ANYTHING = "\N{REPLACEMENT CHARACTER}"
"""Stands for the name of a tool that nobody knows: only a pattern for all matches it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A set of tools, written as patterns.

    A tool is in the scope when an `allow` pattern matches it, no `deny` pattern does, and
    it is in the scope this one was narrowed from. A pattern is a shell glob over the name;
    with `__` in it, one over the source's name and one over what the source calls the tool;
    with `@` before it, one over the name of the toolset. `allow` is exact. `deny` passes over
    case and over how a letter is encoded, and looks at the whole name as well:

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
        return matches(tool, self.allow) and not any(_denies(tool, p) for p in self.deny)

    def narrow(self, *, allow: Iterable[str] = ("*",), deny: Iterable[str] = ()) -> Scope:
        """Return the part of this scope that the patterns leave."""
        return Scope(_patterns("allow", allow), _patterns("deny", deny), within=self)

    def also(self, other: Scope) -> Scope:
        """Return what is in this scope and in another one, too."""
        within = other if self.within is None else self.within.also(other)
        return Scope(self.allow, self.deny, within=within)

    def unmatched(self, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Return the patterns, those of the scopes it is within included, that match no tool."""
        inherited = () if self.within is None else self.within.unmatched(tools)
        idle = [
            *(p for p in self.allow if p != "*" and not any(_admits(t, p) for t in tools)),
            *(p for p in self.deny if not any(_denies(t, p) for t in tools)),
        ]
        return tuple(dict.fromkeys((*inherited, *idle)))

    def reaches(self, source: str) -> bool:
        """Whether it holds tools of a source, as far as that is certain without knowing them.

        A pattern over whole names, such as `*_read`, may hold some and says nothing of the source.
        """
        if self.within is not None and not self.within.reaches(source):
            return False
        anything = Tool(f"{source}{_SEPARATOR}{_ANYTHING}", source=source)
        allows = any(
            _admits(anything, p) or (_SEPARATOR in p and _is(source, p.partition(_SEPARATOR)[0]))
            for p in self.allow
        )
        return allows and not any(_denies(anything, p) for p in self.deny)

    @property
    def holds_everything(self) -> bool:
        """Whether no tool can be outside."""
        inherited = self.within is None or self.within.holds_everything
        return inherited and "*" in self.allow and not self.deny


def matches(tool: Tool, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the tool, as an `allow` pattern does."""
    return any(_admits(tool, pattern) for pattern in patterns)


def may_match(pattern: str, source: str) -> bool:
    """Whether a pattern, as `deny` takes it, may match a tool of a source, whatever it has."""
    pattern, source = plain(pattern), plain(source)
    if pattern.startswith("@"):
        return _is(source, pattern[1:])
    left, separator, _ = pattern.partition(_SEPARATOR)
    return not separator or _is(source, left)


def name_matches(name: str, source: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches what a source calls a tool; after `@`, the source."""
    return any(_is(source, p[1:]) if p[:1] == "@" else _is(name, p) for p in patterns)


def name_is_denied(name: str, source: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches as `deny` does: whatever the case and the encoding."""
    return name_matches(plain(name), plain(source), map(plain, patterns))


def _patterns(field: str, patterns: Iterable[str]) -> tuple[str, ...]:
    # A bare string is a sequence of one-letter patterns, and "*" among them would
    # allow everything.
    if isinstance(patterns, str):
        raise ConfigError(
            f"`{field}` is the string {patterns!r}, not a list of patterns",
            hint=f"write [{patterns!r}]",
        )
    return tuple(patterns)


def _admits(tool: Tool, pattern: str) -> bool:
    if pattern == "*":
        return True
    if pattern.startswith("@"):
        return tool.toolset_name is not None and _is(tool.toolset_name, pattern[1:])
    source = tool.source
    if source is None or _SEPARATOR not in pattern:
        return _is(tool.name, pattern)
    if _splits(pattern, source, tool.bare_name):
        return True
    # A name that was made for the tool is nobody else's: spelt out, it means this one.
    if tool.own_name and pattern == tool.name:
        return True
    # Some hosts write `mcp__` before the source's name.
    rest = pattern.removeprefix(_CLIENTS_PREFIX)
    is_hosts = rest != pattern and tool.name.startswith(f"{_CLIENTS_PREFIX}{source}{_SEPARATOR}")
    return is_hosts and _splits(rest, source, tool.bare_name)


def _denies(tool: Tool, pattern: str) -> bool:
    pattern = plain(pattern)
    if pattern.startswith("@"):
        return tool.toolset_name is not None and _is(plain(tool.toolset_name), pattern[1:])
    if _is(plain(tool.name), pattern):
        return True
    if tool.source is None:
        return False
    source, own = plain(tool.source), plain(tool.bare_name)
    # What a name lost when it was made to fit is denied by its whole name.
    if tool.own_name and _is(f"{source}{_SEPARATOR}{own}", pattern):
        return True
    return _SEPARATOR in pattern and _splits(pattern, source, own)


def _splits(pattern: str, source: str, own: str) -> bool:
    """Whether the halves of a pattern match a source's name and what it calls a tool."""
    left, separator, right = pattern.partition(_SEPARATOR)
    return bool(separator) and _is(source, left) and _is(own, right)


def _is(name: str, pattern: str) -> bool:
    return pattern == name or _glob(pattern).match(name) is not None


def plain(text: str) -> str:
    """Return a text as `deny` reads it: whatever its case, however its letters are encoded."""
    if text.isascii():
        return text.lower()
    return normalize("NFKC", normalize("NFKC", text).casefold())


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


EVERYTHING = Scope()
"""The scope that holds every tool. The default for a caller with no configuration."""
