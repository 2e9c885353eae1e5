"""A model that follows a plan: competent, deterministic, honest about what it cannot find.

The plan says what the model needs, in which words it would search for it, which tool that
is and with which arguments. How it gets there follows from what it sees: a tool that is
listed with its parameters is called; one behind the bridge is searched for, and called
only once its signature stood in an answer; one that was only named is described first; a
stub is loaded by its name first. A tool that a search does not find is looked for once more
in other words, then given up.

It decides from the request alone, so that the same plan runs under any strategy.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolfold import prompts
from toolfold.evaluation.ab.transcript_reading import (
    discovered,
    last_turn,
    made,
    named,
    real_call,
    searched_needs,
    users_own,
)
from toolfold.runtime.messages import Call
from toolfold.runtime.model import Reply, Request, TextDelta
from toolfold.runtime.scripted import Says, ScriptedModel
from toolfold.tool import Json, Shape, wire_name

__all__ = ["Habits", "Need", "PlannedModel", "TurnPlan"]

_REPLIES_AT_MOST = 2_000


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that must be done with a tool."""

    words: str
    """How the model would ask for it."""

    tool: str | None
    """The tool that does it; None where there is none, and the model must find that out."""

    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What it is called with."""

    waits: bool = False
    """Whether it needs the results of what stands before it."""

    again: str = ""
    """Other words, for when the first find nothing."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """The plan for one message of the user."""

    needs: tuple[Need, ...] = ()
    answer: str = ""


_DONE = "Done."
"""What it says where the plan has no answer."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How a model goes about it."""

    one_by_one: bool = False
    """Searches for each need when it comes up, not for all of them at once."""

    describes_first: bool = False
    """Asks for the full schema of each folded tool before it calls it."""


class PlannedModel:
    """Follows a plan under whatever tools it sees.

    Args:
        plan: What to do about each message of the user.
        habits: How.
        name: The model's name.
    """

    def __init__(
        self, plan: Sequence[TurnPlan], habits: Habits | None = None, *, name: str = "planned"
    ) -> None:
        self._plan = tuple(plan)
        self._habits = habits or Habits()
        self._scripted = ScriptedModel([self.reply] * _REPLIES_AT_MOST, name=name)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._scripted.name

    @property
    def shape(self) -> Shape:
        """The wire shape in which it takes tools."""
        return self._scripted.shape

    @property
    def requests(self) -> list[Request]:
        """What was sent, oldest first."""
        return self._scripted.requests

    def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        """Yield the reply to a request."""
        return self._scripted.stream(request)

    def reply(self, request: Request) -> Says:
        """Return what the model says to a request."""
        turn = users_own(request.messages)
        if turn > len(self._plan):
            return Says("I have no plan for that.")
        step = self._plan[turn - 1]
        view = _View.of(request)
        ready, lost = view.sort(step.needs)
        unknown = [need for need in ready if not view.can_call(need)]
        if unknown:
            return _calls(self._searches(step, view, unknown))
        if ready:
            bridged = [need for need in ready if not view.lists(need)]
            undescribed = [n for n in bridged if n.tool not in view.described]
            if self._habits.describes_first and undescribed:
                names = ", ".join(dict.fromkeys(str(need.tool) for need in undescribed))
                return _calls([(prompts.TOOL_DESCRIBE, {"name": names})])
            return _calls([view.call(need) for need in ready])
        missed = [need for need in lost if need.tool is not None]
        return Says(_honest(missed) if missed else step.answer or _DONE)

    def _searches(
        self, step: TurnPlan, view: _View, unknown: Sequence[Need]
    ) -> list[tuple[str, dict[str, Json]]]:
        if self._habits.one_by_one:
            wanted = list(unknown[:1])
        else:  # also what comes later, in the same breath
            wanted = [n for n in step.needs if view.is_open(n) and not view.can_call(n)]
        if not view.bridge:
            names = dict.fromkeys(view.listed_name(need) for need in wanted)
            return [(prompts.TOOL_SEARCH, {"query": name}) for name in names if name]
        names = dict.fromkeys(str(need.tool) for need in wanted if view.names(need))
        words = dict.fromkeys(view.wording(need) for need in wanted if not view.names(need))
        query = " | ".join(word for word in words if word)
        describes = [(prompts.TOOL_DESCRIBE, {"name": ", ".join(names)})] if names else []
        return [*describes, *([(prompts.TOOL_SEARCH, {"query": query})] if query else [])]


