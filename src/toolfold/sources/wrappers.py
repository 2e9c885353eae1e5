"""Sources made of other sources: other names, or fewer tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from toolfold.scope import Scope
from toolfold.sources.calls import CallContext
from toolfold.sources.source import Bounds, Source
from toolfold.tool import Json, Tool

__all__ = ["Filtered", "Prefixed"]


class _Wrapper(Source):
    """Another source, with a list of its own."""

    def __init__(self, inner: Source) -> None:
        self.name = inner.name
        self.is_hosts_own = inner.is_hosts_own
        self._inner = inner
        self._listed: Sequence[Tool] = ()
        self._shown: tuple[Tool, ...] = ()
        self._within: dict[str, Tool] = {}

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, made anew where the other source's list is another."""
        listed = self._inner.tools()
        if listed is not self._listed:
            made = {tool: shown for tool in listed if (shown := self._show(tool)) is not None}
            self._listed, self._shown = listed, tuple(made.values())
            self._within = {shown.name: tool for tool, shown in made.items()}
        return self._shown

    def _show(self, tool: Tool) -> Tool | None:
        raise NotImplementedError

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Run a call at the other source, under the name that the tool has there."""
        return await self._inner.call(self._within[tool.name], arguments, context)

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return self._inner.bounds(self._within.get(tool.name, tool))

    def timed_out(self, tool: Tool, seconds: float) -> str:
        """Return what the model reads where a call took too long."""
        return self._inner.timed_out(tool, seconds)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have a listener called when the list of tools has changed."""
        self._inner.on_change(listener)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(*error)


class Prefixed(_Wrapper):
    """A source whose tools are named `prefix__tool`, and belong to the source `prefix`.

    Args:
        inner: The source.
        prefix: What stands before the names.
    """

    def __init__(self, inner: Source, prefix: str) -> None:
        super().__init__(inner)
        self.name = prefix

    def _show(self, tool: Tool) -> Tool:
        return replace(tool, name=f"{self.name}__{tool.name}", source=self.name)


class Filtered(_Wrapper):
    """A source with fewer tools.

    Args:
        inner: The source.
        allow: Patterns over the tools' names of which one must match.
        deny: Patterns of which none may match.
    """

    def __init__(
        self, inner: Source, *, allow: Iterable[str] = ("*",), deny: Iterable[str] = ()
    ) -> None:
        super().__init__(inner)
        self._scope = Scope(tuple(allow), tuple(deny))

    def _show(self, tool: Tool) -> Tool | None:
        return tool if tool in self._scope else None
