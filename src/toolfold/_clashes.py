"""Tools of one name: who keeps it, and what the others are served as.

A tool without a source is the host's own and gives way to nobody; two of them with one name
are a mistake of the host's. A tool of a source gives way to those, to the bridge, and to a
tool of an earlier source: it is served as `source__name`. So no source can keep a list from
being folded, or take a name that somebody relies on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from toolfold.errors import NameClashError
from toolfold.tool import Tool, wire_name
from toolfold.wire import Entry
from toolfold.wire.read import group_key
from toolfold.wire.write import served_as

__all__ = ["Renamed", "renamed_entries", "settled"]


class Renamed(NamedTuple):
    """A tool that is served under another name than its own."""

    source: str
    name: str
    """Its own name."""

    served_as: str
    """The name that the model reads and calls."""


def settled(
    tools: Sequence[Tool], reserved: Collection[str] = (), *, lenient: bool = False
) -> Mapping[int, str]:
    """Return the names under which tools are served that cannot have their own, by their places.

    Args:
        tools: The tools, in order.
        reserved: Names on the wire that none of them may have.
        lenient: Whether two of the host's own with one name are left as they are.

    Raises:
        NameClashError: Two tools without a source have one name, or one has a reserved name.
    """
    known = {tool.wire_name for tool in tools}
    if len(known) == len(tools) and known.isdisjoint(reserved):
        return {}
    taken: dict[str, Tool] = {}
    for tool in tools:
        if tool.source is None and not lenient:
            if tool.wire_name in taken:
                _refuse(taken[tool.wire_name], tool)
            if tool.wire_name in reserved:
                _refuse_reserved(tool)
        if tool.source is None:
            taken[tool.wire_name] = tool
    names: dict[int, str] = {}
    used = {*known, *reserved}
    for place, tool in enumerate(tools):
        if tool.source is None:
            continue
        if tool.wire_name in reserved or tool.wire_name in taken:
            names[place] = name = _free_name(tool, used)
            used.add(wire_name(name))
        else:
            taken[tool.wire_name] = tool
    return names


def renamed_entries(entries: Sequence[Entry], names: Mapping[int, str]) -> tuple[Entry, ...]:
    """Return entries with the tools at some places, counted over all of them, under other names."""
    if not names:
        return tuple(entries)
    out: list[Entry] = []
    place = 0
    for entry in entries:
        count = len(entry.tools)
        own = {i: names[place + i] for i in range(count) if place + i in names}
        out.append(_renamed_entry(entry, own) if own else entry)
        place += count
    return tuple(out)


def _renamed_entry(entry: Entry, names: Mapping[int, str]) -> Entry:
    tools = tuple(
        served_as(tool, names[i]) if i in names else tool for i, tool in enumerate(entry.tools)
    )
    key = group_key(entry.raw)
    if key is not None:
        raw = {**entry.raw, key: [tool.raw for tool in tools]}
    else:
        raw = tools[0] if isinstance(entry.raw, Tool) else tools[0].raw
    return entry._replace(raw=raw, tools=tools)


def _free_name(tool: Tool, used: Collection[str]) -> str:
    base = f"{tool.source}__{tool.own_name or tool.name}"
    name, number = base, 0
    while wire_name(name) in used:
        number += 1
        pair = f"{tool.digest}{number}".encode()
        name = f"{base}_{hashlib.sha1(pair, usedforsecurity=False).hexdigest()[:8]}"
    return name


def _refuse(one: Tool, other: Tool) -> None:
    name = other.name if other.name == one.name else other.wire_name
    raise NameClashError(name, (_owner(one), _owner(other)))


def _refuse_reserved(tool: Tool) -> None:
    raise NameClashError(
        tool.name,
        (_owner(tool), "toolfold's bridge"),
        hint="rename the tool, or the bridge with the setting `bridge_prefix`",
    )


def _owner(tool: Tool) -> str:
    return f"the {tool.shape or 'Python'} list"
