"""Sources made of other sources: other names, or fewer tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from toolfold import prompts
from toolfold._json_values import compact
from toolfold.scope import Scope
from toolfold.sources.calls import CallContext, Output
from toolfold.sources.source import Bounds, Source
from toolfold.tool import Json, Tool
from toolfold.wire.write import renamed

__all__ = ["Filtered", "Prefixed"]


class _Wrapper(Source):
    """Another source, with a list of its own."""

    def __init__(self, inner: Source) -> None:
        self.name = inner.name
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
        within = self._within.get(tool.name)
        if within is None:  # it has left since the call was located
            return Output(prompts.not_available(tool.shown_name, ()), is_error=True)
        return await self._inner.call(within, arguments, context)

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
        name = f"{self.name}__{tool.name}"
        if tool.raw is None:
            return replace(tool, name=name, source=self.name)
        # The record goes out as it stands, so it must not know the old names any more.
        raw = renamed(tool.raw, tool.shape, name)
        own = {key: self.name for key in ("server", "source") if key in raw}
        raw = {**raw, **own} if tool.shape == "plain" else raw
        return replace(tool, name=name, source=self.name, raw=raw, size=len(compact(raw)))


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
