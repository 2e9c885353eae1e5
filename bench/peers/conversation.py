"""One scripted conversation, held by any runtime, and the clock beside it.

The model is a script: it calls `add_numbers` a given number of times, one call a reply or all
in one reply, and then ends with a text. A driver says how its runtime holds that conversation;
tools, functions, warm-up and timing are the same for all. Times are of whole conversations.
Only the standard library is imported here: a peer's environment has nothing of ours.

A line in is `{"tools": PATH, "count": N, "kind": "async" | "sync", "together": false, "calls": C,
"rounds": R}`; the line out is `{"VARIANT": [seconds, ...]}`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

__all__ = ["ENDING", "NAME", "Hold", "Plan", "hold_directly", "hold_in_a_thread", "serve"]

ENDING = "That is all."
"""The last thing the script says."""

NAME = "add_numbers"
"""The tool it calls."""

_WARM_UP = 5

Hold = Callable[[], Awaitable[str]]
"""Holds the conversation once and returns its last text."""


class Plan(NamedTuple):
    """What a driver gets."""

    tools: list[dict[str, Any]]
    """The tools beside the one that is called: `{name, description, parameters}`."""

    function: Callable[..., Any]
    """The function behind the tool that is called."""

    replies: list[list[dict[str, int]]]
    """The arguments of the calls of each reply, in order."""


class Count:
    """How often the tool was really run."""

    def __init__(self) -> None:
        self.runs = 0

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the tool as a coroutine function and as a plain one."""

        def add_numbers(a: int, b: int) -> int:
            """Add two numbers."""
            self.runs += 1
            return a + b

        plain = add_numbers

        async def add_numbers(a: int, b: int) -> int:
            """Add two numbers."""
            return plain(a, b)

        return {"sync": plain, "async": add_numbers}


def hold_directly(plan: Plan) -> Hold:
    """Return a conversation without a runtime: the calls, and nothing else."""
    function = plan.function
    given = [arguments for reply in plan.replies for arguments in reply]

    async def wait() -> str:
        for arguments in given:
            await function(**arguments)
        return ENDING

    async def call() -> str:
        for arguments in given:
            function(**arguments)
        return ENDING

    return wait if inspect.iscoroutinefunction(function) else call


def hold_in_a_thread(plan: Plan) -> Hold | None:
    """Return the calls of a plain function in a thread each, where a hanging one holds up none."""
    function = plan.function
    given = [arguments for reply in plan.replies for arguments in reply]

    async def hold() -> str:
        for arguments in given:
            await asyncio.to_thread(function, **arguments)
        return ENDING

    return None if inspect.iscoroutinefunction(function) else hold


def serve(variants: Mapping[str, Callable[[Plan], Hold | None]]) -> None:
    """Answer requests until standard input ends.

    Args:
        variants: By name, what makes the conversation; None where it does not apply.
    """
    # A library that prints must not break the conversation.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            wanted = json.loads(line)
            with open(wanted["tools"], encoding="utf-8") as rows:
                tools = [json.loads(row) for row in rows][: wanted["count"] - 1]
            answer = runner.run(_measure(wanted, tools, variants))
            out.write(json.dumps(answer) + "\n")
            out.flush()


async def _measure(
    wanted: Mapping[str, Any],
    tools: list[dict[str, Any]],
    variants: Mapping[str, Callable[[Plan], Hold | None]],
) -> dict[str, list[float]]:
    given = [{"a": place, "b": 1} for place in range(wanted["calls"])]
    replies = [given] if wanted["together"] else [[arguments] for arguments in given]
    count = Count()
    plan = Plan(tools, count.functions()[wanted["kind"]], replies)
    held = {name: hold for name, make in variants.items() if (hold := make(plan)) is not None}
    seconds: dict[str, list[float]] = {name: [] for name in held}
    for round_ in range(_WARM_UP + wanted["rounds"]):
        for name, hold in held.items():
            before = count.runs
            started = perf_counter()
            ended = await hold()
            spent = perf_counter() - started
            if (ended, count.runs - before) != (ENDING, len(given)):
                raise SystemExit(f"{name} ran {count.runs - before} calls and said {ended!r}")
            if round_ >= _WARM_UP:
                seconds[name].append(spent)
    return seconds
