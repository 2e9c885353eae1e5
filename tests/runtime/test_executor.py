"""`toolfold.runtime.Batch`: the calls of one turn."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Settings, fold
from toolfold.runtime import (
    Activity,
    Batch,
    Call,
    Guardrail,
    Hook,
    Output,
    PendingCall,
    Refusal,
    Registry,
    ResultMessage,
    current_call,
)

FOLDED = Settings(enabled="on")
OPEN = Settings(enabled="off")


def run(
    registry: Registry,
    *calls: Call,
    how: Settings = FOLDED,
    hooks: Sequence[Hook] = (),
    heard: list[Activity] | None = None,
    parallel: int = 16,
) -> tuple[ResultMessage, ...]:
    """Run calls as one turn, and see that no task is left."""

    async def main() -> tuple[ResultMessage, ...]:
        folded = fold(registry.tools(), settings=how, core=registry.core)
        listener = None if heard is None else heard.append
        batch = Batch(calls, folded, registry, hooks=hooks, listener=listener, parallel=parallel)
        await asyncio.wait_for(batch.run(), 5)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return batch.results

    return asyncio.run(main())


def through_bridge(name: str, id: str = "", /, **arguments: object) -> Call:
    return Call("tool_call", json.dumps({"name": name, "arguments": arguments}), id)


def directly(name: str, id: str = "", /, **arguments: object) -> Call:
    return Call(name, json.dumps(arguments), id)


def test_nearly_right_arguments_are_mended_and_wrong_dates_come_back() -> None:
    registry = Registry()
    ran: list[object] = []

    @registry.tool
    def plan(state: Literal["OPEN", "IN_PROGRESS"], due: date | None, tags: dict[str, int]) -> str:
        """Plan a thing."""
        ran.append((state, due, tags))
        return "planned"

    given = {"state": "in progress", "due": None, "tags": '"{\\"a\\": 1}"'}
    twice = Call("plan", json.dumps(json.dumps({**given, "due": "2026-01-31"})))
    wrong = {**given, "due": "soon"}

    results = run(registry, through_bridge("plan", **given), twice, directly("plan", **wrong))

    assert sorted(ran, key=repr) == [
        ("IN_PROGRESS", None, {"a": 1}),
        ("IN_PROGRESS", date(2026, 1, 31), {"a": 1}),
    ]
    assert [result.text for result in results] == [
        "planned",
        "planned",
        'plan was not run. due: must be either a date such as "2026-01-31" or null. '
        'Signature: plan(state: "OPEN"|"IN_PROGRESS", due: date, tags: {*: integer})',
    ]


def adder() -> Registry:
    registry = Registry()

    @registry.tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return registry


@pytest.mark.parametrize("how", [FOLDED, OPEN], ids=["folded", "open"])
def test_a_plain_and_an_asynchronous_function_both_run(how: Settings) -> None:
    registry = adder()

    @registry.tool
    async def greet(name: str) -> str:
        return f"Hello {name}"

    results = run(registry, directly("add", a=1, b=2), directly("greet", name="Ada"), how=how)

    assert [result.text for result in results] == ["3", "Hello Ada"]


def test_a_call_through_the_bridge_runs_the_real_tool_and_keeps_the_name_that_was_written() -> None:
    (result,) = run(adder(), through_bridge("add", "call_7", a=1, b=2))

    assert result == ResultMessage("3", "call_7", "tool_call", is_error=False, found=None)


def test_a_search_is_answered_and_says_what_it_found() -> None:
    (result,) = run(adder(), Call("tool_search", '{"query": "add numbers"}', "s1"))

    assert result.found == ("add",)
    assert "add(a: integer, b: integer)" in result.text


def test_results_stand_in_the_models_order_whatever_ends_first() -> None:
    registry = Registry()
    late = asyncio.Event()

    @registry.tool
    async def first() -> str:
        await late.wait()
        return "first"

    @registry.tool
    async def second() -> str:
        late.set()
        return "second"

    results = run(registry, directly("first", "a"), directly("second", "b"))

    assert [(r.text, r.call_id) for r in results] == [("first", "a"), ("second", "b")]


def test_one_tool_that_may_not_run_beside_others_puts_all_in_order() -> None:
    registry = Registry()
    running: list[str] = []

    def tool(name: str, **kind: Any) -> None:
        @registry.tool(name=name, **kind)
        async def _() -> str:
            running.append(f"{name} starts")
            await asyncio.sleep(0)
            running.append(f"{name} ends")
            return name

    tool("look", read_only=True)
    tool("wipe", destructive=True)

    run(registry, directly("look"), directly("wipe"), directly("look"))

    assert running == [
        "look starts", "look ends", "wipe starts", "wipe ends", "look starts", "look ends",
    ]  # fmt: skip


def test_no_more_tools_run_at_once_than_there_are_slots() -> None:
    registry = Registry()
    running = 0
    most = 0
    three = asyncio.Barrier(3)

    @registry.tool
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await three.wait()
        running -= 1

    run(registry, *[directly("work") for _ in range(12)], parallel=3)

    assert most == 3


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Done. It returned nothing."),
        ("", "Done. It returned nothing."),
        ("text", "text"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Point(3), '{"x":3}'),
        ({1}, "[1]"),
        (b"abc", '"<3 bytes>"'),
        (Output("custom", is_error=True), "custom"),
    ],
)
def test_what_a_tool_returns_becomes_a_text(value: object, text: str) -> None:
    registry = Registry()
    registry.tool(lambda: value, name="give")

    (result,) = run(registry, directly("give"))

    assert result.text == text


def test_a_result_that_is_too_long_is_cut_with_a_note_of_how_much() -> None:
    registry = Registry()
    registry.tool(lambda: "x" * 1_000_000, name="flood", result_limit=10)

    (result,) = run(registry, directly("flood"))

    assert result.text == (
        "xxxxxxxxxx\n(Cut: the first 10 of 1,000,000 characters. Ask for less, or for a part.)"
    )


def test_half_a_character_in_a_result_does_not_reach_the_wire() -> None:
    registry = Registry()
    registry.tool(lambda: "a\ud800b", name="odd")

    (result,) = run(registry, directly("odd"))

    assert result.text.encode() == b"a?b"


def test_an_exception_is_an_error_that_names_tool_and_reason_and_spares_its_siblings() -> None:
    registry = adder()

    @registry.tool
    def broken() -> None:
        raise ValueError("no such day: 31 June")

    failed, added = run(registry, directly("broken"), directly("add", a=1, b=1))

    assert failed.is_error
    assert failed.text == "broken failed: ValueError: no such day: 31 June"
    assert added.text == "2"


def test_a_secret_in_an_exception_does_not_reach_the_model() -> None:
    registry = Registry()

    @registry.tool
    def broken() -> None:
        raise RuntimeError("401 for Authorization: Bearer sk-ant-REDACTED")

    (result,) = run(registry, directly("broken"))

    assert "abcdefghijkl" not in result.text


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_tool_that_tries_to_exit_ends_its_call_and_nothing_else(asynchronous: bool) -> None:
    registry = adder()

    if asynchronous:

        @registry.tool
        async def leave() -> None:
            sys.exit(3)
    else:

        @registry.tool
        def leave() -> None:
            sys.exit(3)

    left, added = run(registry, directly("leave"), directly("add", a=1, b=1))

    assert left.is_error
    assert added.text == "2"


def test_an_asynchronous_tool_that_hangs_is_cancelled_after_its_time() -> None:
    registry = adder()
    ended: list[str] = []

    @registry.tool(timeout=0.05)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    hung, added = run(registry, directly("hang"), directly("add", a=1, b=1))

    assert hung.text == "hang did not end within 0.05 s and was stopped. It may have had effects."
    assert ended == ["cleaned up"]
    assert added.text == "2"


def test_a_function_in_a_thread_learns_that_nobody_waits_any_more() -> None:
    registry = Registry()
    noticed = threading.Event()

    @registry.tool(timeout=0.05)
    def hang() -> None:
        while not current_call().cancelled:
            time.sleep(0.005)
        noticed.set()

    (result,) = run(registry, directly("hang"))

    assert result.is_error
    assert noticed.wait(5)


def test_threads_that_hang_hold_up_no_other_call() -> None:
    registry = adder()
    release = threading.Event()

    @registry.tool(timeout=0.05)
    def hang() -> None:
        release.wait(30)

    try:
        results = run(
            registry,
            *[directly("hang") for _ in range(60)],
            directly("add", a=1, b=1),
            parallel=100,
        )
    finally:
        release.set()

    assert results[-1].text == "2"


def test_a_tool_that_cancels_itself_is_answered() -> None:
    registry = Registry()

    @registry.tool
    async def give_up() -> None:
        raise asyncio.CancelledError

    (result,) = run(registry, directly("give_up"))

    assert result.text == "give_up stopped by itself without a result."


def test_after_a_cancellation_every_call_has_a_result() -> None:
    registry = adder()
    started = asyncio.Event()
    cleaned: list[bool] = []

    @registry.tool(destructive=True)
    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    async def main() -> tuple[ResultMessage, ...]:
        folded = fold(registry.tools(), settings=FOLDED)
        calls = (directly("add", "a", a=1, b=1), directly("hang", "b"), directly("add", "c"))
        batch = Batch((*calls, directly("add", "d", a=1, b=2)), folded, registry)
        task = asyncio.create_task(batch.run())
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return batch.results

    results = asyncio.run(main())

    assert [result.call_id for result in results] == ["a", "b", "c", "d"]
    assert [result.text for result in results][:2] == [
        "2",
        "Cancelled before it ended. It may have had effects.",
    ]
    assert results[2].text.startswith("add was not run.")
    assert results[3].text == "Cancelled before it began."
    assert cleaned == [True]


def test_duplicate_and_missing_ids_get_a_result_each() -> None:
    results = run(
        adder(),
        through_bridge("add", "same", a=1, b=1),
        through_bridge("add", "same", a=2, b=2),
        through_bridge("add", "", a=3, b=3),
    )

    assert [(r.call_id, r.text) for r in results] == [("same", "2"), ("same", "4"), ("", "6")]


def test_a_tool_that_left_the_registry_in_between_reads_like_an_unknown_one() -> None:
    registry = adder()

    async def main() -> ResultMessage:
        folded = fold(registry.tools(), settings=FOLDED)
        registry.remove("add")
        batch = Batch([through_bridge("add", a=1, b=1)], folded, registry)
        await batch.run()
        return batch.results[0]

    assert asyncio.run(main()).text == '"add" is not available in this session.'


def test_a_tool_that_became_another_in_between_does_not_run_under_the_old_ones_name() -> None:
    registry = adder()
    ran: list[str] = []

    async def main() -> ResultMessage:
        folded = fold(registry.tools(), settings=FOLDED)
        registry.remove("add")
        registry.tool(lambda a, b: ran.append("wiped"), name="add", destructive=True)
        batch = Batch([through_bridge("add", a=1, b=1)], folded, registry)
        await batch.run()
        return batch.results[0]

    assert asyncio.run(main()).is_error
    assert ran == []


def test_a_tool_that_an_earlier_call_switches_off_does_not_run() -> None:
    registry = Registry()
    ran: list[str] = []

    @registry.tool(toolset="admin", parallel=False)
    def lock() -> str:
        registry.disable("payments")
        return "locked"

    registry.tool(lambda: ran.append("paid"), name="pay", toolset="payments")

    locked, paid = run(registry, directly("lock"), directly("pay"))

    assert locked.text == "locked"
    assert paid.is_error
    assert ran == []


def test_the_last_call_of_a_reply_that_was_cut_off_is_not_run_without_its_arguments() -> None:
    registry = Registry()
    ran: list[object] = []
    registry.tool(lambda day=None: ran.append(day), name="wipe")

    async def main() -> tuple[ResultMessage, ...]:
        folded = fold(registry.tools(), settings=OPEN)
        calls = [directly("wipe", day="monday"), Call("wipe", "")]
        batch = Batch(calls, folded, registry, cut_off=True)
        await batch.run()
        return batch.results

    whole, cut = asyncio.run(main())

    assert ran == ["monday"]
    assert not whole.is_error
    assert cut.text == "wipe was not run: the call was cut off. Send one JSON object."


def test_a_second_cancellation_leaves_no_task_and_no_clean_up_undone() -> None:
    registry = Registry()
    started, go_on = asyncio.Event(), asyncio.Event()
    cleaned: list[str] = []

    @registry.tool(parallel=False)
    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await go_on.wait()
            cleaned.append("up")

    async def main() -> None:
        folded = fold(registry.tools(), settings=FOLDED)
        task = asyncio.create_task(Batch([directly("hang")], folded, registry).run())
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())

    assert cleaned == ["up"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_without_words_is_named_all_the_same() -> None:
    registry = Registry()

    @registry.tool
    def broken() -> None:
        raise Unspeakable

    (result,) = run(registry, directly("broken"))

    assert result.text == "broken failed: Unspeakable"


@pytest.mark.parametrize("value", [2**70, ["caf\udce9"], {(1, 2): 3}, [[]]])
def test_a_result_that_is_hard_to_write_is_still_a_result(value: object) -> None:
    registry = Registry()
    registry.tool(lambda: value, name="give")

    (result,) = run(registry, directly("give"))

    assert not result.is_error
    assert result.text


# ---- hooks


class Recorder(Hook):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, object]] = []

    async def before_call(self, call: PendingCall) -> None:
        self.seen.append(("before", call.tool.name, dict(call.arguments)))

    def after_call(self, call: PendingCall, output: Output) -> None:
        self.seen.append(("after", call.tool.name, output.text))


@pytest.mark.parametrize("parallel", [True, False], ids=["at once", "in order"])
def test_hooks_see_the_real_tool_on_both_paths(parallel: bool) -> None:
    registry = Registry()

    @registry.tool(parallel=parallel)
    def add(a: int, b: int) -> int:
        return a + b

    recorder = Recorder()
    run(registry, through_bridge("add", a=1, b=2), hooks=[recorder])

    assert recorder.seen == [("before", "add", {"a": 1, "b": 2}), ("after", "add", "3")]


def test_a_hook_can_change_arguments_refuse_answer_and_replace() -> None:
    class Double(Hook):
        def before_call(self, call: PendingCall) -> PendingCall:
            return call.with_arguments({"a": 10, "b": call.arguments["b"]})

    class No(Hook):
        def before_call(self, call: PendingCall) -> Refusal:
            return Refusal("Not today.")

    class Cached(Hook):
        def before_call(self, call: PendingCall) -> Output:
            return Output("from the cache")

    class Shout(Hook):
        async def after_call(self, call: PendingCall, output: Output) -> Output:
            return Output(output.text + "!")

    def result(*hooks: Hook) -> ResultMessage:
        return run(adder(), through_bridge("add", a=1, b=2), hooks=hooks)[0]

    assert result(Double()).text == "12"
    assert result(No()).text == "add was not run. Not today."
    assert result(No()).is_error
    assert result(Cached(), Shout()).text == "from the cache!"
    assert result(Double(), Shout()).text == "12!"


def test_a_hook_that_raises_stops_its_call_and_no_other() -> None:
    class Broken(Hook):
        def before_call(self, call: PendingCall) -> None:
            if call.arguments["a"] == 1:
                raise RuntimeError("the policy server is down")

    stopped, ran = run(
        adder(), directly("add", a=1, b=1), directly("add", a=2, b=2), hooks=[Broken()]
    )

    assert stopped.text == "add was not run. The check of this call failed."
    assert ran.text == "4"


def test_a_hook_cannot_turn_a_call_into_another_tools() -> None:
    registry = adder()
    ran: list[str] = []

    @registry.tool
    def wipe() -> None:
        ran.append("wipe")

    class Divert(Hook):
        def before_call(self, call: PendingCall) -> PendingCall:
            other = registry.get("wipe")
            assert other is not None
            return PendingCall(other.tool, {})

    (result,) = run(registry, directly("add", a=1, b=1), hooks=[Divert()])

    assert result.is_error
    assert ran == []


@pytest.mark.parametrize("said", [False, "no", 0, object()])
def test_a_hook_that_says_something_unknown_stops_the_call(said: object) -> None:
    ran: list[str] = []

    async def work(call: PendingCall) -> str:
        ran.append("ran")
        return "done"

    class Odd(Hook):
        def before_call(self, call: PendingCall) -> object:  # type: ignore[override]
            return said

    registry = Registry()
    registry.add({"name": "work"}, work)

    (result,) = run(registry, directly("work"), hooks=[Odd()])

    assert result.text == "work was not run. The check of this call failed."
    assert ran == []


def test_a_hook_that_fails_afterwards_does_not_say_that_nothing_ran() -> None:
    class Broken(Hook):
        def after_call(self, call: PendingCall, output: Output) -> None:
            raise RuntimeError("the log is full")

    (result,) = run(adder(), directly("add", a=1, b=1), hooks=[Broken()])

    assert result.text == ("add ran, but the check of its result failed. It may have had effects.")


def test_a_hook_whose_question_is_cancelled_refuses_its_call_and_no_other() -> None:
    class Dialog(Hook):
        async def before_call(self, call: PendingCall) -> None:
            if call.arguments["a"] == 1:
                answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
                answer.cancel()
                await answer

    registry = Registry()
    registry.tool(lambda a: a, name="alone", parallel=False)

    closed, ran = run(registry, directly("alone", a=1), directly("alone", a=2), hooks=[Dialog()])

    assert closed.is_error
    assert ran.text == "2"


def test_a_guardrail_looks_only_at_its_tools() -> None:
    registry = adder()
    registry.tool(lambda path: path, name="read_file")
    rail = Guardrail(lambda call: "Outside.", match=("*_file",))

    added, refused = run(
        registry, directly("add", a=1, b=1), directly("read_file", path="x"), hooks=[rail]
    )

    assert added.text == "2"
    assert refused.text == "read_file was not run. Outside."


# ---- the activity feed


def test_the_feed_names_real_tools_with_durations_and_sizes() -> None:
    registry = Registry()

    @registry.tool(toolset="files")
    async def copy(path: str) -> str:
        current_call().progress("half way", 0.5)
        return "x" * 50

    heard: list[Activity] = []
    run(registry, through_bridge("copy", "c1", path="a"), heard=heard)

    assert [(a.kind, a.tool, a.toolset, a.call_id, a.via) for a in heard] == [
        ("started", "copy", "files", "c1", "tool_call"),
        ("progress", "copy", "files", "c1", "tool_call"),
        ("finished", "copy", "files", "c1", "tool_call"),
    ]
    assert (heard[1].message, heard[1].fraction) == ("half way", 0.5)
    assert heard[2].size == 50
    assert 0 < heard[2].seconds < 5


def test_progress_from_a_thread_is_heard_while_the_tool_runs_in_the_loops_own_thread() -> None:
    registry = Registry()
    heard_it = threading.Event()
    where: list[int] = []

    @registry.tool
    def copy() -> bool:
        current_call().progress("half way", 0.5)
        return heard_it.wait(5)

    async def main() -> str:
        def listener(activity: Activity) -> None:
            if activity.kind == "progress":
                where.append(threading.get_ident())
                heard_it.set()

        folded = fold(registry.tools(), settings=FOLDED)
        batch = Batch([directly("copy")], folded, registry, listener=listener)
        await batch.run()
        return batch.results[0].text

    assert asyncio.run(main(), debug=True) == "true"
    assert where == [threading.get_ident()]


def test_two_calls_without_ids_can_be_told_apart_in_the_feed() -> None:
    heard: list[Activity] = []
    run(adder(), directly("add", a=1, b=1), directly("add", a=2, b=2), heard=heard)

    done = sorted((a.place, dict(a.arguments)["a"]) for a in heard if a.kind == "finished")
    assert done == [(0, 1), (1, 2)]


def test_the_feed_tells_of_refusals_and_searches() -> None:
    heard: list[Activity] = []
    run(
        adder(),
        Call("tool_search", '{"query": "add numbers"}'),
        through_bridge("add", a=1, b=1),
        hooks=[Guardrail(lambda call: "No.")],
        heard=heard,
    )

    assert [(a.kind, a.tool, a.found, a.message) for a in heard] == [
        ("searched", "tool_search", ("add",), '{"query": "add numbers"}'),
        ("refused", "add", (), "No."),
    ]


def test_a_listener_that_raises_changes_nothing() -> None:
    registry = adder()

    def listener(activity: Activity) -> None:
        raise RuntimeError("the screen is gone")

    async def main() -> str:
        folded = fold(registry.tools(), settings=FOLDED)
        batch = Batch([through_bridge("add", a=1, b=2)], folded, registry, listener=listener)
        await batch.run()
        return batch.results[0].text

    assert asyncio.run(main()) == "3"


def test_progress_outside_a_call_is_a_clear_error() -> None:
    with pytest.raises(LookupError, match="no tool call is running here"):
        current_call()


# ---- laws

KINDS = ("add", "raise", "hang", "flood", "unknown", "search", "wrong", "nothing", "core")


@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.sampled_from(["", "x", "y"]), st.booleans()),
        max_size=12,
    ),
    st.booleans(),
    st.sampled_from([FOLDED, OPEN]),
)
def test_every_call_gets_exactly_one_result_in_order(
    made: list[tuple[str, str, bool]], in_order: bool, how: Settings
) -> None:
    registry = Registry()
    registry.tool(lambda: 1 / 0, name="raise", parallel=not in_order)
    registry.tool(lambda: "y" * 100_000, name="flood", result_limit=100)
    registry.tool(lambda: None, name="nothing")
    registry.tool(lambda: "core", name="core", core=True)

    @registry.tool(timeout=0.01)
    async def hang() -> None:
        await asyncio.Event().wait()

    @registry.tool
    async def add(a: int) -> int:
        return a

    calls: list[Call] = []
    for place, (kind, id, bridged) in enumerate(made):
        match kind:
            case "search":
                calls.append(Call("tool_search", '{"query": "add"}', id))
            case "wrong":
                calls.append(Call("add", '{"a": "\n', id))
            case _:
                arguments = {"a": place} if kind == "add" else {}
                call = through_bridge if bridged else directly
                calls.append(call(kind, id, **arguments))

    results = run(registry, *calls, how=how)

    assert [(r.call_id, r.name) for r in results] == [(c.id, c.name) for c in calls]
    for place, ((kind, _, bridged), result) in enumerate(zip(made, results, strict=True)):
        if kind == "add" and (not bridged or how is FOLDED):
            assert result.text == str(place)
