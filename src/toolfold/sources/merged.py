"""Several sources as one list of tools, each tool with the source that runs it.

The list follows the order of the sources, and each one's own order within it, so the same
sources give the same bytes whoever was ready first.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import NamedTuple, Self

from toolfold.errors import ConfigError
from toolfold.sources.source import Source
from toolfold.tool import Tool

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
        self._tools: tuple[Tool, ...] = ()
        self._core: tuple[str, ...] = ()
        self._left_out: set[tuple[str, str]] = set()
        self._opened: list[AsyncExitStack] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sources) and self.all == other.all

    def __hash__(self) -> int:
        return hash(self.all)

    def tools(self) -> tuple[Tool, ...]:
        """Return all tools that are there now; the same object while no list changes."""
        self._read()
        return self._tools

    def find(self, name: str) -> Located | None:
        """Return the tool of a name as it is now, and its source, if it is there."""
        self._read()
        return self._located.get(name)

    @property
    def core(self) -> tuple[str, ...]:
        """The names of the tools that are never folded."""
        self._read()
        return self._core

    def _read(self) -> None:
        # A tuple is its own copy; any other list may have been changed in its place.
        lists = tuple(tuple(source.tools()) for source in self.all)
        if len(lists) == len(self._lists) and all(map(operator.is_, lists, self._lists)):
            return
        located: dict[str, Located] = {}
        for source, tools in zip(self.all, lists, strict=True):
            for tool in tools:
                taken = located.setdefault(tool.name, Located(tool, source))
                if taken.tool is not tool:
                    self._tell_left_out(tool, source, taken.source)
        self._lists, self._located = lists, located
        self._tools = tuple(tool for tool, _ in located.values())
        self._core = tuple(n for n, (tool, source) in located.items() if source.bounds(tool).core)

    def _tell_left_out(self, tool: Tool, source: Source, other: Source) -> None:
        if (source.name, tool.name) not in self._left_out:
            self._left_out.add((source.name, tool.name))
            _log.warning(
                "the tool %s of source %s is left out: source %s has one of that name",
                tool.name, source.name, other.name,
            )  # fmt: skip

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for source in self.all:
                await stack.enter_async_context(source)
            self._opened.append(stack.pop_all())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.pop().aclose()
