"""Recorded conversations, held again under any strategy: what would it have cost?

A trace says what the user asked, which tools served it, with which arguments and what
came back. A model that follows it as its plan finds its own way through the tools it
sees, so the round trips and tokens are those of the strategy. No model is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from toolfold.evaluation.ab.arms import Arm
from toolfold.evaluation.ab.planned import PlannedModel
from toolfold.evaluation.trace import Trace, TraceTurn
from toolfold.runtime.agent import Agent, Limits
from toolfold.runtime.messages import Message, ResultMessage, UserMessage
from toolfold.runtime.model import Request, Usage, prompt_text
from toolfold.search import SearchMemory
from toolfold.sources.calls import Output, PendingCall
from toolfold.sources.registry import Registry
from toolfold.tokens import estimate
from toolfold.tool import Json

__all__ = ["Replayed", "replay", "totals"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a conversation costs under a strategy. Tokens are characters over four."""

    trace: str
    strategy: str
    turns: int
    needs: int
    met: int
    """How many of the needs were met: the right tool ran."""

    round_trips: int
    usage: Usage
    """All that was read and written; `cached` is what the request before had in common."""

    prompts: tuple[int, ...]
    """By turn: the tokens of its largest prompt."""

    discoveries: tuple[int, ...]
    """By turn: how many of these were answers of searches, and notes."""

    messages: tuple[Message, ...] = ()
    """What was said; not part of the JSON object."""

    def as_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        return {
            "trace": self.trace,
            "strategy": self.strategy,
            "turns": self.turns,
            "needs": self.needs,
            "met": self.met,
            "round_trips": self.round_trips,
            "prompt_tokens": self.usage.prompt,
            "cached_tokens": self.usage.cached,
            "uncached_tokens": self.usage.prompt - self.usage.cached,
            "completion_tokens": self.usage.completion,
            "prompt_by_turn": list(self.prompts),
            "discovery_by_turn": list(self.discoveries),
        }


def replay(
    trace: Trace, arm: Arm, limits: Limits | None = None, memory: SearchMemory | None = None
) -> Replayed:
    """Return what a conversation costs in an arm.

    Args:
        trace: The conversation.
        arm: How the tools are shown.
        limits: How much a turn may take.
        memory: What earlier searches led to.
    """
    return asyncio.run(_replay(trace, arm, limits or Limits(), memory))


async def _replay(trace: Trace, arm: Arm, limits: Limits, memory: SearchMemory | None) -> Replayed:
    host = _Host()
    model = PlannedModel([said.plan for said in trace.turns], arm.habits, name="replayed")
    agent = Agent(
        model,
        host.registry(trace),
        settings=arm.settings,
        prefetch=arm.prefetch,
        limits=limits,
        memory=memory,
    )
    conversation = agent.conversation()
    trips, met = 0, 0
    prompts: list[int] = []
    discoveries: list[int] = []
    for said in trace.turns:
        host.expect(said)
        done = await conversation.ask(said.user)
        trips += done.round_trips
        met += len(said.plan.needs) - len(host.due)
        largest = max(model.requests, key=_size)
        prompts.append(_size(largest))
        discoveries.append(_discovery(largest))
        model.requests.clear()
    return Replayed(
        trace.name,
        arm.name,
        turns=len(trace.turns),
        needs=sum(len(said.plan.needs) for said in trace.turns),
        met=met,
        round_trips=trips,
        usage=conversation.usage,
        prompts=tuple(prompts),
        discoveries=tuple(discoveries),
        messages=tuple(conversation.messages),
    )


def totals(results: Sequence[Replayed]) -> list[Replayed]:
    """Return what each strategy comes to over all traces."""
    made: list[Replayed] = []
    for name in dict.fromkeys(result.strategy for result in results):
        own = [result for result in results if result.strategy == name]
        made.append(
            Replayed(
                "all",
                name,
                turns=sum(result.turns for result in own),
                needs=sum(result.needs for result in own),
                met=sum(result.met for result in own),
                round_trips=sum(result.round_trips for result in own),
                usage=sum((result.usage for result in own), Usage()),
                prompts=tuple(size for result in own for size in result.prompts),
                discoveries=(),
            )
        )
    return made


def _size(request: Request) -> int:
    return estimate(prompt_text(request))


def _discovery(request: Request) -> int:
    return sum(estimate(_found(message)) for message in request.messages)


def _found(message: Message) -> str:
    """Return what a message says about tools that were found."""
    if isinstance(message, UserMessage):
        return message.note
    return message.text if isinstance(message, ResultMessage) and message.found is not None else ""


class _Host:
    """Gives back what was recorded."""

    def __init__(self) -> None:
        self.due: list[tuple[str | None, str]] = []
        """The needs of this turn that were not met yet: their tools, and what these return."""

    def expect(self, said: TraceTurn) -> None:
        """Take up the next turn."""
        tools = [need.tool for need in said.plan.needs]
        self.due = list(zip(tools, said.results, strict=True))

    def registry(self, trace: Trace) -> Registry:
        """Return the tools of a trace."""
        registry = Registry()
        for tool in trace.catalog:
            registry.add(tool, self._run, core=tool.name in trace.core)
        return registry

    async def _run(self, call: PendingCall) -> Output:
        for place, (tool, result) in enumerate(self.due):
            if tool == call.tool.name:
                del self.due[place]
                return Output(result)
        return Output(f"{call.tool.shown_name} was not called here.", is_error=True)
