"""Ours: an `Agent` over a model of a few lines, unfolded and folded; and no runtime at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

from conversation import ENDING, NAME, Hold, Plan, hold_directly, hold_in_a_thread, serve

from toolfold import Settings
from toolfold.runtime import (
    Agent,
    Call,
    Limits,
    ModelMessage,
    Output,
    PendingCall,
    Registry,
    Reply,
    Request,
    TextDelta,
    Usage,
)
from toolfold.tool import Shape

_SEARCH = [Call("tool_search", json.dumps({"query": "add two numbers"}), "call_search")]


class Script:
    """Says what the plan says."""

    name = "scripted"
    shape: Shape = "openai-chat"

    def __init__(self) -> None:
        self.script: Iterator[list[Call]] = iter(())

    async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        """Yield the next reply of the script."""
        calls = next(self.script, None)
        usage = Usage(100, 10)
        if calls is None:
            yield TextDelta(ENDING)
            yield Reply(ModelMessage(ENDING), usage)
            return
        made = tuple(replace(call) for call in calls)
        yield Reply(ModelMessage(calls=made), usage, "calls")


def prepare(folded: bool) -> Callable[[Plan], Hold]:
    """Return what makes the conversation, as an agent holds it."""

    def make(plan: Plan) -> Hold:
        async def unused(call: PendingCall) -> Output:
            return Output("unused")

        registry = Registry()
        registry.add_source(plan.tools, unused)
        registry.add(plan.function)
        model = Script()
        agent = Agent(
            model,
            registry,
            settings=Settings(enabled="on" if folded else "off", cache_dir="off"),
            limits=Limits(turns=len(plan.replies) + 2),
        )
        replies = [[_call(given, folded) for given in reply] for reply in plan.replies]
        script = [_SEARCH, *replies] if folded else replies

        async def hold() -> str:
            model.script = iter(script)
            return (await agent.conversation().ask("Add the numbers.")).text

        return hold

    return make


def _call(arguments: dict[str, int], folded: bool) -> Call:
    id_ = f"call_{arguments['a']}"
    if folded:
        wrapped = {"name": NAME, "arguments": arguments}
        return Call("tool_call", json.dumps(wrapped), id_)
    return Call(NAME, json.dumps(arguments), id_)


if __name__ == "__main__":
    serve(
        {
            "the function itself": hold_directly,
            "the function in a thread": hold_in_a_thread,
            "toolfold, not folded": prepare(folded=False),
            "toolfold, folded": prepare(folded=True),
        }
    )
