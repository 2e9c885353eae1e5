"""Sources made of other sources: other names, or fewer tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

from toolfold import prompts
from toolfold._json_values import compact
from toolfold.absent import AbsentSource
from toolfold.scope import Scope
from toolfold.sources.calls import CallContext, Output
from toolfold.sources.mcp._exposed_names import exposed_name
from toolfold.sources.source import Bounds, Source
from toolfold.tool import Json, Tool, bare_name
from toolfold.wire.write import renamed

__all__ = ["Filtered", "Prefixed"]


class _Shown(NamedTuple):
    """A tool as it is shown, and as the other source has it."""

    tool: Tool
    inner: Tool


class _Wrapper(Source):
    """Another source, with a list of its own."""

    def __init__(self, inner: Source) -> None:
        self.name = inner.name
        self.is_hosts_own = inner.is_hosts_own
        self._inner = inner
        self._listed: tuple[Tool, ...] = ()
        self._shown: tuple[Tool, ...] = ()
        self._by_name: dict[str, _Shown] = {}

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, made anew where the other source's list is another."""
        listed = tuple(self._inner.tools())
        if listed is not self._listed:
            # A tool that stayed is shown as the very object that it was.
            known = {id(shown.inner): shown for shown in self._by_name.values()}
            made = [
                known.get(id(t)) or _Shown(shown, t)
                for t in listed
                if (shown := self._show(t)) is not None
            ]
            self._listed, self._shown = listed, tuple(tool for tool, _ in made)
            self._by_name = {tool.name: _Shown(tool, inner) for tool, inner in made}
        return self._shown

    def _show(self, tool: Tool) -> Tool | None:
        raise NotImplementedError

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Run a call at the other source, if the tool is still what was listed."""
        self.tools()
        found = self._by_name.get(tool.name)
        if found is None or found.tool is not tool:
            return Output(prompts.not_available(context.call.tool.shown_name, ()), is_error=True)
        return await self._inner.call(found.inner, arguments, context)

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        found = self._by_name.get(tool.name)
        return self._inner.bounds(tool if found is None else found.inner)

    @property
    def core(self) -> tuple[str, ...]:
        """The names of its tools that are never folded."""
        self.tools()
        opened = set(self._inner.core)
        return tuple(n for n, (_, inner) in self._by_name.items() if inner.name in opened)

    def absence(self) -> AbsentSource | None:
        """Return why the other source cannot be asked now."""
        away = self._inner.absence()
        return None if away is None else replace(away, name=self.name, tools=())

    def timed_out(self, tool: Tool, seconds: float) -> str:
        """Return what the model reads where a call took too long."""
        return self._inner.timed_out(tool, seconds)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called when the list of tools has changed; return what ends that."""
        return self._inner.on_change(listener)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(*error)


class Prefixed(_Wrapper):
    """A source whose tools are named `prefix__tool`, and belong to the source `prefix`.

    Their toolset is the prefix, too, so that `@prefix` means all of them and nothing else. A
    name that clients do not take is changed as one of a server is.

    Args:
        inner: The source.
        prefix: What stands before the names.
    """

    def __init__(self, inner: Source, prefix: str) -> None:
        super().__init__(inner)
        self.name = prefix

    def _show(self, tool: Tool) -> Tool:
        name = exposed_name(self.name, tool.name)
        own = "" if bare_name(name, self.name) == tool.name else tool.name
        shown = replace(tool, name=name, source=self.name, toolset=None, own_name=own)
        if tool.raw is None:
            return shown
        # The record goes out as it stands, so it must not know the old names any more.
        raw = renamed(tool.raw, tool.shape, name)
        own = {key: self.name for key in ("server", "source") if key in raw}
        raw = {**raw, **own} if tool.shape == "plain" else raw
        return replace(shown, raw=raw, size=len(compact(raw)))

    def inner_name(self, name: str) -> str:
        """Return the name that a tool has without the prefix."""
        found = self._by_name.get(name)
        return name if found is None else found.inner.name


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

    def absence(self) -> AbsentSource | None:
        """Return why the other source cannot be asked now, where the patterns leave any of it."""
        return super().absence() if self.tools() or self._scope.reaches(self.name) else None
