"""Tools that a task needs beside those it was asked for: found, and named behind the hits.

Who asks for tickets needs the station's code before them, and does not ask for it. So beside
the hits stand tools that were used together with one, tools that give what a hit requires, and
tools of the same source that fit best: by name alone, a few of them, and never in the place of a
hit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from toolfold._memo import Memo
from toolfold.answer import Hit
from toolfold.catalog import Catalog
from toolfold.search._text import raw_words, stem
from toolfold.search.memory import SearchMemory
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = [
    "SIBLINGS_AT_MOST",
    "SoughtName",
    "companions",
    "mentioned_names",
    "producers",
    "sought_names",
]

SIBLINGS_AT_MOST = 64
"""How many tools of a source may be named beside one of them."""

COMPANIONS_AT_MOST = 6
"""How many there are for one search: more cost more than they bring."""

_PRODUCERS_AT_MOST = 2
_REMEMBERED_AT_MOST = 2
_REQUIRED_AT_MOST = 16
_TEXT_LIMIT = 2_000
_NAMED_LIMIT = 64
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[-./_]\w+)*")
_KEYS = frozenset("id ids identifier uuid guid key code token slug sha handle ref urn sid".split())
_PLACES = frozenset("lat lng lon latitude longitude coordinates coordinate geometry".split())
_TIMES = frozenset("date time datetime timestamp day".split())
_NOW = frozenset("current now today".split())
_GIVING = frozenset(
    "get list search find lookup resolve query fetch retrieve geocode create".split()
)


class _Names(NamedTuple):
    """What tools can be found by."""

    by_word: Mapping[str, frozenset[int]]
    """The places of the tools whose names hold a word, by its stem."""
    by_output: Mapping[str, tuple[int, ...]]
    """The places of the tools that say that they return a property, by its name."""
    by_name: Mapping[str, int]
    """The place of the tool with a name, bare or whole; -1 where there are several."""
    by_source: Mapping[str, tuple[int, ...]]
    """The places of the first tools of a source, as many as may be named."""


_NAMES: Memo[str, _Names] = Memo(32)
_PRODUCERS: Memo[tuple[str, str], tuple[int, ...]] = Memo(4_096)
"""The places of what gives a tool's requirements, by the catalog and the tool's digest."""


def companions(
    needs: Sequence[Sequence[Hit]],
    hidden: Sequence[Sequence[Hit]],
    folded: Catalog,
    memory: SearchMemory | None = None,
) -> tuple[Hit, ...]:
    """Return the tools to name behind the hits of a search.

    Args:
        needs: The hits of each need that are shown, best first.
        hidden: The hits of each need that follow those, and are not shown.
        folded: The tools that there are.
        memory: Knows which tools were used together.
    """
    shown = {hit.name for hits in needs for hit in hits}
    best = [hits[0] for hits in needs if hits]
    needed = _in_turn([_of(hit, producers(hit.tool, folded)) for hit in best])
    siblings = _in_turn(
        [_siblings(hits[0], more, folded) for hits, more in zip(needs, hidden, strict=True) if hits]
    )
    used = () if memory is None else _in_turn([_of(h, memory.beside(h.tool, folded)) for h in best])
    chosen: dict[str, Hit] = {}
    for found, more in (
        (used, _REMEMBERED_AT_MOST),
        (needed, _PRODUCERS_AT_MOST),
        (siblings, COMPANIONS_AT_MOST),
    ):
        at_most = min(len(chosen) + more, COMPANIONS_AT_MOST)
        for hit in found:
            if len(chosen) >= at_most:
                break
            if hit.name not in shown:
                chosen.setdefault(hit.name, Hit(hit.tool, hit.score, hit.need, "companion"))
    return tuple(chosen.values())


def _siblings(best: Hit, ranked: Sequence[Hit], folded: Catalog) -> Iterator[Hit]:
    """Yield what comes from where the best hit does: what a search ranked, then the others."""
    ranked = [hit for hit in ranked if hit.source == best.source]
    yield from ranked
    if best.source is not None:
        places = _names(folded).by_source.get(best.source, ())
        known = {hit.name for hit in ranked}
        others = (folded.tools[place] for place in places)
        yield from _of(best, (tool for tool in others if tool.name not in known))


def _of(hit: Hit, tools: Iterable[Tool]) -> Iterator[Hit]:
    return (Hit(tool, 0.0, hit.need) for tool in tools)


def _in_turn(lists: Iterable[Iterable[Hit]]) -> Iterator[Hit]:
    """Yield the first of every list, then the second of every list, and so on."""
    for row in zip_longest(*lists):
        yield from (hit for hit in row if hit is not None)


def producers(tool: Tool, folded: Catalog) -> tuple[Tool, ...]:
    """Return tools that give what a tool requires, in the order in which it requires it.

    Such a tool is named where the requirement is described; or it returns a property of that
    name; or its name says that it gets or finds the thing of which an id is required.
    """
    places = _PRODUCERS.get_or(
        (folded.fingerprint, tool.digest), lambda: tuple(_producers(tool, folded))
    )
    return tuple(folded.tools[place] for place in places)


class SoughtName(NamedTuple):
    """What the bare name of a tool holds that gives what another one requires."""

    words: tuple[str, ...]
    """All of these, in whatever form."""
    one_of: frozenset[str] | None
    """And one of these; None where nothing else is asked for."""
    is_near: bool
    """Whether it must be of the same source."""

    @property
    def letters(self) -> tuple[list[str], list[str]]:
        """Letters that a name holds with all of the words, and with one of the others.

        Any form of a word begins like its stem, but for the last letter of that.
        """
        return [*map(_root, self.words)], [*map(_root, sorted(self.one_of or ()))]


def sought_names(tool: Tool) -> tuple[SoughtName, ...]:
    """Return what the tools are called that may give what a tool requires."""
    found = (_sought(tool, list(raw_words(name))) for name, _ in _required(tool))
    return tuple(dict.fromkeys(sought for sought in found if sought is not None))


def mentioned_names(tool: Tool) -> tuple[str, ...]:
    """Return what may be names of tools where a tool's requirements are described."""
    return tuple(dict.fromkeys(name for _, text in _required(tool) for name in _identifiers(text)))


