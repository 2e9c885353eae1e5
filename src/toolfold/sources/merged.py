"""Several sources as one list of tools, each tool with the source that runs it.

The list follows the order of the sources, and each one's own order within it, so the same
sources give the same bytes whoever was ready first. A name belongs to one of them: a tool
that says it is of a source gives way to one that does not, and the later source to the
earlier. The one that gives way is served as `source__name`.
"""

from __future__ import annotations

import asyncio
import logging
import operator
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Self

from toolfold.absent import AbsentSource
from toolfold.errors import ConfigError
from toolfold.scope import EVERYTHING, Scope
from toolfold.sources.mcp._exposed_names import exposed_name
from toolfold.sources.source import Source
from toolfold.tool import Tool, wire_name
from toolfold.wire.write import served_as

__all__ = ["Located", "Sources"]

_log = logging.getLogger(__name__)


class Located(NamedTuple):
    """A tool and the source that runs it."""

    tool: Tool
    """The source's own object."""
    source: Source


class Sources:
    """Sources in an order, read anew whenever one of their lists is another.

    Args:
        sources: The sources.

    Raises:
        ConfigError: Two have one name.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        self.all = tuple(sources)
        names = [source.name for source in self.all]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(
                    f"two sources are named {name!r}", hint="give each a name of its own"
                )
        self._lists: tuple[tuple[Tool, ...], ...] = ()
        self._located: dict[str, Located] = {}
        self._tools: dict[str, Tool] = {}
        self._all: tuple[Tool, ...] = ()
        self._told: set[tuple[str, str]] = set()
        self._opened: _Opened | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sources) and self.all == other.all

    def __hash__(self) -> int:
        return hash(self.all)

    def tools(self) -> tuple[Tool, ...]:
        """Return all tools that are there now; the same object while no list changes."""
        self._read()
        return self._all

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources that tools may say they are of, with a tool now or without."""
        self._read()
        return tuple(
            source.name
            for source, tools in zip(self.all, self._lists, strict=True)
            if not tools or any(tool.source == source.name for tool in tools)
        )

    def absent(self, scope: Scope = EVERYTHING) -> tuple[AbsentSource, ...]:
        """Return the sources that cannot be asked now and of which a scope holds tools."""
        found: list[AbsentSource] = []
        for source in self.all:
            away = source.absence()
            if away is not None:
                reached = scope.reaches(source.name)
                seen = away.seen_by(scope.__contains__, source.tools(), is_reached=reached)
                found += [] if seen is None else [seen]
        return tuple(found)

    def find(self, name: str) -> Located | None:
        """Return the tool of a name as it is now, and its source, if it is there."""
        self._read()
        return self._located.get(name)

    def served(self, name: str) -> Tool | None:
        """Return the tool of a name as `tools` lists it; where it gave way, under that name."""
        self._read()
        return self._tools.get(name)

    @property
    def core(self) -> tuple[str, ...]:
        """The names of the tools that are never folded, as they are served."""
        kept = {(source.name, name) for source in self.all for name in source.core}
        if not kept:
            return ()
        self._read()
        return tuple(
            name for name, (tool, own) in self._located.items() if (own.name, tool.name) in kept
        )

    def _read(self) -> None:
        # A tuple is its own copy; any other list may have been changed in its place.
        lists = tuple([tuple(source.tools()) for source in self.all])
        if len(lists) == len(self._lists) and all(map(operator.is_, lists, self._lists)):
            return
        self._lists = lists
        self._located, self._tools = {}, {}
        every = [Located(t, s) for s, own in zip(self.all, lists, strict=True) for t in own]
        owners = _owners(every)
        used = set(owners)
        for each in every:
            owner = owners[each.tool.wire_name]
            if owner.tool is each.tool or (owner.source is each.source and not _same(owner, each)):
                self._place(each.tool, each)
            elif owner.source is each.source:
                self._tell(each, f"is left out: source {each.source.name} has another")
            else:
                name = _free_name(each, used)
                used.add(wire_name(name))
                self._place(served_as(each.tool, name), each)
                self._tell(each, f"is served as {name}: source {owner.source.name} has one")
        self._all = tuple(self._tools.values())

    def _place(self, shown: Tool, located: Located) -> None:
        self._tools[shown.name] = shown
        self._located[shown.name] = located

    def _tell(self, located: Located, what: str) -> None:
        tool, source = located
        if (source.name, tool.name) not in self._told:
            self._told.add((source.name, tool.name))
            _log.warning("the tool %s of source %s %s of that name", tool.name, source.name, what)

    async def __aenter__(self) -> Self:
        """Open all sources, all at once; where they are open already, they stay so."""
        if self._opened is None:
            self._opened = _Opened(self.all)
        self._opened.users += 1
        try:
            await self._opened.ready()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all sources, all at once, when the last who opened them is done."""
        opened = self._opened
        if opened is None:
            return
        opened.users -= 1
        if not opened.users:
            self._opened = None
            await opened.close()


def _same(one: Located, other: Located) -> bool:
    return one.tool.name == other.tool.name


def _owners(every: Sequence[Located]) -> dict[str, Located]:
    """Return who has each name on the wire: the host's own tools first, then the first source."""
    owners: dict[str, Located] = {}
    for is_claimed in (False, True):
        for each in every:
            if (each.tool.source is not None) is is_claimed:
                owners.setdefault(each.tool.wire_name, each)
    return owners


def _free_name(located: Located, used: Collection[str]) -> str:
    base = name = exposed_name(located.source.name, located.tool.name)
    number = 1
    while wire_name(name) in used:
        number += 1
        name = f"{base}_{number}"
    return name


class _Opened:
    """Sources that are open, each held by a task of its own from its opening to its close.

    One task for both: what a source opens with may have to be closed where it was opened.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.users = 0
        self._closing = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._ready: list[asyncio.Future[None]] = [loop.create_future() for _ in sources]
        self._tasks = [
            asyncio.create_task(self._hold(source, ready), name=f"source {source.name}")
            for source, ready in zip(sources, self._ready, strict=True)
        ]

    async def _hold(self, source: Source, ready: asyncio.Future[None]) -> None:
        try:
            async with source:
                ready.set_result(None)
                await self._closing.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)
            ready.exception()  # read, though nobody may wait for it any more

    async def ready(self) -> None:
        """Return when all are open.

        Raises:
            BaseException: What the first of them raised that could not be opened.
        """
        if self._ready:
            await asyncio.wait(self._ready, return_when=asyncio.FIRST_EXCEPTION)
        for ready in self._ready:
            if ready.done():
                ready.result()

    async def close(self) -> None:
        """Close what is open, and give up what is still being opened."""
        self._closing.set()
        for task, ready in zip(self._tasks, self._ready, strict=True):
            if not ready.done():
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.result()
