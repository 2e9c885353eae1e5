"""`python -m live small`: what a small model makes of folded tools.

    python -m live small sixteen --arms bridge,prefetch
    python -m live small scenarios --arms folded,prefetch,unfolded,stub --repeat 5
    python -m live small harder --arms folded,prefetch
    python -m live small sixteen --base-url http://localhost:8081/v1 --model my-model

Nothing here passes or fails: counts and their spread are printed, and every transcript goes
to a file. Calls that were read out of a model's text run as if a person had approved them,
and are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median

from live.server import Server, ServerError, serving_weights
from live.sixteen import SIXTEEN, OneTool, registry_of
from live.weights import WEIGHTS, fetched
from toolfold._json_values import compact
from toolfold.evaluation.ab.arms import Arm, arms_named
from toolfold.evaluation.ab.run_record import Run
from toolfold.evaluation.ab.runner import Plan, Task, hold
from toolfold.evaluation.ab.scenario_tools import CORE
from toolfold.evaluation.ab.scenarios import SCENARIOS
from toolfold.evaluation.ab.stage import Stage
from toolfold.evaluation.ab.success import problems
from toolfold.runtime import Agent, Limits, Message, ModelError, ModelMessage, Reply, Usage
from toolfold.runtime.clients import OpenAIChat
from toolfold.runtime.message_json import message_to_json
from toolfold.runtime.profiles import SMALL

__all__ = ["main"]

_SYSTEM = "You are a helpful assistant. Use a tool where the task needs one."
_CONTEXT = 16_384
_REPLIES = 4
_TURNS = 8
_FOLDED = 20
"""With the three core tools a list of 23, as small local agents have."""
_PLAIN = 5
_CORE = {tool.name for tool in CORE}
_RUN_SECONDS = 1_800


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one run."""

    task: str
    arm: str
    repeat: int
    chose: bool
    """Whether the right tools ran."""
    right: bool
    """Whether all was right: tools, arguments, and where there is one to judge, the answer."""
    replies: int
    recovered: int
    """Calls that were read out of text and approved by this harness."""
    read: int
    """Tokens of the prompts, by the server's count."""
    written: int
    seconds: float
    why: str
    """What was not right."""
    messages: tuple[Message, ...] = ()


def main(given: Sequence[str]) -> int:
    """Run what is asked for, print the counts, and return the exit status."""
    options = _options(given)
    try:
        with _server(options) as (base_url, name):
            print(f"{name}, one run at a time\n", flush=True)
            arms = arms_named([arm.strip() for arm in options.arms.split(",")])
            run = _sixteen if options.what == "sixteen" else _scenarios
            outcomes = asyncio.run(run(options, arms, base_url, name))
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print()
    for line in _table(outcomes):
        print(line)
    return 0


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m live small")
    parser.add_argument("what", choices=["sixteen", "scenarios", "harder"])
    parser.add_argument("--arms", default="bridge,prefetch")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="", help="names or numbers of tasks, with commas")
    parser.add_argument("--weights", choices=sorted(WEIGHTS), default="1.5b")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--base-url", help="a server that is up already")
    parser.add_argument("--model", default="local", help="what that server calls its model")
    parser.add_argument("--temperature", type=float, help="by default 0, and 0.5 for repeats")
    parser.add_argument("--out", type=Path, default=Path(".live/small.jsonl"))
    return parser.parse_args(given)


def _server(options: argparse.Namespace) -> AbstractContextManager[tuple[str, str]]:
    if options.base_url:
        return _given(options.base_url, options.model)
    weights = WEIGHTS[options.weights]
    return _own(serving_weights(fetched(weights), weights.name, _CONTEXT, options.threads))


@contextmanager
def _given(base_url: str, model: str) -> Generator[tuple[str, str]]:
    yield base_url, model


@contextmanager
def _own(served: AbstractContextManager[Server]) -> Generator[tuple[str, str]]:
    with served as server:
        yield server.base_url, server.model


def _client(options: argparse.Namespace, base_url: str, name: str, repeat: int) -> OpenAIChat:
    heat = options.temperature
    if heat is None:
        heat = 0 if repeat == 1 else 0.5
    return OpenAIChat(
        name,
        base_url=base_url,
        api_key="",
        timeout=_RUN_SECONDS,
        retries=3,
        parameters={"temperature": heat, "seed": repeat},
    )


# ---- one tool a request


async def _sixteen(
    options: argparse.Namespace, arms: Sequence[Arm], base_url: str, name: str
) -> list[Outcome]:
    chosen = _chosen(options.only, [str(i) for i in range(1, len(SIXTEEN) + 1)])
    outcomes: list[Outcome] = []
    for arm in arms:
        for repeat in range(1, options.repeat + 1):
            model = _client(options, base_url, name, repeat)
            for number in chosen:
                outcome = await _one(SIXTEEN[int(number) - 1], number, arm, repeat, model)
                outcomes.append(outcome)
                _tell(outcome, options.out)
            await model.aclose()
    return outcomes


