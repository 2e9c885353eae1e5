"""What a search asks of a memory, and what it answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from toolfold.search.ranker import Match
from toolfold.tool import Tool

__all__ = ["Lift", "SearchMemory", "SearchedTools", "Use", "Weighed"]


@dataclass(frozen=True, slots=True)
class Use:
    """What one search led to: a tool was called for a request."""

    request: str
    """What was asked for. It is redacted before it is kept."""

    tool: str
    """The tool's name in the catalog."""

    digest: str
    """The tool's digest: a tool that changed is another one."""

    worked: bool = True
    """Whether the call was answered without an error."""

    principal: str = ""
    """Whose call it was."""

    at: float = 0.0
    """When, in seconds since 1970; 0 is now."""


class Lift(NamedTuple):
    """What a memory did to one tool of a search."""

    times: int
    """How often it was called, and worked, for requests like this one."""

    before: int
    """Where it stood without the memory, from 0; -1 where it was not found."""

    after: int
    """Where it stands now, from 0."""

    def __str__(self) -> str:
        was = "instead of not found" if self.before < 0 else f"instead of {_th(self.before)}"
        times = "once" if self.times == 1 else f"{self.times:,} times"
        return f"{_th(self.after)} {was}: called {times} for requests like this"


def _th(place: int) -> str:
    """Return a place, from 0, as people count."""
    number = place + 1
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


@dataclass(frozen=True, slots=True)
class Weighed:
    """The matches of a need, weighed with what a memory knows."""

    matches: Sequence[Match]
    """Best first. Places are those of the catalog that was asked about."""

    lifts: Mapping[int, Lift] = field(default_factory=dict[int, Lift])
    """What moved up by it, by place."""


class SearchedTools(Protocol):
    """The tools that were searched, as a catalog has them."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in order."""
        ...

    @property
    def fingerprint(self) -> str:
        """A digest of the tools and their order."""
        ...

    def __contains__(self, name: object) -> bool: ...

    def __getitem__(self, name: str) -> Tool: ...


@runtime_checkable
class SearchMemory(Protocol):
    """Evidence from earlier searches. Pass your own to `fold`, or take a `Memory`.

    It is asked after the ranker and answers for the tools of one catalog alone: what is not in
    that is never named. One that holds nothing of the catalog returns what it was given.
    """

    def weighed(self, need: str, found: Sequence[Match], catalog: SearchedTools) -> Weighed:
        """Return a need's matches, weighed.

        Args:
            need: What was asked for.
            found: What the ranker found, best first; scores are probabilities.
            catalog: The tools that were searched.
        """
        ...

    def beside(self, tool: Tool, catalog: SearchedTools) -> Sequence[Tool]:
        """Return tools of a catalog that were used together with one, the surest first."""
        ...

    def is_ready(self, catalog: SearchedTools) -> bool:
        """Whether `weighed` answers at once for a catalog; else a host asks it in a thread."""
        ...
