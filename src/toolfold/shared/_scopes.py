"""A scope as the database reads it: regular expressions over columns, and the sources it reaches.

`toolfold.in_scope` in the schema says with them what `Scope` says of a tool; a property test
holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from typing import NamedTuple

from toolfold._json_values import compact_bytes
from toolfold.scope import Scope, plain
from toolfold.tool import Json

__all__ = ["ScopeFilter", "scope_filter"]

_SEPARATOR = "__"
_CLIENTS_PREFIX = "mcp__"


class ScopeFilter(NamedTuple):
    """What a scope leaves of a catalog, for a query."""

    sources: list[str] | None
    """The sources whose tools may be in it; None for all."""
    levels: Json
    """The patterns to hold each tool against; None where the sources say it all."""
    read_only: bool = False
    """Whether only tools that say they change nothing are left."""

    @property
    def is_by_source(self) -> bool:
        """Whether it leaves whole sources."""
        return self.levels is None and not self.read_only

    @property
    def condition(self) -> str:
        """What a row of `toolfold.tools` must be: in SQL, over `values`."""
        parts = ["tenant = %(tenant)s and trusted"]
        if self.sources is not None:
            parts.append("source = any(%(sources)s)")
        if self.levels is not None:
            parts.append(
                "toolfold.in_scope(name, source, bare_name, toolset, has_own_name,"
                " plain_name, plain_source, plain_bare_name, plain_toolset, %(scope)s::jsonb)"
            )
        if self.read_only:
            parts.append("read_only")
        return " and ".join(parts)

    def values(self, tenant: str) -> dict[str, Json]:
        """Return the values that the condition speaks of."""
        scope = None if self.levels is None else compact_bytes(self.levels).decode()
        return {"tenant": tenant, "sources": self.sources, "scope": scope}


def scope_filter(scope: Scope, sources: Mapping[str, Sequence[str]]) -> ScopeFilter:
    """Return what a scope leaves.

    Args:
        scope: The scope.
        sources: The toolsets of each source there is.
    """
    if scope.holds_everything:
        return ScopeFilter(None, None)
    levels = list(_levels(scope))
    if all(map(_is_by_toolset, levels)) and all(_is_its_own(s, t) for s, t in sources.items()):
        return ScopeFilter([s for s in sources if scope.reaches(s)], None)
    reached = [s for s, toolsets in sources.items() if _may_reach(levels, s, toolsets)]
    every = len(reached) == len(sources)
    return ScopeFilter(None if every else reached, [_level(level) for level in levels])


def _levels(scope: Scope) -> list[Scope]:
    found: list[Scope] = []
    level: Scope | None = scope
    while level is not None:
        found.append(level)
        level = level.within
    return found


def _is_by_toolset(level: Scope) -> bool:
    return all(p == "*" or p.startswith("@") for p in level.allow) and all(
        p.startswith("@") for p in level.deny
    )


def _is_its_own(source: str, toolsets: Sequence[str]) -> bool:
    return bool(source) and list(toolsets) == [source]


def _may_reach(levels: Sequence[Scope], source: str, toolsets: Sequence[str]) -> bool:
    return all(any(_may(p, source, toolsets) for p in level.allow) for level in levels)


def _may(pattern: str, source: str, toolsets: Sequence[str]) -> bool:
    if pattern.startswith("@"):
        return any(re.match(translate(pattern[1:]), toolset) for toolset in toolsets)
    if not source or _SEPARATOR not in pattern or pattern.startswith(_CLIENTS_PREFIX):
        return True
    # A name that was made for a tool may be spelt out, whatever it begins with.
    left = pattern.partition(_SEPARATOR)[0]
    return re.match(translate(left), source) is not None or not re.search(r"[*?\[]", pattern)


def _level(level: Scope) -> Json:
    return {
        "allow": [_allowed(pattern) for pattern in level.allow],
        "deny": [_denied(plain(pattern)) for pattern in level.deny],
    }


def _allowed(pattern: str) -> Json:
    if pattern.startswith("@"):
        return {"toolset": _regex(pattern[1:])}
    found: dict[str, Json] = {"whole": _regex(pattern)}
    left, separator, right = pattern.partition(_SEPARATOR)
    if pattern == "*" or not separator:
        return found
    found |= {"source": _regex(left), "own": _regex(right), "exact": pattern.replace("\0", "")}
    rest = pattern.removeprefix(_CLIENTS_PREFIX)
    left, separator, right = rest.partition(_SEPARATOR)
    if rest != pattern and separator:
        found |= {"hosts": _regex(left), "hosts_own": _regex(right)}
    return found


def _denied(pattern: str) -> Json:
    if pattern.startswith("@"):
        return {"toolset": _regex(pattern[1:])}
    found: dict[str, Json] = {"whole": _regex(pattern)}
    left, separator, right = pattern.partition(_SEPARATOR)
    return found | {"source": _regex(left), "own": _regex(right)} if separator else found


def _regex(glob: str) -> str:
    """Return a shell glob as PostgreSQL's regular expression."""
    out: list[str] = []
    i = 0
    while i < len(glob):
        c = glob[i]
        i += 1
        if c == "*":
            out.append(".*")
        elif c == "?":
            out.append(".")
        elif c == "[" and (end := _end_of_set(glob, i)) is not None:
            out.append(_set(glob[i:end]))
            i = end + 1
        else:
            out.append(_literal(c))
    # `(?s)` would be an option of Python; here a dot matches every character as it is.
    return f"^(?:{''.join(out)})$"


def _end_of_set(glob: str, start: int) -> int | None:
    at = start + 1 if glob[start : start + 1] == "!" else start
    end = glob.find("]", at + 1 if glob[at : at + 1] == "]" else at)
    return None if end < 0 else end


def _set(content: str) -> str:
    """Return what a glob's brackets hold, as alternatives: one syntax of ranges is enough."""
    negated, body = content.startswith("!"), content.removeprefix("!")
    members = [c for c in map(chr, range(32, 127)) if re.match(translate(f"[{body}]"), c)]
    members += [c for c in body if not c.isascii()]
    if not members:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(map(_escaped, members))}]"


def _literal(character: str) -> str:
    return character if character.isalnum() or character == "_" else _escaped(character)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\U{number:08X}" if number else "(?!)"
