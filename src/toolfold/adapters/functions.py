"""Any framework: sources behind three Python functions, which everything takes as tools.

MCP servers, functions and files are opened once; each conversation gets functions of its own.
A call through them goes the one way of every call here: scope, hooks, deadlines, records.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Self, cast

from toolfold import prompts
from toolfold.answer import Answer, Invocation
from toolfold.dispatch.dispatch import Dispatch, Origin
from toolfold.dispatch.hooks import Hook
from toolfold.dispatch.outputs import bounded
from toolfold.dispatch.records import Observer
from toolfold.errors import ToolfoldError
from toolfold.fold import Folded, fold
from toolfold.scope import EVERYTHING, Scope
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.sources.calls import PendingCall
from toolfold.sources.merged import Sources
from toolfold.sources.source import Source

__all__ = ["FoldedSources"]


class FoldedSources:
    """Sources that an agent of any framework reaches through three functions.

    Example:
        async with FoldedSources(servers) as tools:
            agent = Agent(model, tools=tools.functions())

    Args:
        sources: MCP servers, registries of functions, files, in any mix.
        settings: How to search and describe. Everything is folded, whatever the gate says.
        hooks: Asked before and after each call.
        observers: Told of each call and search.
    """

    def __init__(
        self,
        sources: Source | Sequence[Source] | Sources,
        *,
        settings: Settings | None = None,
        hooks: Iterable[Hook] = (),
        observers: Iterable[Observer] = (),
    ) -> None:
        if not isinstance(sources, Sources):
            sources = Sources((sources,) if isinstance(sources, Source) else sources)
        self._sources = sources
        self._settings = replace(settings or Settings(), enabled="on", strategy="bridge", core=())
        self._dispatch = Dispatch(hooks=hooks, observers=observers)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Open the sources."""
        await self._sources.__aenter__()
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._loop = None
        await self._sources.__aexit__(*error)

    def functions(
        self, *, scope: Scope = EVERYTHING, caller: str = "agent"
    ) -> list[Callable[..., Awaitable[str]]]:
        """Return `tool_search`, `tool_describe` and `tool_call` of a new conversation.

        Their docstrings are what a model reads of them; what the first says of the sources is
        as of now.

        Args:
            scope: Which tools exist in the conversation.
            caller: Who calls, for hooks and records.
        """
        return self._conversation(scope, caller).functions()

    def blocking_functions(
        self, *, scope: Scope = EVERYTHING, caller: str = "agent"
    ) -> list[Callable[..., str]]:
        """Return the same as plain functions, for frameworks that know no others.

        The sources live in the event loop that opened them: call these from another thread, as
        `await asyncio.to_thread(agent.run, …)` does.

        Args:
            scope: Which tools exist in the conversation.
            caller: Who calls, for hooks and records.
        """
        loop = self._loop
        if loop is None:
            raise ToolfoldError("the sources are not open", hint="use `async with`")
        return [_blocking(each, loop) for each in self.functions(scope=scope, caller=caller)]

    def guidance(self, scope: Scope = EVERYTHING) -> str:
        """Return what to say about the functions in a system prompt."""
        return self._conversation(scope, "").folded().guidance or ""

    def _conversation(self, scope: Scope, caller: str) -> _Conversation:
        return _Conversation(self._sources, self._settings, self._dispatch, scope, caller)


@dataclass
class _Conversation:
    """One conversation over open sources."""

    sources: Sources
    settings: Settings
    dispatch: Dispatch
    scope: Scope
    caller: str
    session: Session = field(default_factory=Session)

    def folded(self) -> Folded:
        return fold(
            self.sources.tools(),
            settings=self.settings,
            scope=self.scope,
            configured=self.sources.names,
            session=self.session,
            shape="plain",
        )

    def functions(self) -> list[Callable[..., Awaitable[str]]]:
        names = prompts.bridge_names(self.settings.bridge_prefix)

        async def tool_search(query: str, limit: int = 5) -> str:
            return await self._answer(names.search, {"query": query, "limit": limit})

        async def tool_describe(name: str) -> str:
            return await self._answer(names.describe, {"name": name})

        async def tool_call(name: str, arguments: dict[str, Any]) -> str:
            return await self._answer(names.call, {"name": name, "arguments": arguments})

        told = {str(tool["name"]): str(tool["description"]) for tool in self.folded().tools}
        functions: list[Callable[..., Awaitable[str]]] = [tool_search, tool_describe, tool_call]
        for function, name in zip(functions, names.all, strict=True):
            function.__name__ = function.__qualname__ = name
            function.__doc__ = told.get(name, "")
        return functions

    async def _answer(self, name: str, arguments: dict[str, Any]) -> str:
        began = self.session
        outcome = await self.dispatch.resolve(
            self.folded(),
            name,
            arguments,
            session=began,
            origin=Origin(self.caller),
            absent=self.sources.absent(self.scope),
        )
        self.session = self.session.joined(began, outcome.session)
        return outcome.text if isinstance(outcome, Answer) else await self._run(outcome)

    async def _run(self, call: Invocation) -> str:
        located = self.sources.find(call.tool.name)
        if located is None:
            return prompts.not_available(call.tool.shown_name, ())
        pending = PendingCall(call.tool, call.arguments, "tool_call", agent=self.caller)
        done = await self.dispatch.run(pending, located, scope=self.scope)
        return bounded(done.output.text, located.source.bounds(located.tool).result_limit)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _blocking(
    function: Callable[..., Awaitable[str]], loop: asyncio.AbstractEventLoop
) -> Callable[..., str]:
    """Return a plain function that waits in its thread for one of an event loop."""

    @wraps(function)
    def waiting(*given: Any, **arguments: Any) -> str:
        if _running_loop() is loop:
            raise ToolfoldError(
                "this would wait for its own event loop",
                hint="call the agent in a thread, as `await asyncio.to_thread(agent.run, …)`",
            )
        answer = cast("Coroutine[Any, Any, str]", function(*given, **arguments))
        return asyncio.run_coroutine_threadsafe(answer, loop).result()

    # `wraps` leaves the coroutine function visible behind it, which frameworks look for.
    del waiting.__wrapped__  # type: ignore[attr-defined]
    waiting.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return waiting
