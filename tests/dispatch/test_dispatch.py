"""`Dispatch`, through the agent's calls: what a tool, a hook or a person does to one call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

import pytest

from toolfold import Settings, Tool, fold
from toolfold.dispatch.records import CallRecord, Silent
from toolfold.runtime import (
    Activity,
    Batch,
    Call,
    Hook,
    Output,
    PendingCall,
    Refusal,
    Registry,
    ResultMessage,
    current_call,
)
from toolfold.sources.calls import CallContext
from toolfold.sources.source import Source, SourceError

OPEN = Settings(enabled="off")


class Records(Silent):
    """Keeps the record of each call."""

    def __init__(self) -> None:
        self.ended: list[CallRecord] = []

    def called(self, record: CallRecord) -> None:
        self.ended.append(record)


def batch(
    source: Source,
    *calls: Call,
    hooks: Sequence[Hook] = (),
    heard: list[Activity] | None = None,
    records: Records | None = None,
) -> Batch:
    return Batch(
        calls,
        fold(source.tools(), settings=OPEN),
        source,
        hooks=hooks,
        listener=None if heard is None else heard.append,
        observers=() if records is None else (records,),
    )


def run(source: Source, *calls: Call, **more: Any) -> tuple[ResultMessage, ...]:
    """Run calls as one turn, and see that no task is left."""

    async def main() -> tuple[ResultMessage, ...]:
        made = batch(source, *calls, **more)
        await asyncio.wait_for(made.run(), 5)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return made.results

    return asyncio.run(main())


class Shade(StrEnum):
    DARK = "dark"


class Colour(str, Enum):  # noqa: UP042 - such ones show their own name as their text
    RED = "red"


@pytest.mark.parametrize("value", [Shade.DARK, Colour.RED])
def test_a_text_of_a_kind_of_its_own_is_a_text(value: Shade | Colour) -> None:
    registry = Registry()

    @registry.tool
    def paint() -> str:
        "Say a colour."
        return value

    (result,) = run(registry, Call("paint", "{}"))

    assert (result.text, type(result.text), result.is_error) == (value.value, str, False)


class Leaving(Source):
    """A source of its own kind, whose only tool tries to end the program."""

    name = "leaving"

    def tools(self) -> tuple[Tool, ...]:
        return (Tool("leave", "Leave."),)

    async def call(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> None:
        raise SystemExit(3)


def test_no_source_can_end_the_host() -> None:
    (result,) = run(Leaving(), Call("leave", "{}"))

    assert result.text == "leave failed: RuntimeError: it tried to exit with 3"


class Away(Leaving):
    """A source that is not there, and says so."""

    async def call(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> None:
        raise SourceError("the server 'away' is not running")


def test_a_source_that_says_why_it_failed_is_logged_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "toolfold"):
        (result,) = run(Away(), Call("leave", "{}"))

    assert result.text == "leave failed: SourceError: the server 'away' is not running"
    assert caplog.messages == ["leave failed: the server 'away' is not running"]
    assert "Traceback" not in caplog.text


class Rebuilding(Hook):
    """Makes the call anew, and says nothing of whose it is."""

    def before_call(self, call: PendingCall) -> PendingCall:
        return PendingCall(call.tool, {"text": "other"})


def test_a_hook_that_makes_a_call_anew_changes_its_arguments_and_not_whose_it_is() -> None:
    registry = Registry()
    seen: list[PendingCall] = []

    @registry.tool
    async def say(text: str) -> str:
        "Say."
        seen.append(current_call().call)
        return text

    heard: list[Activity] = []
    calls = [Call("say", '{"text": "one"}', "a"), Call("say", '{"text": "two"}', "b")]
    run(registry, *calls, hooks=[Rebuilding()], heard=heard)

    assert [(call.id, call.position, call.arguments) for call in seen] == [
        ("a", 0, {"text": "other"}),
        ("b", 1, {"text": "other"}),
    ]
    finished = [a for a in heard if a.kind == "finished"]
    assert [(a.call_id, a.place) for a in finished] == [("a", 0), ("b", 1)]


class Hanging(Hook):
    """Never decides."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def before_call(self, call: PendingCall) -> None:
        self.asked.set()
        await asyncio.Event().wait()