@dataclass(frozen=True, slots=True)
class _View:
    """What the model sees when it is asked."""

    listed: Mapping[str, bool]
    """The tools of the request, and whether they come with their parameters."""

    known: frozenset[str]
    """The names it has read with what they take, or used."""

    named: frozenset[str]
    """The names it has read without."""

    described: frozenset[str]
    """The names whose full schema it has read."""

    asked: frozenset[str]
    """What it has searched for in this turn."""

    ran: tuple[str, ...]
    """The tools that it ran in this turn."""

    failed: tuple[str, ...]
    """The tools that it called in this turn in vain."""

    @classmethod
    def of(cls, request: Request) -> _View:
        calls = list(made(last_turn(request.messages)))
        real = [(real_call(item.call), item.result) for item in calls]
        described = (
            m for m in made(request.messages) if m.call.name == prompts.TOOL_DESCRIBE and m.result
        )
        return cls(
            listed=dict(_listed(record) for record in request.tools),
            known=frozenset(discovered(request.messages)),
            named=frozenset(named(request.messages)),
            described=frozenset(
                line.partition('{"name":"')[2].partition('"')[0]
                for item in described
                for line in (item.result.text if item.result else "").splitlines()
            ),
            asked=frozenset(need for item in calls for need in searched_needs(item.call)),
            ran=tuple(c[0] for c, result in real if c and result and not result.is_error),
            failed=tuple(c[0] for c, result in real if c and result and result.is_error),
        )

    @property
    def bridge(self) -> bool:
        """Whether folded tools stand behind the bridge."""
        return prompts.TOOL_CALL in self.listed

    def sort(self, needs: Sequence[Need]) -> tuple[list[Need], list[Need]]:
        """Return the needs that can be seen to now, and those that are lost."""
        ready: list[Need] = []
        lost: list[Need] = []
        ran = list(self.ran)
        for need in needs:
            name = next((n for n in _names(need) if n in ran), None)
            if name is not None:
                ran.remove(name)
                continue
            if need.waits and (ready or lost):
                break
            (ready if self.is_open(need) else lost).append(need)
        return ready, lost

    def is_open(self, need: Need) -> bool:
        """Whether there is still something to try."""
        if any(name in self.failed for name in _names(need)):
            return False
        if self.can_call(need) or self.names(need):
            return True
        if prompts.TOOL_SEARCH not in self.listed:
            return False
        return bool(self.wording(need))

    def lists(self, need: Need) -> bool:
        """Whether the tool is listed with its parameters."""
        name = self.listed_name(need)
        return name is not None and (self.listed[name] or not self.has_stubs)

    @property
    def has_stubs(self) -> bool:
        """Whether a tool without parameters may be one whose parameters are not loaded."""
        return prompts.TOOL_SEARCH in self.listed and prompts.TOOL_DESCRIBE not in self.listed

    def names(self, need: Need) -> bool:
        """Whether the model has read of the tool, and can ask what it takes."""
        is_read = need.tool in self.named and need.tool not in self.described
        return is_read and prompts.TOOL_DESCRIBE in self.listed

    def can_call(self, need: Need) -> bool:
        """Whether the model can call the tool at once."""
        can_reach = self.bridge or self.listed_name(need) is not None
        return self.lists(need) or (can_reach and need.tool in self.known)

    def listed_name(self, need: Need) -> str | None:
        """Return the name under which the tool is listed, if it is."""
        return next((name for name in _names(need) if name in self.listed), None)

    def wording(self, need: Need) -> str:
        """Return the words to search with next; empty where all have been tried."""
        if self.bridge:
            words: Sequence[str] = (need.words, need.again)
        else:
            name = self.listed_name(need)
            words = (name,) if name else ()
        return next((text for text in words if text and text not in self.asked), "")

    def call(self, need: Need) -> tuple[str, dict[str, Json]]:
        """Return the call that does what is needed."""
        name = self.listed_name(need)
        if name is not None:
            return name, dict(need.arguments)
        given = {"name": need.tool, "arguments": dict(need.arguments)}
        return prompts.TOOL_CALL, given


def _names(need: Need) -> tuple[str, ...]:
    """Return the names under which a need's tool may go: its own, and the one on the wire."""
    return () if need.tool is None else (need.tool, wire_name(need.tool))


def _listed(record: Json) -> tuple[str, bool]:
    """Return a tool's name, and whether it comes with its parameters."""
    function: Mapping[str, Json] = record["function"]
    parameters: Mapping[str, Json] = function.get("parameters") or {}
    return str(function["name"]), parameters != prompts.STUB_PARAMETERS


def _calls(named: Sequence[tuple[str, Mapping[str, Json]]]) -> Says:
    return Says(
        "", tuple(Call(name, json.dumps(given, ensure_ascii=False)) for name, given in named)
    )


def _honest(missed: Sequence[Need]) -> str:
    wanted = "; ".join(need.words for need in missed)
    return f"I could not do this, for want of a tool that works: {wanted}."
