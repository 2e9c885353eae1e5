"""Python functions as a source, and every other tool that a host runs itself.

A `Registry` is the only place that knows which function stands behind a tool. Hosts read
it anew on every assembly, so a tool that comes or goes is there or gone on the next turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

from toolfold import prompts
from toolfold._signature import signature
from toolfold.catalog import owner
from toolfold.errors import ConfigError, InvalidToolError, NameClashError
from toolfold.sources._listeners import Listeners
from toolfold.sources._threads import in_thread
from toolfold.sources.calls import CallContext, Output, PendingCall
from toolfold.sources.functions import bind, takes_json, tool_from_function
from toolfold.sources.source import RESULT_LIMIT, TIMEOUT, Bounds, Source
from toolfold.tool import Json, Policy, Tool
from toolfold.wire import read

__all__ = ["Registered", "Registry", "Runner"]

Runner: TypeAlias = Callable[[PendingCall], Awaitable[Json]]
"""Runs a call and returns its result: an `Output`, a text, or any JSON value."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Registered:
    """A tool with what runs it and what bounds it."""

    tool: Tool

    run: Runner | None = None
    """What runs it; None where its function does."""

    timeout: float | None = TIMEOUT
    """Seconds after which it is cancelled; None for never."""

    result_limit: int = RESULT_LIMIT
    """Characters of its result that reach the model."""

    parallel: bool | None = None
    """Whether it may run beside others; None: unless it says of itself that it destroys."""

    core: bool = False
    """Whether it is never folded."""

    def __post_init__(self) -> None:
        self.bounds.check(self.tool.name)

    @cached_property
    def bounds(self) -> Bounds:
        """What bounds its calls."""
        return Bounds(self.timeout, self.result_limit, self.parallel)

    @property
    def may_run_beside_others(self) -> bool:
        """Whether it may run beside others."""
        return self.bounds.lets_run_beside_others(self.tool)


class _Kind(NamedTuple):
    """How a function is called; found out once."""

    is_asynchronous: bool
    takes_json: bool


