"""An agent: a model, the tools it may use, and what the host says about both.

An `Agent` is a value; what happens in a conversation is kept by its `Conversation`. A
subagent is an agent whose scope was narrowed from its parent's, an isolated turn is a
fresh conversation: neither can reach more than its parent, and both assemble their tools
anew from the live sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal

from toolfold import prompts
from toolfold.absent import AbsentSource
from toolfold.dispatch.activity import Listener
from toolfold.dispatch.hooks import Hook
from toolfold.dispatch.records import Observer
from toolfold.dispatch.spans import Spans
from toolfold.errors import ConfigError
from toolfold.fold import Folded, fold
from toolfold.memory import Memory
from toolfold.runtime.conversation import Conversation, Done
from toolfold.runtime.executor import Batch
from toolfold.runtime.messages import Call, ResultMessage
from toolfold.runtime.model import Model
from toolfold.runtime.profiles import STANDARD, Profile
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import SearchMemory
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.sources.calls import Output, PendingCall, current_call
from toolfold.sources.merged import Sources
from toolfold.sources.registry import Runner
from toolfold.sources.source import Source
from toolfold.tool import Json, ProviderApi, Tool

__all__ = ["Agent", "Limits"]

_NESTED_AT_MOST = 4
_depth: ContextVar[int] = ContextVar("toolfold_depth", default=0)


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a conversation."""

    turns: int = 25
    """Replies of the model to one message of the user."""

    tokens: int | None = None
    """Tokens, read and written, for one message of the user."""

    reply_tokens: int | None = None
    """The cap on one reply; by default the profile's."""

    discovery_tokens: int = 4_000
    """The budget of what searches answered; beyond it older answers shrink to a line."""

    result_tokens: int | None = None
    """The budget of what tools returned; by default half the context window, if it is known."""

    parallel: int = 16
    """How many tools may run at once."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"the limit `{name}` is {value}", hint="give a number above 0")


@dataclass(frozen=True, slots=True)
class Agent:
    """A model with tools.

    Example:
        agent = Agent(OpenAIChat("gpt-5.4-mini"), registry, system="You help with mail.")
        done = await agent.conversation().ask("What came in today?")
    """

    model: Model

    sources: Source | Sequence[Source] | Sources
    """Where its tools come from: a registry of functions, MCP servers, files, in any mix."""

    name: str = "agent"
    """Who it is in the activity feed."""

    system: str = ""
    """The system prompt; what the model must know about folding is added to it."""

    scope: Scope = EVERYTHING
    """Which tools of the sources exist for it."""

    settings: Settings = field(default_factory=Settings)
    """How to fold."""

    context_length: int | None = None
    """The model's context window; by default what is known of its name."""

    profile: Profile = STANDARD
    """What the model's size asks for."""

    hooks: Sequence[Hook] = ()
    """Asked before and after every call, in this order."""

    on_activity: Listener | None = None
    """Hears of everything that runs."""

    limits: Limits = field(default_factory=Limits)

    prefetch: Literal["off", "sure", "always"] | None = None
    """When the likely tools are named behind the user's message; by default as the setting of
    that name and the profile have it."""

    memory: Memory | SearchMemory | None = None
    """What searches led to. A `Memory` learns from this agent's calls; one of another kind is
    only asked."""

    observers: Sequence[Observer] = ()
    """Told of each call and search, as an audit or metrics want it."""

    spans: Spans | None = None
    """Makes OpenTelemetry's spans, as `toolfold.dispatch.spans.start_spans()` does."""

    recovered: Literal["ask", "run"] = "ask"
    """What becomes of calls that were read out of a model's text, which may quote a stranger's:
    `ask` runs them unasked only where the tool is known to be read-only, by its registration or
    by `annotations` in the settings; about the others `Approvals` among the hooks ask, and
    without them they are refused. `run` lets them run like any other call."""

    def __post_init__(self) -> None:
        given = self.sources
        if self.recovered not in ("ask", "run"):
            raise ConfigError(f"`recovered` is {self.recovered!r}", hint="write 'ask' or 'run'")
        if self.prefetch not in (None, "off", "sure", "always"):
            raise ConfigError(
                f"`prefetch` is {self.prefetch!r}",
                hint="write 'off', 'sure' or 'always'; what was True is 'always', False 'off'",
            )
        if not isinstance(given, Sources):
            sources = Sources((given,) if isinstance(given, Source) else given)
            object.__setattr__(self, "sources", sources)

    async def __aenter__(self) -> Agent:
        """Open the sources that have a life of their own, such as MCP servers."""
        await self._sources.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._sources.__aexit__(*error)

    @property
    def _sources(self) -> Sources:
        assert isinstance(self.sources, Sources)  # made so above
        return self.sources

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of all sources as they are now, whoever may use them."""
        return self._sources.tools()

    def absent(self) -> tuple[AbsentSource, ...]:
        """Return the sources that cannot be asked now and of which its scope holds tools."""
        return self._sources.absent(self.scope)

    def core(self) -> tuple[str, ...]:
        """Return the names of the tools that their sources keep open, whatever folds."""
        return self._sources.core

    def assemble(self, session: Session | None = None) -> Folded:
        """Return what the model sees now: a fresh catalog of the sources, within the scope."""
        settings = self.profile.apply(self.settings)
        if self.prefetch is not None:
            settings = replace(settings, prefetch=self.prefetch)
        tools, opened = self.tools(), set(self.core())
        core = [tool.name for tool in tools if tool.name in opened]
        api: ProviderApi | None = getattr(self.model, "provider_api", None)
        return fold(
            tools,
            settings=settings,
            core=core,
            scope=self.scope,
            configured=self._sources.names,
            session=session,
            context_length=self.context_length or getattr(self.model, "context_length", None),
            model=self.model.name,
            api=api,
            host=None if api is None else getattr(self.model, "host", None),
            shape=self.model.shape if api is None else None,
            memory=self.memory.of(self.name) if isinstance(self.memory, Memory) else self.memory,
        )

    def conversation(self) -> Conversation:
        """Return a new conversation."""
        return Conversation(self)

    async def run(self, text: str) -> Done:
        """Answer one message in a conversation of its own: scheduled work, a delegated task."""
        return await self.conversation().ask(text)

    async def call(self, name: str, arguments: Mapping[str, Json] | str = "{}") -> ResultMessage:
        """Call a tool without the model, through the same scope, checks and hooks.

        Args:
            name: A tool's name, or one of the bridge's.
            arguments: Its arguments.
        """
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
        batch = self.batch((Call(name, written),), self.assemble())
        await batch.run()
        return batch.results[0]

    def batch(
        self,
        calls: Sequence[Call],
        folded: Folded,
        *,
        session: Session | None = None,
        listener: Listener | None = None,
        cut_off: bool = False,
        observers: Sequence[Observer] = (),
    ) -> Batch:
        """Return calls of this agent, ready to run.

        Args:
            calls: The calls.
            folded: What the model saw.
            session: The conversation so far.
            listener: Hears of what runs, in place of the agent's own.
            cut_off: Whether the last call may not be whole.
            observers: Told of each call and search, beside the agent's own.
        """
        return Batch(
            calls,
            folded,
            self._sources,
            session=session,
            hooks=self.hooks,
            observers=(*self.observers, *observers),
            spans=self.spans,
            listener=listener or self.on_activity,
            agent=self.name,
            parallel=self.limits.parallel,
            cut_off=cut_off,
            scope=self.scope,
            recovered=self.recovered,
        )

    def subagent(
        self,
        name: str,
        *,
        allow: Iterable[str] = ("*",),
        deny: Iterable[str] = (),
        system: str | None = None,
        model: Model | None = None,
    ) -> Agent:
        """Return an agent that may use a part of what this one may.

        Hooks, limits and listener are this one's; the scope can only become narrower.
        """
        return replace(
            self,
            name=f"{self.name}/{name}",
            scope=self.scope.narrow(allow=allow, deny=deny),
            system=self.system if system is None else system,
            model=self.model if model is None else model,
        )

    def as_tool(self, name: str, description: str) -> tuple[Tool, Runner]:
        """Return this agent as a tool of another: `registry.add(*helper.as_tool(…))`.

        It runs each task in a conversation of its own, cannot delegate to itself, and reaches
        nothing that its caller may not: its scope there is what both have in common.
        """
        tool = Tool(
            name,
            description,
            {
                "type": "object",
                "properties": {"task": {"type": "string", "description": prompts.TASK}},
                "required": ["task"],
            },
            toolset="agents",
        )

        async def run(call: PendingCall) -> Output:
            depth = _depth.get()
            if depth >= _NESTED_AT_MOST:
                return Output(prompts.DELEGATED_TOO_DEEP, True)
            _depth.set(depth + 1)
            scope = self.scope.narrow(deny=(name,)).also(current_call().scope)
            done = await replace(self, scope=scope).run(str(call.arguments["task"]))
            return Output(done.text, is_error=done.stop != "end")

        return tool, run
