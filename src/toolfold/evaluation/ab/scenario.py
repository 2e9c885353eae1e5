"""What a scenario is: what the user says, what must really happen, what may be claimed.

A turn's needs are both the plan of a scripted model and the expectation of a real one:
each need's tool must run, with arguments that its checks match, after what it waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolfold.evaluation.ab.planned import Need, TurnPlan

__all__ = ["Scenario", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the user, and what must come of it. Patterns are searched, in any case."""

    prompt: str
    """What the user says."""

    needs: tuple[Need, ...] = ()
    """What must be done. A need without a tool is one that no tool serves."""

    answer: str = ""
    """What a scripted model says in the end."""

    checks: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """By tool and argument: the pattern that the argument's value must match."""

    says: tuple[str, ...] = ()
    """Patterns that the answer must match."""

    never_says: tuple[str, ...] = ()
    """Patterns that the answer must not match."""

    claims: Mapping[str, str] = field(default_factory=dict[str, str])
    """By pattern: the tool that must have run in this run where the answer matches it."""

    never_runs: tuple[str, ...] = ()
    """Tools that must not run. Tools that change something never may unless they are needed."""

    may_run: tuple[str, ...] = ()
    """Tools that change something and may run all the same."""

    @property
    def step(self) -> TurnPlan:
        """The plan of a scripted model."""
        return TurnPlan(self.needs, self.answer)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The tools that must run, in order."""
        return tuple(need.tool for need in self.needs if need.tool is not None)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A conversation to hold with a model."""

    name: str
    about: str
    """What it shows, as one clause."""

    turns: tuple[Turn, ...]

    folded: int | None = 100
    """How many tools may be folded; None for the whole stage. With 100, and the core tools
    beside them, the list is one that every provider takes unfolded too."""

    beside: tuple[str, ...] = ()
    """Tools that must be there to be mistaken for the right ones."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The tools that must run in any turn."""
        return tuple(dict.fromkeys(name for turn in self.turns for name in turn.wanted))

    @property
    def held(self) -> tuple[str, ...]:
        """The tools that a smaller catalog must hold."""
        return (*self.wanted, *self.beside)

    @property
    def plan(self) -> tuple[TurnPlan, ...]:
        """The plan of a scripted model."""
        return tuple(turn.step for turn in self.turns)
