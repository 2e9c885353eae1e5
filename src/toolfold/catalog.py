"""The tools one caller may use now: an immutable, ordered snapshot.

A catalog is built from the live list on every assembly and never kept under a session's
key. Names are unique in it. What search, describe and call see is a catalog, so a tool
that is not in it does not exist for them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import NamedTuple

from toolfold._memo import Memo
from toolfold.errors import NameClashError, UnknownToolError
from toolfold.scope import Scope
from toolfold.tool import Tool
from toolfold.wire import read

__all__ = ["Catalog"]

_SEPARATORS = re.compile(r"[\W_]+")
_SEPARATOR = re.compile(r"[\s_./:-]+")
_QUALIFYING = re.compile(r"__|[./:]")
_NOT_IN_NAMES = re.compile(r"[!?,;=(){}\[\]<>|]")
_NEAR_ENOUGH = 0.6
_NEAR_TO_THE_BEST = 0.25
_COMPARED_AT_MOST = 200


class _Forms(NamedTuple):
    """The names of a catalog's tools, by other forms of them; None where two share a form."""

    loose: Mapping[str, str | None]
    """By the name, the bare name and the source with it, whatever stands between words."""

    qualified: Mapping[tuple[str, str], str | None]
    """By the source's name as it is, and a form of what the source calls the tool."""

    bare: Mapping[str, str | None]
    """By a form of the name, and of what the source calls the tool."""

    unsourced: Mapping[str, str | None]
    """By a form of the name; of tools without a source."""

    sources: frozenset[str]


_FORMS: Memo[str, _Forms] = Memo(
    32, room=16 * 1024 * 1024, size=lambda forms: 512 * len(forms.loose)
)


