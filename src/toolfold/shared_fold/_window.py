"""The part of a shared catalog that one call is about: looked up as it is asked for.

A window is a catalog like any other to whoever asks it for a name, a source or a count. It
holds the tools that were named or found so far, and lives as long as the call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from toolfold._companions import SIBLINGS_AT_MOST, mentioned_names, sought_names
from toolfold.catalog import Catalog
from toolfold.search import Match
from toolfold.settings import Settings
from toolfold.shared.reading import CatalogReading, HeldLetters, SourceCounts
from toolfold.tool import Tool

__all__ = ["Outline", "Window", "WindowRanker"]


class Outline(Catalog):
    """A catalog of which it is known how many tools each source has, and no tool.

    Args:
        counts: How many tools each source has.
        open_tools: Those of them that are not folded.
        configured: The names of all sources that there are for anybody.
    """

    __slots__ = ("_counts",)

    def __init__(
        self,
        counts: SourceCounts,
        open_tools: Collection[Tool] = (),
        *,
        configured: Iterable[str] = (),
    ) -> None:
        super().__init__((), configured=(*filter(None, counts), *configured))
        left = dict(counts)
        for tool in open_tools:
            left[tool.source or ""] = left.get(tool.source or "", 0) - 1
        self._counts = {source: count for source, count in left.items() if count > 0}

    def __len__(self) -> int:
        return max(sum(self._counts.values()), len(self._tools))

    @property
    def sources(self) -> Mapping[str, int]:
        """The sources there are, by name, each with its number of tools."""
        return {source: n for source, n in sorted(self._counts.items()) if source}

    @property
    def fingerprint(self) -> str:
        """What names the content, as far as that is known."""
        return f"{super().fingerprint} {sorted(self._counts.items())}"


class Window(Outline):
    """A catalog that looks up what it is asked for.

    Args:
        reading: The shared catalog, as the call sees it.
        settings: What is said about tools beside what they say themselves.
        open_tools: The tools that are not folded.
        is_folded: Whether it holds the folded ones alone.
        configured: The names of all sources that there are for anybody.
    """

    __slots__ = ("_looked_up", "_open", "_reading", "_settings")

    def __init__(
        self,
        reading: CatalogReading,
        settings: Settings,
        open_tools: Collection[Tool] = (),
        *,
        is_folded: bool = True,
        configured: Iterable[str] = (),
    ) -> None:
        super().__init__(reading.sources, open_tools if is_folded else (), configured=configured)
        self._reading = reading
        self._settings = settings
        self._open = frozenset(tool.name for tool in open_tools) if is_folded else frozenset[str]()
        self._looked_up: set[str] = set()

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self._look_up(name)
        return super().__contains__(name)

    def find(self, name: str) -> Tool | None:
        """Return the tool that runs where a model calls `name`, or None; see `Catalog.find`."""
        self._look_up(name)
        return super().find(name)

    def search(self, query: str, limit: int) -> list[Match]:
        """Return the best matches of a query, by their places among the tools so far."""
        found = self._reading.search(query, limit + len(self._open))
        tools = [self._settings.applied(hit.tool) for hit in found]
        self._take(tools)
        places = {name: place for place, name in enumerate(self._by_name)}
        return [
            Match(places[tool.name], hit.score)
            for tool, hit in zip(tools, found, strict=True)
            if tool.name in places
        ][:limit]

    def beside(self, tools: Sequence[Tool]) -> Catalog:
        """Return what may be needed beside some tools: names, in the order in which they came.

        These are the first tools of their sources, those that they name, and those whose names
        say that they give what one of them requires.
        """
        sources = dict.fromkeys(tool.source or "" for tool in tools)
        found = dict(self._reading.names_of(list(sources), SIBLINGS_AT_MOST))
        sought: list[HeldLetters] = []
        for tool in tools:
            for name in sought_names(tool):
                every, one_of = name.letters
                source = (tool.source or "") if name.is_near else None
                sought.append(HeldLetters(tuple(every), tuple(one_of), source))
        found.update(self._reading.holding(sought, SIBLINGS_AT_MOST))
        found.update(self._reading.named([n for tool in tools for n in mentioned_names(tool)]))
        left = {
            tool.wire_name: tool
            for _, tool in sorted(found.items(), key=lambda pair: pair[0])
            if tool.name not in self._open
        }
        return Catalog(left.values())

    def in_full(self, names: Sequence[str]) -> Mapping[str, Tool]:
        """Return tools by their names."""
        applied, reach = self._settings.applied, self._reading.reach
        found = {tool.name: applied(tool) for _, tool in self._reading.named(names)}
        return {name: found[name] for name in names if name in found and found[name] in reach}

    def _look_up(self, name: str) -> None:
        if name not in self._looked_up:
            self._looked_up.add(name)
            self._take(self._settings.applied(tool) for _, tool in self._reading.named([name]))

    def _take(self, tools: Iterable[Tool]) -> None:
        """Hold more tools; those that are held keep their places.

        What the settings say of a tool may leave it out: that it changes something, say.
        """
        new = [
            tool
            for tool in tools
            if tool in self._reading.reach
            and tool.name not in self._open
            and tool.name not in self._by_name
            and tool.wire_name not in self._by_wire
        ]
        if new:
            self._tools = (*self._tools, *new)
            self._by_name.update((tool.name, tool) for tool in new)
            self._by_wire.update((tool.wire_name, tool) for tool in new)
            self._forms = self._fingerprint = self._last_meant = None


class WindowRanker:
    """Ranks as the shared catalog does.

    Args:
        window: What is searched.
    """

    name = "shared"
    calibrated = True
    waits = True
    kept = False

    def __init__(self, window: Window) -> None:
        self._window = window

    def searcher(self, tools: Sequence[Tool]) -> WindowRanker:
        """Return a searcher over the window, whichever of its tools are there."""
        return self

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return at most `limit` matches, best first."""
        return self._window.search(query, limit)

    def explain(self, query: str, position: int) -> str:
        """Say that the shared catalog found it."""
        return "the shared catalog ranks it"
