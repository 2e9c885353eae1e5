"""A shared catalog at one moment, for one caller: all that a question asks of it.

A reading is one read-only transaction. What it gives is within what is left for the caller,
by conditions of the database.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple, cast

from toolfold._memo import Memo
from toolfold.scope import EVERYTHING, Scope
from toolfold.search.partial import matches
from toolfold.shared._proposals import SCANNED_TO, Statistics, proposal, reach
from toolfold.shared._rows import name_key, tool_of
from toolfold.shared._scopes import ScopeFilter
from toolfold.tool import NAME_LIMIT, Tool

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["CatalogReading", "CountedSources", "HeldLetters", "Reach", "SharedHit", "SourceCounts"]

NAMED_AT_MOST = 8
"""How many tools are looked at whose names have the same letters."""

COUNTING_SECONDS = 2.0
"""How long it may take to count what a scope by names leaves."""

_log = logging.getLogger(__name__)


class SharedHit(NamedTuple):
    """A tool that answers a query."""

    tool: Tool
    score: float
    """How probable it is that it serves, as the embedded search says it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What of a catalog there is for a caller."""

    scope: Scope = EVERYTHING
    sources: frozenset[str] | None = None
    """The sources that there are; None for all."""
    read_only: bool = False
    """Whether there are only tools that say they change nothing."""

    def __contains__(self, tool: Tool) -> bool:
        if self.sources is not None and (tool.source or "") not in self.sources:
            return False
        return (tool.is_read_only or not self.read_only) and tool in self.scope


class HeldLetters(NamedTuple):
    """What a tool's bare name holds."""

    every: tuple[str, ...]
    """All of these letters."""
    one_of: tuple[str, ...]
    """One of these; none where nothing more is asked for."""
    source: str | None
    """Where it comes from; None for anywhere."""


SourceCounts = Mapping[str, int]
"""How many tools each source has; those without a source are under an empty name."""


class CountedSources(NamedTuple):
    """The sources of a catalog."""

    counts: SourceCounts
    by_key: Mapping[str, tuple[str, ...]]
    """Their names, by the letters and digits of each."""

    @classmethod
    def of(cls, counts: SourceCounts) -> CountedSources:
        """Return them with what they are found by."""
        keys: dict[str, tuple[str, ...]] = {}
        for source in counts:
            if key := name_key(source):
                keys[key] = (*keys.get(key, ()), source)
        return cls(counts, keys)


