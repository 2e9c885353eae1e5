"""A source: where tools come from, and where calls of them go.

Functions, MCP servers and files of definitions are sources alike: what is there now, and
call it. A source knows nothing of scopes, approvals, deadlines or records; those are the
business of dispatch, which no call can go around. What a source lists may change while it
is open; whoever listens hears of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from toolfold import prompts
from toolfold.absent import AbsentSource
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.tool import Json, Tool

if TYPE_CHECKING:
    from toolfold.sources.calls import CallContext
    from toolfold.sources.wrappers import Filtered, Prefixed

__all__ = ["Bounds", "Source", "SourceError"]

RESULT_LIMIT = 32_000
"""The longest result, in characters, that reaches an agent's model where nothing else is said."""

TIMEOUT = 60.0
"""The seconds that a call may take where nothing else is said."""


class SourceError(ToolfoldError):
    """A source could not run a call. Its text is for people; the model reads `for_model`."""

    def for_model(self, tool: Tool) -> str:
        """Return what the model reads as the result of its call."""
        return prompts.failed(tool.shown_name, type(self).__name__, str(self))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds the calls of one tool."""

    timeout: float | None = TIMEOUT
    """Seconds after which a call is cancelled; None for never."""

    result_limit: int = RESULT_LIMIT
    """Characters of its result that reach an agent's model."""

    parallel: bool | None = None
    """Whether it may run beside others; None: unless it says of itself that it destroys."""

    def lets_run_beside_others(self, tool: Tool) -> bool:
        """Whether a tool may run beside others."""
        return not tool.says_destructive if self.parallel is None else self.parallel

    def check(self, name: str) -> None:
        """Raise `ConfigError` where a tool cannot be bounded like this."""
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigError(
                f"the timeout of {name!r} is {self.timeout}",
                hint="give seconds above 0, or None for no limit",
            )
        if self.result_limit < 1:
            raise ConfigError(
                f"the result limit of {name!r} is {self.result_limit}",
                hint="give a number of characters above 0",
            )


DEFAULT_BOUNDS = Bounds()


class Source(ABC):
    """Where tools come from and where calls of them go. Two methods make one.

    Example:
        class Clock(Source):
            name = "clock"

            def tools(self):
                return [Tool("now", "Say what time it is.", source=self.name)]

            async def call(self, tool, arguments, context):
                return datetime.now(UTC).isoformat()

        agent = Agent(model, sources=[Clock()])
    """

    name: str
    """What it is called: the `source` of its tools."""

    is_hosts_own: bool = False
    """Whether what its tools say they do is the host's own word, as a registration is; what a
    server says of itself is not."""

    @abstractmethod
    def tools(self) -> Sequence[Tool]:
        """Return the tools that are there now. Quick, and the same objects while none changes."""

    @abstractmethod
    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Run a call and return its result: an `Output`, a text or any JSON value.

        A `Refusal` says that it was not run. Whatever is raised is told to the model.

        Args:
            tool: One of its tools, as it was listed.
            arguments: Its arguments, checked where the tool was folded.
            context: What is known of the call, and the way to report progress.
        """

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return DEFAULT_BOUNDS

    @property
    def core(self) -> Sequence[str]:
        """The names of its tools that are never folded."""
        return ()

    def absence(self) -> AbsentSource | None:
        """Return why it cannot be asked now, and when that is over; None where it can be."""
        return None

    def timed_out(self, tool: Tool, seconds: float) -> str:
        """Return what the model reads where a call took too long."""
        return prompts.timed_out(tool.shown_name, seconds)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called, in whatever thread that was, when the tools have changed.

        Returns:
            What ends that: call it when nobody listens any more.
        """
        return lambda: None  # a list that never changes tells nobody

    async def __aenter__(self) -> Self:
        """Open it: from now on there are tools. Each agent that shares it opens and closes it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it: nothing that it started stays behind."""
        return

    def prefixed(self, prefix: str | None = None) -> Prefixed:
        """Return this source with `prefix__` before the name of each tool; by default its own."""
        from toolfold.sources.wrappers import Prefixed

        return Prefixed(self, self.name if prefix is None else prefix)

    def filtered(self, *, allow: Iterable[str] = ("*",), deny: Iterable[str] = ()) -> Filtered:
        """Return this source with those of its tools that the patterns leave."""
        from toolfold.sources.wrappers import Filtered

        return Filtered(self, allow=allow, deny=deny)