async def _one(wanted: OneTool, number: str, arm: Arm, repeat: int, model: OpenAIChat) -> Outcome:
    stage = Stage()
    agent = Agent(
        model,
        registry_of(stage),
        system=_SYSTEM,
        settings=arm.settings,
        profile=SMALL,
        limits=Limits(turns=_REPLIES),
        prefetch=arm.prefetch,
        recovered="run",
    )
    conversation = agent.conversation()
    usage, replies, failed = Usage(), 0, ""
    started = time.perf_counter()
    try:
        async with aclosing(conversation.send(wanted.prompt)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, Reply):
                    usage += event.usage
                    replies += 1
                if wanted.chose(stage.executed):
                    break  # what it says about it is not what is asked here
    except ModelError as error:
        failed = str(error)
    ran = ", ".join(f"{one.tool}({compact(dict(one.arguments))})" for one in stage.executed)
    right = wanted.is_right(stage.executed)
    return Outcome(
        f"{number} {wanted.tool}",
        arm.name,
        repeat,
        wanted.chose(stage.executed),
        right,
        replies,
        _recovered(conversation.messages),
        usage.prompt,
        usage.completion,
        time.perf_counter() - started,
        "" if right else failed or f"ran: {ran or 'nothing'}",
        tuple(conversation.messages),
    )


# ---- the five plain scenarios, and the six harder ones


async def _scenarios(
    options: argparse.Namespace, arms: Sequence[Arm], base_url: str, name: str
) -> list[Outcome]:
    if options.what == "harder":
        plain = {s.name: s for s in SCENARIOS[_PLAIN:]}
    else:
        # All of them see the same tools, so that a server reads a long list once.
        own = SCENARIOS[:_PLAIN]
        held = tuple(sorted({name for scenario in own for name in scenario.held} - _CORE))
        plain = {s.name: replace(s, folded=_FOLDED, beside=held) for s in own}
    todo = [
        Task(plain[key], arm, repeat)
        for repeat in range(1, options.repeat + 1)
        for arm in arms
        for key in _chosen(options.only, list(plain))
    ]
    clients: list[OpenAIChat] = []

    def model(task: Task) -> OpenAIChat:
        clients.append(_client(options, base_url, name, task.repeat))
        return clients[-1]

    outcomes: list[Outcome] = []

    def done(task: Task, run: Run) -> None:
        outcomes.append(_outcome(task, run))
        _tell(outcomes[-1], options.out)

    limits = Limits(turns=_TURNS, reply_tokens=256)
    await hold(todo, Plan(model, SMALL, _RUN_SECONDS, limits=limits), done)
    for client in clients:
        await client.aclose()
    return outcomes


def _outcome(task: Task, run: Run) -> Outcome:
    found = problems(task.scenario, run)
    messages = tuple(message for turn in run.turns for message in turn.messages)
    ran = {one.tool for turn in run.turns for one in turn.executed if not one.is_error}
    needed = {need.tool for turn in task.scenario.turns for need in turn.needs if need.tool}
    changed = {one.tool for turn in run.turns for one in turn.executed if one.changes}
    return Outcome(
        task.scenario.name,
        task.arm.name,
        task.repeat,
        needed <= ran and (bool(needed) or not changed),
        not found,
        sum(turn.round_trips for turn in run.turns),
        _recovered(messages),
        sum(turn.usage.prompt for turn in run.turns),
        sum(turn.usage.completion for turn in run.turns),
        sum(turn.seconds for turn in run.turns),
        "; ".join(found),
        messages,
    )


# ---- what is told


def _chosen(only: str, there: list[str]) -> list[str]:
    named = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in named if name not in there]:
        raise SystemExit(f"error: no task is {unknown[0]!r}; there are: {', '.join(there)}")
    return named or there


def _recovered(messages: Sequence[Message]) -> int:
    made = (message for message in messages if isinstance(message, ModelMessage))
    return sum(call.recovered for message in made for call in message.calls)


def _tell(outcome: Outcome, out: Path) -> None:
    state = "right" if outcome.right else "chose" if outcome.chose else "wrong"
    print(
        f"  {outcome.arm:<10} {outcome.repeat} {state:<5} {outcome.task:<34} "
        f"{outcome.replies} replies, {outcome.seconds:5.0f} s  {outcome.why[:110]}",
        flush=True,
    )
    record = asdict(replace(outcome, messages=()))
    record["messages"] = [message_to_json(message) for message in outcome.messages]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the counts of each arm: of all runs, and from the worst repeat to the best."""
    yield "arm         right tool      all right       read out of text  tokens in/out   seconds"
    for arm in dict.fromkeys(outcome.arm for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.arm == arm]
        seconds = [outcome.seconds for outcome in own]
        tokens = f"{fmean(o.read for o in own):,.0f}/{fmean(o.written for o in own):,.0f}"
        yield (
            f"{arm:<10}  {_spread(own, 'chose'):<14}  {_spread(own, 'right'):<14}  "
            f"{sum(o.recovered for o in own):<16}  {tokens:<14}  "
            f"{median(seconds):.0f} ({min(seconds):.0f} to {max(seconds):.0f})"
        )


def _spread(outcomes: Sequence[Outcome], what: str) -> str:
    whole = f"{sum(getattr(o, what) for o in outcomes)} of {len(outcomes)}"
    repeats = sorted({outcome.repeat for outcome in outcomes})
    counts = [sum(getattr(o, what) for o in outcomes if o.repeat == r) for r in repeats]
    return whole if len(counts) == 1 else f"{whole} ({min(counts)}-{max(counts)})"