class Registry(Source):
    """Functions and other tools by name, grouped in toolsets that can be switched off.

    Example:
        registry = Registry()

        @registry.tool(toolset="calendar", read_only=True)
        def list_events(day: str) -> list[str]:
            "List the events of a day."
            return calendar[day]

    Args:
        name: What it is called among an agent's sources.
    """

    is_hosts_own = True

    def __init__(self, name: str = "functions") -> None:
        self.name = name
        self._listeners = Listeners()
        self._shown: tuple[Tool, ...] | None = None
        self._core: tuple[str, ...] | None = None
        self._kinds: dict[str, _Kind] = {}
        self._entries: dict[str, Registered] = {}
        self._disabled: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def entries(self) -> tuple[Registered, ...]:
        """What is registered and not switched off, in the order of registration."""
        if not self._disabled:
            return tuple(self._entries.values())
        return tuple(e for e in self._entries.values() if not self._is_off(e.tool))

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that are registered and not switched off."""
        if self._shown is None:
            self._shown = tuple(entry.tool for entry in self.entries)
        return self._shown

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Run what stands behind a tool, if it is still there: a plain function in a thread."""
        entry = self.get(tool.name)
        if entry is None or entry.tool is not tool:
            return Output(prompts.not_available(context.call.tool.shown_name, ()), is_error=True)
        if entry.run is not None:
            return await entry.run(context.call)
        function = entry.tool.function
        assert function is not None  # `add` takes no tool without either
        kind = self._kinds.get(tool.name)
        if kind is None:
            kind = _Kind(_is_asynchronous(function), takes_json(function))
            self._kinds[tool.name] = kind
        run = function if kind.takes_json else None
        if not kind.is_asynchronous:
            returned = await in_thread(lambda: _called(function, run, context.call))
        else:
            returned = _called(function, run, context.call)
        return await returned if inspect.isawaitable(returned) else returned

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        entry = self._entries.get(tool.name)
        return super().bounds(tool) if entry is None else entry.bounds

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called when a tool comes or goes; return what ends that."""
        return self._listeners.add(listener)

    def _changed(self) -> None:
        self._shown = self._core = None
        self._kinds.clear()
        self._listeners.tell()

    @property
    def core(self) -> tuple[str, ...]:
        """The names of the tools that are never folded."""
        if self._core is None:
            self._core = tuple(entry.tool.name for entry in self.entries if entry.core)
        return self._core

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The toolsets that there are, those switched off included."""
        names = (entry.tool.toolset_name for entry in self._entries.values())
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def get(self, name: str) -> Registered | None:
        """Return what is registered under a name, if it is not switched off."""
        entry = self._entries.get(name)
        return None if entry is None or self._is_off(entry.tool) else entry

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        toolset: str | None = None,
        policy: Policy = "automatic",
        aliases: Iterable[str] = (),
        read_only: bool | None = None,
        destructive: bool | None = None,
        timeout: float | None = TIMEOUT,
        result_limit: int = RESULT_LIMIT,
        parallel: bool | None = None,
        core: bool = False,
    ) -> Any:
        """Register a function, plain or asynchronous; a decorator, with or without arguments.

        Args:
            function: The function.
            name: The tool's name; by default the function's.
            toolset: Its group; by default the function's module.
            policy: Whether it may be folded.
            aliases: More words under which it is found.
            read_only: Whether it changes nothing.
            destructive: Whether it may destroy something.
            timeout: Seconds after which it is cancelled; None for never.
            result_limit: Characters of its result that reach the model.
            parallel: Whether it may run beside others; by default, unless it is destructive.
            core: Whether it is never folded.
        """

        def register(given: F) -> F:
            hints = {"readOnlyHint": read_only, "destructiveHint": destructive}
            made = replace(
                tool_from_function(given, name=name),
                toolset=toolset,
                policy=policy,
                aliases=tuple(aliases),
                annotations={key: hint for key, hint in hints.items() if hint is not None},
            )
            self.add(made, timeout=timeout, result_limit=result_limit, parallel=parallel, core=core)
            return given

        return register if function is None else register(function)

    def add(
        self,
        tool: Tool | Mapping[str, Json] | Callable[..., Any],
        run: Runner | None = None,
        *,
        timeout: float | None = TIMEOUT,
        result_limit: int = RESULT_LIMIT,
        parallel: bool | None = None,
        core: bool = False,
    ) -> Registered:
        """Register a tool, in any wire shape, with what runs it.

        Args:
            tool: The tool; a function is its own runner.
            run: Runs a call.
            timeout: Seconds after which it is cancelled; None for never.
            result_limit: Characters of its result that reach the model.
            parallel: Whether it may run beside others; by default, unless it is destructive.
            core: Whether it is never folded.

        Raises:
            InvalidToolError: It is no tool, or nothing runs it.
            NameClashError: The name is taken.
        """
        made = _tool(tool)
        if run is None and made.function is None:
            raise InvalidToolError(
                f"nothing runs the tool {made.name!r}", hint="give `run`, or a Python function"
            )
        taken = self._entries.get(made.name)
        if taken is not None:
            raise NameClashError(made.name, (owner(taken.tool), owner(made)))
        entry = Registered(made, run, timeout, result_limit, parallel, core)
        self._entries[made.name] = entry
        self._changed()
        return entry

    def add_source(
        self,
        tools: Iterable[Tool | Mapping[str, Json]],
        run: Runner,
        *,
        source: str | None = None,
        timeout: float | None = TIMEOUT,
        result_limit: int = RESULT_LIMIT,
    ) -> tuple[Registered, ...]:
        """Register the tools of a source, all run by one function.

        Either all are registered or, where one cannot be, none is.
        """
        made = [_tool(tool, source) for tool in tools]
        before = dict(self._entries)
        try:
            return tuple(
                self.add(tool, run, timeout=timeout, result_limit=result_limit) for tool in made
            )
        except Exception:
            self._entries = before
            self._changed()
            raise

    def include(self, other: Registry) -> None:
        """Register all that another registry holds."""
        for entry in other.entries:
            self.add(
                entry.tool,
                entry.run,
                timeout=entry.timeout,
                result_limit=entry.result_limit,
                parallel=entry.parallel,
                core=entry.core,
            )

    def remove(self, name: str) -> None:
        """Take a tool out, if it is there."""
        self._entries.pop(name, None)
        self._changed()

    def disable(self, *toolsets: str) -> None:
        """Switch toolsets off: their tools exist for nobody until they are switched on."""
        self._check(toolsets)
        self._disabled.update(toolsets)
        self._changed()

    def enable(self, *toolsets: str) -> None:
        """Switch toolsets on again."""
        self._check(toolsets)
        self._disabled.difference_update(toolsets)
        self._changed()

    def _check(self, toolsets: Iterable[str]) -> None:
        for name in toolsets:
            if name not in self.toolsets and name not in self._disabled:
                there = ", ".join(self.toolsets) or "none"
                raise ConfigError(f"no toolset is named {name!r}", hint=f"there are: {there}")

    def _is_off(self, tool: Tool) -> bool:
        return tool.toolset_name in self._disabled


def _tool(given: object, source: str | None = None) -> Tool:
    if isinstance(given, Tool):
        return given
    tools = read([given], source=source)[0].tools
    if len(tools) != 1:
        raise InvalidToolError(
            f"one record holds {len(tools)} tools", hint="register them one by one"
        )
    return tools[0]


def _called(
    function: Callable[..., Any], as_it_is: Callable[..., Any] | None, call: PendingCall
) -> Any:
    """Call a function with what its signature says; answer what cannot be made into that."""
    if as_it_is is not None:
        return as_it_is(**call.arguments)
    bound = bind(function, call.arguments)
    if bound.faults:
        text = prompts.bad_arguments(call.tool.shown_name, bound.faults, signature(call.tool))
        return Output(text, is_error=True)
    return function(**bound.arguments)


def _is_asynchronous(function: Callable[..., Any]) -> bool:
    """Whether a call of a function must be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )
