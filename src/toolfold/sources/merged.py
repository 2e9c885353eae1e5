"""Several sources as one list of tools, each tool with the source that runs it.

The list follows the order of the sources, and each one's own order within it, so the same
sources give the same bytes whoever was ready first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
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
        self._lists: tuple[Sequence[Tool], ...] = ()
        self._located: dict[str, Located] = {}
        self._tools: tuple[Tool, ...] = ()
        self._opened: AsyncExitStack | None = None

    def tools(self) -> tuple[Tool, ...]:
        """Return all tools that are there now; the same object while no list changes."""
        self._read()
        return self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources that tools may say they are of, with a tool now or without."""
        self._read()
        return tuple(
            source.name
            for source, tools in zip(self.all, self._lists, strict=True)
            if not tools or any(tool.source == source.name for tool in tools)
        )

    def find(self, name: str) -> Located | None:
        """Return the tool of a name as it is now, and its source, if it is there."""
        self._read()
        return self._located.get(name)

    @property
    def core(self) -> tuple[str, ...]:
        """The names of the tools that are never folded."""
        self._read()
        return tuple(n for n, (tool, source) in self._located.items() if source.bounds(tool).core)

    def _read(self) -> None:
        lists = tuple(source.tools() for source in self.all)
        if len(lists) == len(self._lists) and all(map(_is, lists, self._lists)):
            return
        located: dict[str, Located] = {}
        for source, tools in zip(self.all, lists, strict=True):
            for tool in tools:
                taken = located.setdefault(tool.name, Located(tool, source))
                if taken.tool is not tool:
                    _log.warning(
                        "the tool %s of source %s is left out: source %s has one of that name",
                        tool.name, source.name, taken.source.name,
                    )  # fmt: skip
        self._lists, self._located = lists, located
        self._tools = tuple(tool for tool, _ in located.values())

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for source in self.all:
                await stack.enter_async_context(source)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


def _is(one: object, other: object) -> bool:
    return one is other