class Catalog:
    """An ordered set of tools with unique names.

    Example:
        catalog = Catalog.read([{"name": "read_file", "description": "Read a file."}])
        assert catalog["read_file"].description == "Read a file."

    Args:
        tools: The tools, in the order in which they are to appear.
        configured: The names of all sources that there are for anybody, of those too that
            have no tool here: where that is one, a tool may be called by its bare name.

    Raises:
        NameClashError: Two tools have one name, or one name on the wire.
    """

    __slots__ = (
        "_by_name",
        "_by_wire",
        "_configured",
        "_fingerprint",
        "_forms",
        "_last_meant",
        "_sources",
        "_tools",
    )

    def __init__(self, tools: Iterable[Tool], *, configured: Iterable[str] = ()) -> None:
        self._tools = tuple(tools)
        own = (tool.source for tool in self._tools if tool.source is not None)
        self._configured = frozenset((*configured, *own))
        self._by_name: dict[str, Tool] = {tool.name: tool for tool in self._tools}
        self._by_wire: dict[str, Tool] = {tool.wire_name: tool for tool in self._tools}
        if len(self._by_wire) != len(self._tools):
            _raise_clash(self._tools)
        self._forms: _Forms | None = None
        self._fingerprint: str | None = None
        self._sources: Mapping[str, int] | None = None
        # The text that was asked for last, and what it means: a search asks several times.
        self._last_meant: tuple[str, Tool | None] | None = None

    @classmethod
    def read(cls, tools: Iterable[object], *, source: str | None = None) -> Catalog:
        """Return the catalog of a list of tools in any wire shape."""
        return cls(tool for entry in read(tools, source=source) for tool in entry.tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Tool:
        tool = self._by_name.get(name)
        if tool is None:
            raise UnknownToolError(name, near=self.near(name))
        return tool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalog) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<Catalog of {len(self._tools)} tools, {self.fingerprint[:12]}>"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in order."""
        return self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._by_name)

    @property
    def sources(self) -> Mapping[str, int]:
        """The sources there are, by name, each with its number of tools."""
        if self._sources is None:
            counts: dict[str, int] = {}
            for tool in self._tools:
                if tool.source is not None:
                    counts[tool.source] = counts.get(tool.source, 0) + 1
            self._sources = MappingProxyType(dict(sorted(counts.items())))
        return self._sources

    @property
    def configured(self) -> frozenset[str]:
        """The names of all sources that there are, whether they have a tool here or not."""
        return self._configured

    @property
    def is_of_one_source(self) -> bool:
        """Whether there is one source for anybody, or none, so that a bare name says enough."""
        return len(self._configured) <= 1

    @property
    def fingerprint(self) -> str:
        """A digest of the content: the tools and their order."""
        if self._fingerprint is None:
            joined = "".join([tool.digest for tool in self._tools])
            self._fingerprint = hashlib.sha1(joined.encode(), usedforsecurity=False).hexdigest()
        return self._fingerprint

    def within(self, scope: Scope) -> Catalog:
        """Return the part of this catalog that is in the scope."""
        if scope.holds_everything:
            return self
        inside = (tool for tool in self._tools if tool in scope)
        return Catalog(inside, configured=self._configured)

    def find(self, name: str) -> Tool | None:
        """Return the tool that runs where a model calls `name`, or None.

        That is the tool of this name, or with this name on the wire. Another form of a name
        runs at no other source than the one that it names:

        - a source's name as it is, and behind it what the source calls the tool, which may
          differ in case and separators;
        - a bare name, with such differences, of a tool without a source; or of any tool,
          where there is one source for anybody. It has no prefix that could name a source.

        Whether there is such a name outside this catalog makes no difference.
        """
        tool = self._by_name.get(name) or self._by_wire.get(name)
        if tool is not None or _NOT_IN_NAMES.search(name):
            return tool
        form = _form(name)
        if not form:
            return None
        forms = self.warm()
        meant = self._qualified(name, forms)
        if meant is None and not (self._configured and _QUALIFYING.search(name)):
            meant = (forms.bare if self.is_of_one_source else forms.unsourced).get(form)
        return None if meant is None else self._by_name[meant]

    def _qualified(self, name: str, forms: _Forms) -> str | None:
        """Return the one tool that a source's name and what stands behind it mean."""
        rests = ((s, name[len(s) :]) for s in forms.sources if name.startswith(s))
        keys = ((source, _form(rest)) for source, rest in rests if _begins_apart(rest))
        found = {forms.qualified[key] for key in keys if key in forms.qualified}
        return found.pop() if len(found) == 1 else None

    def meant(self, name: str) -> Tool | None:
        """Return the tool that a model may mean by `name`, to be shown, or None.

        That is the one that would run; else the one whose bare name, or name with its source
        before it, this is, if there is just one.
        """
        # One attribute, so that threads never see the text of one beside the tool of another.
        last = self._last_meant
        if last is None or last[0] != name:
            last = self._last_meant = (name, self._meant(name))
        return last[1]

    def _meant(self, name: str) -> Tool | None:
        tool = self.find(name)
        if tool is not None or _NOT_IN_NAMES.search(name):
            return tool
        meant = self.warm().loose.get(_plain(name))
        return None if meant is None else self._by_name[meant]

    def warm(self) -> _Forms:
        """Learn the forms of the names, once for each content, and return them."""
        if self._forms is None:
            self._forms = _FORMS.get_or(self.fingerprint, lambda: _name_forms(self._tools))
        return self._forms

    @property
    def is_warm(self) -> bool:
        """Whether the forms of the names are known, so that `find` looks up and makes nothing."""
        return self._forms is not None or _FORMS.get(self.fingerprint) is not None

    def finds_at_once(self, name: str) -> bool:
        """Whether there is a tool that a model means by `name`, and it takes no time to say."""
        if name in self._by_name or name in self._by_wire:
            return True
        return self.is_warm and self.find(name) is not None

    def near(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """Return the names that resemble a misspelt one, closest first."""
        wanted = _plain(name[:200])
        parts = set(wanted.split())

        def shared(tool: Tool) -> int:
            return len(parts & set(_plain(tool.name).split()))

        # Comparing letter by letter is dear; in a large catalog only the names that share
        # most words are compared.
        candidates: Iterable[Tool] = self._tools
        if len(self._tools) > _COMPARED_AT_MOST:
            candidates = sorted(self._tools, key=shared, reverse=True)[:_COMPARED_AT_MOST]
        scored: list[tuple[float, str]] = []
        matcher = SequenceMatcher(b=wanted, autojunk=False)
        for tool in candidates:
            best = 0.0
            for form in {_plain(tool.name), _plain(tool.bare_name)}:
                matcher.set_seq1(form)
                if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
                    best = max(best, matcher.ratio())
            if best >= _NEAR_ENOUGH:
                scored.append((-best, tool.name))
        scored.sort()
        least = -scored[0][0] - _NEAR_TO_THE_BEST if scored else 0.0
        return tuple(name for score, name in scored[:limit] if -score >= least)


def _plain(name: str) -> str:
    return _SEPARATORS.sub(" ", name.lower()).strip()


def _begins_apart(rest: str) -> bool:
    """Whether a name's prefix ends where this rest of it begins, and not further on.

    `github_work__list` is of a source `github_work`, be there one or not.
    """
    if "__" in rest:
        return rest.startswith("__")
    return (_QUALIFYING if _QUALIFYING.search(rest) else _SEPARATOR).match(rest) is not None


def _form(name: str) -> str:
    return _SEPARATOR.sub(" ", name.lower()).strip()


def _name_forms(tools: Iterable[Tool]) -> _Forms:
    loose: dict[str, str | None] = {}
    qualified: dict[tuple[str, str], str | None] = {}
    bare: dict[str, str | None] = {}
    unsourced: dict[str, str | None] = {}
    for tool in tools:
        own = {_plain(tool.name), _plain(tool.bare_name)}
        if tool.source is not None:
            own.add(_plain(f"{tool.source} {tool.bare_name}"))
        for form in own - {""}:
            loose[form] = None if form in loose else tool.name
        form = _form(tool.bare_name)
        for whole in {form, _form(tool.name)}:
            bare[whole] = None if whole in bare else tool.name
        if tool.source is None:
            unsourced[form] = None if form in unsourced else tool.name
        else:
            key = (tool.source, form)
            qualified[key] = None if key in qualified else tool.name
    return _Forms(loose, qualified, bare, unsourced, frozenset(key[0] for key in qualified))


def owner(tool: Tool) -> str:
    """Return where a tool comes from, for an error to name."""
    return f"source {tool.source!r}" if tool.source else f"the {tool.shape or 'Python'} list"


def _raise_clash(tools: Iterable[Tool]) -> None:
    seen: dict[str, Tool] = {}
    for tool in tools:
        other = seen.get(tool.wire_name)
        if other is not None:
            name = tool.name if tool.name == other.name else tool.wire_name
            raise NameClashError(name, (owner(other), owner(tool)))
        seen[tool.wire_name] = tool