class CatalogReading:
    """A catalog as one transaction sees it.

    Args:
        connection: Inside the transaction.
        tenant: Whose catalog it is.
        reach: What of it there is for the caller.
        left: The same for the database.
        known: What is known of the whole catalog; None where there is no tool.
        counted: What was counted before, by the catalog's version.
    """

    def __init__(
        self,
        connection: Connection[Any],
        tenant: str,
        reach: Reach,
        left: ScopeFilter,
        known: Statistics | None,
        counted: Memo[tuple[int, Reach], CountedSources],
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self.reach = reach
        """What of it there is for the caller."""
        self._left = left
        self._known = known
        self._counted = counted

    def search(self, query: str, limit: int) -> list[SharedHit]:
        """Return the tools that answer a query, best first."""
        if self._known is None or limit < 1:
            return []
        query = _whole(query)
        found = proposal(self._connection, self._tenant, query, self._known, self._left)
        if found is None:
            return []
        best = matches(query, found.entries, found.whole, limit)
        ids = [found.ids[match.position] for match in best]
        tools = dict(self._tools("id = any(%(ids)s)", ids=ids))
        both = [(tools[i], m.score) for i, m in zip(ids, best, strict=True) if i in tools]
        return [SharedHit(tool, score) for tool, score in both if self._is_in(tool)]

    def find(self, name: str) -> Tool | None:
        """Return the tool of a name, if there is one for the caller."""
        found = [tool for _, tool in self._tools("name = %(name)s", name=_whole(name))]
        return next((tool for tool in found if tool.name == name and self._is_in(tool)), None)

    def named(self, texts: Iterable[str]) -> list[tuple[int, Tool]]:
        """Return the tools whose names a text may be, by number: whatever its case and separators.

        A name may stand there whole, without its source, or behind it. Of names with the same
        letters some are returned, which is enough to see that there are several.
        """
        names = [_whole(text) for text in texts if len(text) <= NAME_LIMIT]
        keys = sorted({key for name in names if (key := name_key(name))})
        if not names or self._known is None:
            return []
        owners = self._sources.by_key
        rests = [
            (source, key[end:])
            for key in keys
            for end in range(1, len(key))
            for source in owners.get(key[:end], ())
        ]
        which = (
            "id in (select found.id from unnest(%(keys)s::text[]) as k (key) cross join lateral ("
            f" (select id from toolfold.tools where {self._left.condition} and name_key = k.key"
            " limit %(most)s) union all"
            f" (select id from toolfold.tools where {self._left.condition} and bare_key = k.key"
            " limit %(most)s)) as found"
            " union all select found.id from unnest(%(owners)s::text[], %(rests)s::text[])"
            " as r (owner, rest) cross join lateral ("
            f"select id from toolfold.tools where {self._left.condition} and bare_key = r.rest"
            " and source = r.owner limit %(most)s) as found"
            f" union all select id from toolfold.tools where {self._left.condition}"
            " and name = any(%(names)s::text[]))"
        )
        rows = self._tools(
            which,
            names=names,
            keys=keys,
            owners=[source for source, _ in rests],
            rests=[rest for _, rest in rests],
            most=NAMED_AT_MOST,
        )
        return [(number, tool) for number, tool in rows if self._is_in(tool)]

    def names_of(self, sources: Collection[str], at_most: int) -> list[tuple[int, Tool]]:
        """Return the first tools of some sources, by number: their names and nothing else.

        Args:
            sources: The sources.
            at_most: How many of each.
        """
        rows = self._execute(
            "select found.* from unnest(%(owners)s::text[]) as s (owner) cross join lateral ("
            "select id, name, source, toolset, bare_name, has_own_name from toolfold.tools"
            f" where {self._left.condition} and source = s.owner order by id + 0 limit %(most)s"
            ") as found",
            owners=list(sources),
            most=at_most,
        )
        return [(row[0], _name_only(*row[1:])) for row in rows]

    def holding(self, sought: Sequence[HeldLetters], at_most: int) -> list[tuple[int, Tool]]:
        """Return tools whose bare names hold some letters, by number: their names and nothing else.

        Args:
            sought: What each holds; what would have to be looked for among too many is not.
            at_most: How many of each, the shortest names first.
        """
        counts = self.sources
        asked = [
            one
            for one in dict.fromkeys(sought)
            if (sum(counts.values()) if one.source is None else counts.get(one.source, 0))
            <= SCANNED_TO
        ]
        values: dict[str, Any] = {}
        parts: list[str] = []
        for i, (every, one_of, source) in enumerate(asked):
            values |= {f"all{i}": [f"%{_pattern(text)}%" for text in every], f"from{i}": source}
            values |= {f"one{i}": [f"%{_pattern(text)}%" for text in one_of] or ["%"]}
            parts.append(
                "(select id, name, source, toolset, bare_name, has_own_name from toolfold.tools"
                f" where {self._left.condition} and bare_key like all(%(all{i})s::text[])"
                f" and bare_key like any(%(one{i})s::text[])"
                f" and (%(from{i})s::text is null or source = %(from{i})s)"
                " order by length(bare_name), id limit %(most)s)"
            )
        rows = self._execute(" union all ".join(parts), most=at_most, **values) if parts else []
        return [(row[0], _name_only(*row[1:])) for row in rows]

    def within(self, scope: Scope, at_most: int) -> list[Tool]:
        """Return the tools of a narrower scope, in the order in which they came.

        Args:
            scope: The scope; the caller's own holds beside it.
            at_most: How many.
        """
        if self._known is None:
            return []
        own = self.reach
        narrow = own.scope.also(scope)
        left = reach(self._connection, self._tenant, narrow, own.sources, read_only=own.read_only)
        rows = self._tools("true order by id limit %(most)s", left, most=at_most)
        return [tool for _, tool in rows if self._is_in(tool) and tool in scope]

    @property
    def sources(self) -> SourceCounts:
        """The sources of which there is a tool for the caller, with how many, by name.

        Where counting takes too long, since a scope by names leaves parts of very many tools,
        nothing is counted.
        """
        return self._sources.counts

    @property
    def every_source(self) -> frozenset[str]:
        """The names of all sources that there are for anybody."""
        if self._known is None:
            return frozenset()
        key = self._known.version, Reach()
        found = self._counted.get(key)
        if found is None:
            rows = self._execute(
                "select source, size from toolfold.sources where tenant = %(tenant)s"
                " order by source"
            )
            found = self._counted.put(key, CountedSources.of(dict(rows)))
        return frozenset(filter(None, found.counts))

    @property
    def _sources(self) -> CountedSources:
        if self._known is None:
            return CountedSources({}, {})
        key = self._known.version, self.reach
        found = self._counted.get(key)
        if found is None:
            found = self._counted.put(key, CountedSources.of(self._counts()))
        return found

    def _counts(self) -> SourceCounts:
        from psycopg.errors import QueryCanceled

        if self._left.is_by_source:
            among = "" if self._left.sources is None else " and source = any(%(sources)s)"
            rows = self._execute(
                f"select source, size from toolfold.sources where tenant = %(tenant)s{among}"
                " order by source"
            )
            return dict(rows)
        try:
            with self._connection.transaction():
                [(before,)] = self._execute("select current_setting('statement_timeout')")
                self._have_seconds(f"{COUNTING_SECONDS * 1000:.0f}")
                rows = self._execute(
                    f"select source, count(*) from toolfold.tools where {self._left.condition}"
                    " group by source order by source"
                )
                self._have_seconds(before)
        except QueryCanceled:
            _log.info("what a scope leaves of a catalog is too much to be counted")
            return {}
        return dict(rows)

    def _have_seconds(self, longest: str) -> None:
        self._execute("select set_config('statement_timeout', %(longest)s, true)", longest=longest)

    def _tools(
        self, which: str, left: ScopeFilter | None = None, **values: Any
    ) -> list[tuple[int, Tool]]:
        left = left or self._left
        statement = f"select id, definition from toolfold.tools where {left.condition} and {which}"
        rows = self._execute(statement, left, **values)
        return [(row[0], tool_of(row[1])) for row in rows]

    def _execute(self, statement: str, left: ScopeFilter | None = None, **values: Any) -> list[Any]:
        fixed = cast("LiteralString", statement)  # made of the texts of this package alone
        given = (left or self._left).values(self._tenant)
        return self._connection.execute(fixed, given | values).fetchall()

    def _is_in(self, tool: Tool) -> bool:
        """Whether a found tool is there for the caller, as its query has seen to."""
        if tool in self.reach:
            return True
        _log.error("the database found %r outside the scope; it is left out", tool.name)
        return False


def _whole(text: str) -> str:
    """Return a text as the database can take it: without zeros and halves of characters."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _pattern(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text.replace("\0", ""))


def _name_only(
    name: str, source: str, toolset: str | None, bare_name: str, has_own_name: bool
) -> Tool:
    own = bare_name if has_own_name else ""
    return Tool(name, source=source or None, toolset=toolset, own_name=own)