def test_the_feed_says_nothing_of_a_call_that_was_cancelled_before_it_began() -> None:
    registry = Registry()

    @registry.tool
    def say() -> str:
        "Say."
        return "said"

    heard: list[Activity] = []
    records = Records()

    async def main() -> None:
        hook = Hanging()
        made = batch(registry, Call("say", "{}"), hooks=[hook], heard=heard, records=records)
        task = asyncio.create_task(made.run())
        await asyncio.wait_for(hook.asked.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert heard == []
    assert [(record.outcome, record.started) for record in records.ended] == [("cancelled", False)]


class Replacing(Hook):
    def __init__(self, output: Output) -> None:
        self._output = output

    def after_call(self, call: PendingCall, output: Output) -> Output:
        return self._output


async def _good(call: PendingCall) -> str:
    return "good"


async def _bad(call: PendingCall) -> Output:
    return Output("bad", is_error=True)


async def _raised(call: PendingCall) -> str:
    raise ValueError("lost")


async def _refused(call: PendingCall) -> Refusal:
    return Refusal("Not today.")


@pytest.mark.parametrize(
    ("work", "put", "outcome", "error"),
    [
        (_good, Output("better"), "ok", None),
        (_good, Output("hidden", is_error=True), "tool_error", None),
        (_bad, Output("mended"), "ok", None),
        (_raised, Output("gone", is_error=True), "failed", "gone"),
        (_raised, Output("mended"), "ok", None),
        (_refused, Output("not run", is_error=True), "refused", "not run"),
    ],
)
def test_the_record_agrees_with_what_a_hook_put_in_the_place_of_an_output(
    work: Any, put: Output, outcome: str, error: str | None
) -> None:
    registry = Registry()
    registry.add(Tool("work", "Work."), work)
    records = Records()

    (result,) = run(registry, Call("work", "{}"), hooks=[Replacing(put)], records=records)

    assert (result.text, result.is_error) == (put.text, put.is_error)
    (record,) = records.ended
    assert (record.outcome, record.error, record.output) == (outcome, error, put)


def test_a_turn_cancelled_while_a_late_tool_cleans_up_waits_for_it() -> None:
    registry = Registry()
    cleaning = asyncio.Event()
    cleaned: list[str] = []

    @registry.tool(timeout=0.01)
    async def hang() -> None:
        "Hang."
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            for _ in range(20):
                await asyncio.sleep(0)
            cleaned.append("up")

    async def main() -> None:
        task = asyncio.create_task(batch(registry, Call("hang", "{}")).run())
        await asyncio.wait_for(cleaning.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned == ["up"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_tool_that_says_how_far_it_is_after_it_has_ended_is_not_heard() -> None:
    registry = Registry()
    kept: list[CallContext] = []

    @registry.tool
    async def say() -> str:
        "Say."
        kept.append(current_call())
        current_call().progress("half", 0.5)
        return "said"

    heard: list[Activity] = []

    async def main() -> None:
        made = batch(registry, Call("say", "{}"), heard=heard)
        await made.run()
        kept[0].progress("late")
        await asyncio.to_thread(kept[0].progress, "later")
        await asyncio.sleep(0)

    asyncio.run(main())

    assert [a.kind for a in heard] == ["started", "progress", "finished"]


def test_the_clock_stands_still_until_the_last_of_several_questions_is_answered() -> None:
    registry = Registry()

    async def ask_twice(call: PendingCall) -> str:
        clock = current_call().clock
        clock.pause()
        clock.pause()
        clock.go_on()
        await asyncio.sleep(0.1)
        clock.go_on()
        return "answered"

    async def hang(call: PendingCall) -> str:
        clock = current_call().clock
        clock.pause()
        clock.go_on()
        await asyncio.Event().wait()
        return "never"

    registry.add(Tool("ask", "Ask twice."), ask_twice, timeout=0.02)
    registry.add(Tool("hang", "Ask and hang."), hang, timeout=0.02)

    asked, hung = run(registry, Call("ask", "{}"), Call("hang", "{}"))

    assert (asked.text, asked.is_error) == ("answered", False)
    assert hung.is_error
