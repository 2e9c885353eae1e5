"""A caller's list of tools on its way in: read, scoped, named, and in the shape asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from toolfold._memo import Memo
from toolfold.errors import CatalogError
from toolfold.scope import Scope
from toolfold.settings import Settings
from toolfold.tool import Shape, Tool, is_mapping
from toolfold.wire import Entry, read

__all__ = ["Intake", "intake"]

_log = logging.getLogger(__name__)
_TOLD: Memo[Scope, bool] = Memo(256)


class Intake(NamedTuple):
    """What came in."""

    entries: tuple[Entry, ...]
    """The entries that the scope leaves."""

    sources: frozenset[str]
    """The names of the sources there were before a scope narrowed them."""


def intake(
    tools: Iterable[object],
    settings: Settings,
    scope: Scope,
    shape: Shape | None,
    *,
    lenient: bool,
) -> Intake:
    """Return the entries of a list that a scope leaves.

    Args:
        tools: The list, in any shape.
        settings: What is said about the tools beside what they say themselves.
        scope: Which tools exist for the caller.
        shape: The shape in which all are to be written; None leaves each its own.
        lenient: Whether what cannot be read passes through instead of raising.
    """
    entries = _entries(tools, lenient=lenient)
    sources: frozenset[str] = frozenset()
    if not scope.holds_everything:
        every = [tool for entry in entries for tool in entry.tools]
        sources = frozenset(tool.source for tool in every if tool.source is not None)
        _tell_unmatched(scope, [*every, *(_own_tool(e) for e in entries if not e.tools)])
        entries = _within(entries, scope)
    if settings.aliases or settings.annotations:
        entries = _applied(entries, settings)
    return Intake(_in_shape(entries, shape) if shape else entries, sources)


def _tell_unmatched(scope: Scope, tools: Sequence[Tool]) -> None:
    """Say once which patterns of a scope match nothing: they may be misspelt."""
    if _TOLD.get(scope) is None:
        _TOLD.put(scope, True)
        for pattern in scope.unmatched(tools):
            _log.warning("the scope's pattern %r matches no tool", pattern)


def _entries(tools: Iterable[object], *, lenient: bool) -> tuple[Entry, ...]:
    if not lenient:
        return read(tools)
    items = list(tools)
    try:
        return read(items)
    except CatalogError:
        return tuple(entry for item in items for entry in _lenient(item))


def _lenient(item: object) -> tuple[Entry, ...]:
    try:
        return read([item])
    except CatalogError:
        # With folding off nothing may stand between the caller and the provider.
        return (Entry(item, None, (), (), 0),)


def _in_shape(entries: Sequence[Entry], shape: Shape) -> tuple[Entry, ...]:
    """Return the entries with those of another shape taken apart, to be written in this."""
    return tuple(
        part
        for entry in entries
        for part in ((entry,) if entry.shape in (shape, None) else entry.as_tools())
    )


def _within(entries: Sequence[Entry], scope: Scope) -> tuple[Entry, ...]:
    """Return the entries with the tools that the scope leaves."""
    kept: list[Entry] = []
    for entry in entries:
        if not entry.tools:
            if _own_tool(entry) in scope:
                kept.append(entry)
            continue
        inside = [i for i, tool in enumerate(entry.tools) if tool in scope]
        left = entry if len(inside) == len(entry.tools) else entry.only(inside)
        if left is not None:
            kept.append(left)
    return tuple(kept)


def _own_tool(entry: Entry) -> Tool:
    """Return what a provider's own entry, or an unreadable one, is called, for a scope to judge."""
    raw: Mapping[str, object] = entry.raw if is_mapping(entry.raw) else {}
    named = [raw[key] for key in ("name", "type") if isinstance(raw.get(key), str)]
    return Tool(str(next(iter([*named, *raw, "unreadable"]))) or "unreadable")


def _applied(entries: Sequence[Entry], settings: Settings) -> tuple[Entry, ...]:
    return tuple(
        entry._replace(tools=tuple(settings.applied(tool) for tool in entry.tools))
        for entry in entries
    )