def _sought(tool: Tool, words: Sequence[str]) -> SoughtName | None:
    """Return what gives a requirement of some words is called, where its name can say so."""
    if not words:
        return None
    if words[-1] in _KEYS:
        thing = (
            words[:-1] or [word for word in raw_words(tool.bare_name) if word not in _GIVING][-1:]
        )
        return SoughtName(tuple(thing), _GIVING, is_near=True)
    if words[-1] in _PLACES:
        return SoughtName(("geocode",), None, is_near=True)
    return SoughtName((words[-1],), _NOW, is_near=False) if words[-1] in _TIMES else None


def _root(word: str) -> str:
    root = stem(word)
    return root[:-1] if len(root) > 3 else root


def _identifiers(text: str) -> Iterator[str]:
    """Yield what in a text may be the name of a tool."""
    for identifier in _IDENTIFIER.findall(text):
        if len(identifier) <= _NAMED_LIMIT and len(list(raw_words(identifier))) > 1:
            yield identifier


def _producers(tool: Tool, folded: Catalog) -> Iterable[int]:
    names, tools = _names(folded), folded.tools
    found: dict[int, None] = {}
    for requirement, text in _required(tool):
        giving = _giving(tool, requirement, text, names, tools)
        place = next((place for place in giving if tools[place].name != tool.name), None)
        if place is not None:
            found.setdefault(place)
    return found


def _required(tool: Tool) -> Iterator[tuple[str, str]]:
    """Yield the names of what a tool requires, each with its description."""
    required, properties = tool.parameters.get("required"), tool.parameters.get("properties")
    if not is_array(required) or not is_object(properties):
        return
    for name in required[:_REQUIRED_AT_MOST]:
        if isinstance(name, str) and is_object(schema := properties.get(name)):
            text = schema.get("description")
            yield name, text[:_TEXT_LIMIT] if isinstance(text, str) else ""


def _giving(
    tool: Tool, requirement: str, text: str, names: _Names, tools: Sequence[Tool]
) -> Iterator[int]:
    """Yield the places of tools that give a requirement, the surest first."""
    for identifier in _identifiers(text):
        place = names.by_name.get(identifier.lower(), -1)
        if place >= 0:
            yield place
    words = list(raw_words(requirement))
    if words and words[-1] in _KEYS:
        returned = names.by_output.get(requirement.lower(), ())
        yield from (place for place in returned if tools[place].source == tool.source)
    sought = _sought(tool, words)
    if sought is not None:
        near = tool if sought.is_near else None
        yield from _named(sought.words, sought.one_of, near, names, tools)


def _named(
    words: Iterable[str],
    one_of: frozenset[str] | None,
    near: Tool | None,
    names: _Names,
    tools: Sequence[Tool],
) -> list[int]:
    """Return the places of tools whose names hold all words and one of others, short ones first.

    Args:
        words: The words, in whatever form.
        one_of: Words of which one must be there, too.
        near: The tool whose source must be theirs, too.
        names: What the tools can be found by.
        tools: The tools.
    """
    none = frozenset[int]()
    held = [names.by_word.get(stem(word), none) for word in words]
    if one_of is not None:
        held.append(none.union(*(names.by_word.get(stem(word), none) for word in one_of)))
    places = held[0].intersection(*held[1:]) if held else none
    if near is not None:
        places = frozenset(place for place in places if tools[place].source == near.source)
    return sorted(places, key=lambda place: (len(tools[place].bare_name), place))


def _names(folded: Catalog) -> _Names:
    return _NAMES.get_or(folded.fingerprint, lambda: _names_of(folded.tools))


def _names_of(tools: Sequence[Tool]) -> _Names:
    by_word: dict[str, set[int]] = {}
    by_output: dict[str, list[int]] = {}
    by_name: dict[str, int] = {}
    by_source: dict[str, list[int]] = {}
    for place, tool in enumerate(tools):
        own = by_source.setdefault(tool.source or "", [])
        if len(own) < SIBLINGS_AT_MOST:
            own.append(place)
        for word in raw_words(tool.bare_name):
            by_word.setdefault(stem(word), set()).add(place)
        for name in {tool.name.lower(), tool.bare_name.lower()}:
            by_name[name] = -1 if name in by_name else place
        for name in _outputs(tool):
            by_output.setdefault(name.lower(), []).append(place)
    return _Names(
        {word: frozenset(places) for word, places in by_word.items()},
        {name: tuple(places) for name, places in by_output.items()},
        by_name,
        {source: tuple(places) for source, places in by_source.items()},
    )


def _outputs(tool: Tool) -> Iterable[str]:
    """Return the properties that a tool says it returns."""
    schema: Json = (tool.raw or {}).get("outputSchema")
    properties = schema.get("properties") if is_object(schema) else None
    return properties if is_object(properties) else ()
