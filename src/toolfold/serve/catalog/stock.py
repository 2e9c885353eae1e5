"""The one list of tools that all sources make together, at one moment."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from toolfold.serve.catalog.kept_names import Claim, KeptNames
from toolfold.sources.mcp.mcp_source import McpSource, Route
from toolfold.sources.merged import Located
from toolfold.sources.source import Source
from toolfold.sources.wrappers import Prefixed
from toolfold.tool import Tool
from toolfold.wire.write import served_as

__all__ = ["Route", "Stock", "merged"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stock:
    """The merged tools of all sources at one moment."""

    number: int
    """Counts the changes."""

    tools: tuple[Tool, ...]
    routes: Mapping[str, Route]
    sources: Mapping[str, Located]
    """By name: the source's own tool, and the source; a server's is the one that all share."""

    core: tuple[str, ...] = ()
    """The names of those that their source never has folded."""


def merged(
    number: int,
    every: Mapping[str, Source],
    names: KeptNames,
    awaited: Callable[[Source], Iterable[Tool]],
    *,
    was_seen: bool,
) -> Stock:
    """Put the list together.

    Args:
        number: Counts the changes.
        every: The sources by name, in order.
        names: Settles which tool has which name.
        awaited: Returns the tools that keep a name for a source which is not there yet.
        was_seen: Whether somebody may have seen what came of the last time.
    """
    tools: list[Tool] = []
    routes: dict[str, Route] = {}
    sources: dict[str, Located] = {}
    core: list[str] = []
    claims: list[Claim] = []
    for name, source in every.items():
        claims += (Claim(tool, name) for tool in source.tools())
        claims += (Claim(tool, name, is_awaited=True) for tool in awaited(source))
        core += source.core
    other_names = names.settle(claims, was_seen=was_seen)
    for place, (tool, name, is_awaited) in enumerate(claims):
        if is_awaited:
            continue
        source = every[name]
        served = served_as(tool, other_names[place]) if place in other_names else tool
        if served.name in routes:
            _log.warning("two tools come to the name %s: one is left out", tool.name)
            continue
        tools.append(served)
        routes[served.name] = _route(source, tool)
        sources[served.name] = Located(tool, source)
    return Stock(number, tuple(tools), routes, sources, tuple(core))


def _route(source: Source, tool: Tool) -> Route:
    """Return where a tool is really called."""
    if isinstance(source, McpSource):
        return source.route(tool.name)
    own = source.inner_name(tool.name) if isinstance(source, Prefixed) else tool.bare_name
    return Route(source.name, own)
