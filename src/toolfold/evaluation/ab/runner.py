"""Hold the scenarios with a model, in every arm, and record what happens.

A run that fails is a record like any other, and the rest goes on. Records are handed out
as they are made, so that whatever ends the whole keeps what was done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.catalog import Catalog
from toolfold.dispatch.activity import Activity
from toolfold.errors import ToolfoldError
from toolfold.evaluation.ab.arms import Arm
from toolfold.evaluation.ab.planned import Habits, PlannedModel
from toolfold.evaluation.ab.run_record import Run, TurnRecord
from toolfold.evaluation.ab.scenario import Scenario
from toolfold.evaluation.ab.scenario_tools import registry_of
from toolfold.evaluation.ab.scenarios import SYSTEM
from toolfold.evaluation.ab.stage import Stage
from toolfold.fold import Folded
from toolfold.redact import redact
from toolfold.runtime.agent import Agent, Limits
from toolfold.runtime.conversation import Conversation, Done, Event
from toolfold.runtime.model import Model, Reply, Usage
from toolfold.runtime.profiles import STANDARD, Profile
from toolfold.search import SearchMemory

__all__ = ["Plan", "Task", "hold", "scripted", "tasks"]

_ERROR_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Task:
    """One run to be made."""

    scenario: Scenario
    arm: Arm
    repeat: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How to make the runs."""

    model: Callable[[Task], Model]
    """The model to make a run with."""

    profile: Profile = STANDARD
    timeout: float = 300.0
    """Seconds for one run."""

    concurrency: int = 1
    limits: Limits = field(default_factory=Limits)
    memory: SearchMemory | None = None
    """What earlier searches led to, in every arm."""


def scripted(habits: Habits | None = None) -> Callable[[Task], Model]:
    """Return what makes the scripted model of a run, with the arm's habits or other ones."""
    return lambda task: PlannedModel(task.scenario.plan, habits or task.arm.habits, name="scripted")


def tasks(scenarios: Sequence[Scenario], arms: Sequence[Arm], repeat: int) -> Iterator[Task]:
    """Yield the runs to be made, the arms of a scenario side by side."""
    for scenario in scenarios:
        for number in range(1, repeat + 1):
            for arm in arms:
                yield Task(scenario, arm, number)


def catalog_of(scenario: Scenario) -> Catalog:
    """Return every tool of a scenario."""
    return Catalog(registry_of(scenario, Stage()).tools())


async def hold(todo: Sequence[Task], plan: Plan, done: Callable[[Task, Run], None]) -> None:
    """Make the runs, so many at once; hand each out when it has ended.

    Raises:
        ToolfoldError: What `done` raised.
    """
    slots = asyncio.Semaphore(plan.concurrency)

    async def one(task: Task) -> None:
        async with slots:
            done(task, await _run(task, plan))

    try:
        async with asyncio.TaskGroup() as group:
            for task in todo:
                group.create_task(one(task))
    except* ToolfoldError as errors:
        raise next(_leaves(errors)) from None


async def _run(task: Task, plan: Plan) -> Run:
    """Make one run. Whatever goes wrong in it becomes part of the record."""
    stage = Stage()
    model = plan.model(task)
    agent = Agent(
        model,
        registry_of(task.scenario, stage),
        system=SYSTEM,
        settings=task.arm.settings,
        profile=plan.profile,
        limits=plan.limits,
        prefetch=task.arm.prefetch,
        memory=plan.memory,
        recovered="run",  # nothing behind these tools is real
    )
    conversation = agent.conversation()
    turns: list[TurnRecord] = []
    error: str | None = None
    try:
        async with asyncio.timeout(plan.timeout):
            for turn in task.scenario.turns:
                await _turn(conversation, stage, turn.prompt, turns)
    except TimeoutError:
        error = f"no end after {plan.timeout:g} s"
    except Exception as failure:
        error = one_line(redact(_said(failure)), _ERROR_LIMIT)
    folded = agent.assemble()
    return Run(
        scenario=task.scenario.name,
        arm=task.arm.name,
        repeat=task.repeat,
        model=model.name,
        listed=tuple(name for name in folded.catalog.names if name not in folded.bridge.folded),
        bridge=_bridge(folded),
        turns=tuple(turns),
        error=error,
        folded=task.scenario.folded,
        wanted=task.scenario.held,
    )


def _said(failure: Exception) -> str:
    ours = isinstance(failure, ToolfoldError)
    return str(failure) if ours else f"{type(failure).__name__}: {failure}"


def _bridge(folded: Folded) -> tuple[str, ...]:
    """Return the bridge's tools that a model sees."""
    strategy = folded.bridge.strategy
    answers = strategy.answers if strategy is not None else ()
    return tuple(name for name in prompts.BRIDGE_NAMES if name in answers)


async def _turn(
    conversation: Conversation, stage: Stage, prompt: str, turns: list[TurnRecord]
) -> None:
    """Hold one turn. Its record is complete as far as it went, whatever ended it."""
    said, ran = len(conversation.messages), len(stage.executed)
    started = time.perf_counter()
    first: float | None = None
    usage = Usage()
    trips = 0
    done: Done | None = None
    try:
        # A generator that is left open would go on asking the model.
        async with aclosing(cast(_Events, conversation.send(prompt))) as events:
            async for event in events:
                if isinstance(event, Activity) and event.kind == "started" and first is None:
                    first = time.perf_counter() - started
                elif isinstance(event, Reply):
                    usage += event.usage
                    trips += 1
                elif isinstance(event, Done):
                    done = event
    finally:
        turns.append(
            TurnRecord(
                prompt=prompt,
                text=done.text if done else "",
                stop=done.stop if done else "error",
                usage=usage,
                round_trips=trips,
                asked_again=done.asked_again if done else 0,
                seconds=time.perf_counter() - started,
                first_tool=first,
                executed=tuple(stage.executed[ran:]),
                messages=tuple(conversation.messages[said:]),
            )
        )


class _Events(AsyncIterator[Event]):
    async def aclose(self) -> None: ...


def _leaves(group: BaseExceptionGroup[ToolfoldError]) -> Iterator[ToolfoldError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
