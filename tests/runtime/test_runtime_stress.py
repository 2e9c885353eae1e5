"""A thousand calls over fifty conversations at once, with tools that misbehave."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time

from toolfold import Scope, Settings
from toolfold.runtime import (
    Agent,
    Call,
    ModelMessage,
    Registry,
    ResultMessage,
    Says,
    ScriptedModel,
    current_call,
    says,
)

SESSIONS = 50
TURNS = 5
CALLS = 4


def build(runs: dict[str, int]) -> Registry:  # noqa: C901 - eight small tools
    """One registry for all: some tools are everybody's, `own_N` is that of conversation N."""
    registry = Registry()
    lock = threading.Lock()

    def note(mark: str) -> str:
        with lock:
            runs[mark] = runs.get(mark, 0) + 1
        return mark

    @registry.tool
    async def echo(mark: str) -> str:
        await asyncio.sleep(0)
        return note(mark)

    @registry.tool
    def echo_in_thread(mark: str) -> str:
        return note(mark)

    @registry.tool(timeout=0.05)
    async def hang(mark: str) -> str:
        note(mark)
        await asyncio.Event().wait()
        return mark

    @registry.tool(timeout=0.05)
    def hang_in_thread(mark: str) -> str:
        note(mark)
        note("threads in")
        while not current_call().cancelled:
            time.sleep(0.01)
        note("threads out")
        return mark

    @registry.tool
    async def fail(mark: str) -> str:
        note(mark)
        raise RuntimeError(mark)

    @registry.tool(result_limit=500)
    def flood(mark: str) -> str:
        return note(mark) + "z" * 1_000_000

    @registry.tool
    async def give_up(mark: str) -> str:
        note(mark)
        raise asyncio.CancelledError

    for n in range(SESSIONS):
        registry.tool(lambda mark: note(mark), name=f"own_{n}")
    return registry


SHARED = ("echo", "echo_in_thread", "hang", "hang_in_thread", "fail", "flood", "give_up")


def script_of(session: int, rng: random.Random) -> list[Says]:
    steps: list[Says] = []
    for turn in range(TURNS):
        made: list[Call] = []
        for place in range(CALLS):
            others = rng.randrange(SESSIONS)
            name = rng.choice((*SHARED, f"own_{session}", f"own_{others}"))
            given = {"mark": f"s{session}-t{turn}-c{place}"}
            identity = rng.choice(["", "same", f"id{turn}{place}"])
            if rng.random() < 0.5:
                bridged = json.dumps({"name": name, "arguments": given})
                made.append(Call("tool_call", bridged, identity))
            else:
                made.append(Call(name, json.dumps(given), identity))
        steps.append(Says("", tuple(made)))
    return [*steps, says("done")]


def test_a_thousand_calls_over_fifty_sessions_are_answered_once_and_never_crossed() -> None:
    rng = random.Random(7)
    runs: dict[str, int] = {}
    registry = build(runs)

    async def main() -> list[list[ModelMessage | ResultMessage]]:
        conversations = []
        async with asyncio.TaskGroup() as group:
            for session in range(SESSIONS):
                agent = Agent(
                    ScriptedModel(script_of(session, rng)),
                    registry,
                    name=f"s{session}",
                    scope=Scope(allow=(*SHARED, f"own_{session}")),
                    settings=Settings(enabled="on"),
                )
                conversation = agent.conversation()
                conversations.append(conversation)
                task = group.create_task(conversation.ask("go"))
                if session % 10 == 9:  # some are cancelled midway
                    asyncio.get_running_loop().call_later(0.02, task.cancel)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return [c.messages for c in conversations]  # type: ignore[misc]

    transcripts = asyncio.run(main())

    answered = 0
    for session, messages in enumerate(transcripts):
        for place, message in enumerate(messages):
            if not isinstance(message, ModelMessage) or not message.calls:
                continue
            results = messages[place + 1 : place + 1 + len(message.calls)]
            assert all(isinstance(result, ResultMessage) for result in results)
            assert len(results) == len(message.calls)
            following = messages[place + 1 + len(message.calls) :]
            assert not following or not isinstance(following[0], ResultMessage)
            for call, result in zip(message.calls, results, strict=True):
                answered += 1
                assert isinstance(result, ResultMessage)
                assert result.call_id == call.id
                check(session, call, result)
    assert answered >= 0.9 * SESSIONS * TURNS * CALLS
    entered, left = runs.pop("threads in"), "threads out"
    deadline = time.monotonic() + 5
    while runs.get(left) != entered and time.monotonic() < deadline:
        time.sleep(0.01)
    assert runs.pop(left) == entered
    assert max(runs.values()) == 1


def check(session: int, call: Call, result: ResultMessage) -> None:
    """See that a result is that of this very call, and of a tool of this conversation."""
    given = json.loads(call.arguments)
    name, given = (given["name"], given["arguments"]) if "name" in given else (call.name, given)
    mark = given["mark"]
    assert mark.startswith(f"s{session}-")
    if result.text.startswith("Cancelled"):
        return
    if name.startswith("own_") and name != f"own_{session}":
        assert "is not available in this session" in result.text
        return
    match name:
        case "hang" | "hang_in_thread":
            assert result.text.startswith(f"{name} did not end within 0.05 s")
        case "fail":
            assert result.text == f"fail failed: RuntimeError: {mark}"
        case "give_up":
            assert result.text == "give_up stopped by itself without a result."
        case "flood":
            assert result.text.startswith(mark + "z")
            assert "Cut: the first 500 of 1,000,0" in result.text
        case _:
            assert result.text == mark
