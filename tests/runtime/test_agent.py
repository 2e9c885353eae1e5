"""`toolfold.runtime.Agent`: the loop, its limits, its long conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal

import pytest

from support.running import wait
from toolfold import Settings, Tool, ToolfoldError
from toolfold.demo.host import DemoHost
from toolfold.runtime import (
    SMALL,
    Activity,
    Agent,
    Approvals,
    Call,
    Done,
    Event,
    Limits,
    ModelError,
    ModelMessage,
    PendingCall,
    Registry,
    Reply,
    Request,
    ResultMessage,
    Says,
    ScriptedModel,
    TextDelta,
    Usage,
    UserMessage,
    calls,
    says,
)
from toolfold.sources.source import Source

FOLDED = Settings(enabled="on")


def calendar() -> Registry:
    registry = Registry()
    events: list[str] = []

    @registry.tool(toolset="calendar")
    def create_event(title: str) -> str:
        """Put an event in the calendar."""
        events.append(title)
        return f"created {title}"

    @registry.tool(toolset="calendar", read_only=True)
    def list_events() -> list[str]:
        """List the events of the calendar."""
        return events

    @registry.tool(toolset="calendar", destructive=True)
    def wipe_calendar() -> str:
        """Delete every event of the calendar."""
        events.clear()
        return "empty"

    return registry


def agent_of(*script: Says, registry: Registry | None = None, **more: object) -> Agent:
    given = {"settings": FOLDED, **more}
    return Agent(ScriptedModel(script), registry or calendar(), **given)  # type: ignore[arg-type]


async def events_of(agent: Agent, text: str) -> list[Event]:
    return [event async for event in agent.conversation().send(text)]


def test_a_turn_searches_calls_and_answers() -> None:
    agent = agent_of(
        calls(("tool_search", {"query": "put an event in the calendar"})),
        calls(("tool_call", {"name": "create_event", "arguments": {"title": "Lunch"}})),
        says("Lunch is in your calendar."),
        prefetch="off",
    )
    conversation = agent.conversation()

    done = wait(conversation.ask("Lunch tomorrow, please"))

    assert (done.text, done.stop, done.round_trips) == ("Lunch is in your calendar.", "end", 3)
    assert [type(m).__name__ for m in conversation.messages] == [
        "UserMessage",
        "ModelMessage",
        "ResultMessage",
        "ModelMessage",
        "ResultMessage",
        "ModelMessage",
    ]
    assert conversation.messages[4] == ResultMessage("created Lunch", "call_2_1", "tool_call")
    assert conversation.session.revealed[0] == "create_event"


def test_the_transcript_keeps_what_the_model_wrote_byte_for_byte() -> None:
    written = Call("tool_call", '{ "name":"list_events" ,"arguments" : {} }', "toolu_01\u00e9")
    agent = agent_of(Says("One moment. ", (written,)), says("Nothing."))
    conversation = agent.conversation()

    wait(conversation.ask("What is on?"))

    assert conversation.messages[1] == ModelMessage("One moment. ", (written,))
    assert conversation.messages[2] == ResultMessage("[]", "toolu_01\u00e9", "tool_call")


def test_a_turn_streams_text_activity_replies_and_its_end() -> None:
    agent = agent_of(
        calls(("list_events", {}), text="Let me look."), says("You have nothing on today, enjoy.")
    )

    events = wait(events_of(agent, "What is on?"))

    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    kinds = [event.kind for event in events if isinstance(event, Activity)]
    assert text == "Let me look.You have nothing on today, enjoy."
    assert kinds == ["started", "finished"]
    assert [event.stop for event in events if isinstance(event, Reply)] == ["calls", "end"]
    assert isinstance(events[-1], Done)


def test_the_model_sees_the_bridge_and_the_note_on_it_and_nothing_else_changes_per_turn() -> None:
    agent = agent_of(
        calls(("tool_search", {"query": "calendar"})), says("ok"), says("ok"), system="Be brief."
    )
    conversation = agent.conversation()
    model = agent.model
    assert isinstance(model, ScriptedModel)

    wait(conversation.ask("one"))
    wait(conversation.ask("two"))

    names = [[tool["function"]["name"] for tool in request.tools] for request in model.requests]
    assert names == [["tool_search", "tool_describe", "tool_call"]] * 3
    assert len({request.system for request in model.requests}) == 1
    assert model.requests[0].system.startswith("Be brief.\n\nNot all of your tools are listed.")


def test_searches_in_vain_are_counted_anew_with_the_users_next_message() -> None:
    vain = [calls(("tool_search", {"query": f"xyzzy{i} qqqq{i}"})) for i in range(4)]
    agent = agent_of(*vain[:2], says("no"), *vain[2:], says("no"))
    conversation = agent.conversation()

    wait(conversation.ask("one thing"))
    first = conversation.session.fruitless
    wait(conversation.ask("quite another"))

    assert (first, conversation.session.fruitless) == (2, 2)


def test_a_tool_that_is_added_between_turns_is_there_on_the_next() -> None:
    registry = calendar()
    agent = agent_of(
        calls(("tool_search", {"query": "brew_tea"})),
        says("none"),
        calls(("tool_call", {"name": "brew_tea", "arguments": {}})),
        says("tea"),
        registry=registry,
    )
    conversation = agent.conversation()
    wait(conversation.ask("tea?"))

    registry.tool(lambda: "hot", name="brew_tea")
    wait(conversation.ask("tea now?"))

    results = [m for m in conversation.messages if isinstance(m, ResultMessage)]
    assert "brew_tea" not in (results[0].found or ())
    assert results[1].text == "hot"


def test_core_tools_stay_open() -> None:
    registry = calendar()
    registry.tool(lambda: "text", name="read_file", core=True)
    agent = agent_of(registry=registry)

    assert agent.assemble().tools[0]["function"]["name"] == "read_file"


def test_an_agent_without_tools_just_talks() -> None:
    agent = agent_of(says("Hello."), registry=Registry())

    assert wait(agent.run("Hi")).text == "Hello."


# ---- limits


def test_a_turn_ends_at_its_limit_of_replies_with_every_call_answered() -> None:
    again = [calls(("create_event", {"title": f"{n}"})) for n in range(9)]
    agent = agent_of(*again, limits=Limits(turns=3))
    conversation = agent.conversation()

    done = wait(conversation.ask("go"))

    assert (done.stop, done.round_trips) == ("turns", 3)
    assert isinstance(conversation.messages[-1], ResultMessage)


def test_a_turn_ends_at_its_limit_of_tokens() -> None:
    again = [calls(("create_event", {"title": f"{n}"})) for n in range(9)]
    agent = agent_of(*again, limits=Limits(tokens=600))

    done = wait(agent.run("go"))

    assert done.stop == "tokens"
    assert 600 <= done.usage.prompt + done.usage.completion < 1_600


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ToolfoldError, match="the limit `turns` is 0"):
        Limits(turns=0)


def test_a_model_that_goes_round_in_circles_is_told_and_then_stopped() -> None:
    again = [calls(("list_events", {})) for _ in range(20)]
    agent = agent_of(*again)
    conversation = agent.conversation()

    done = wait(conversation.ask("go"))

    warned = [
        m for m in conversation.messages if isinstance(m, ResultMessage) and "times" in m.text
    ]
    assert done.stop == "loop"
    assert done.round_trips < 8
    assert warned


def test_a_reply_that_repeats_itself_without_end_is_cut() -> None:
    class Babbler:
        name = "babbler"
        shape = "openai-chat"
        closed = False

        async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
            try:
                while True:
                    yield TextDelta("I will now call the tool that I need. ")
            finally:
                self.closed = True

    babbler = Babbler()
    agent = Agent(babbler, calendar(), settings=FOLDED)  # type: ignore[arg-type]

    done = wait(agent.run("go"))

    assert done.stop == "length"
    assert len(done.text) < 2_000
    assert done.usage.completion > 0
    assert babbler.closed


@pytest.mark.parametrize("stop", ["length", "refused"])
def test_a_call_that_was_cut_off_is_not_run(stop: Literal["length", "refused"]) -> None:
    class CutOff(ScriptedModel):
        async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
            async for event in super().stream(request):
                is_call = isinstance(event, Reply) and event.message.calls
                yield replace(event, stop=stop) if is_call else event

    registry = Registry()
    ran: list[object] = []
    registry.tool(lambda day=None: ran.append(day), name="wipe")

    wait(Agent(CutOff([calls(("wipe", "")), says("Never mind.")]), registry).run("go"))

    assert ran == []


# ---- small models


def test_a_call_that_arrives_as_text_is_run_and_not_shown() -> None:
    text = '{"name": "create_event", "arguments": {"title": "Lunch"}}'
    agent = agent_of(says(text), says("Done."), profile=SMALL, recovered="run")
    conversation = agent.conversation()

    async def main() -> list[Event]:
        return [event async for event in conversation.send("Lunch")]

    events = wait(main())

    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    message = conversation.messages[1]
    assert isinstance(message, ModelMessage)
    assert shown == "Done."
    assert message.text == text
    assert message.calls[0].recovered
    assert conversation.messages[2].text == "created Lunch"


def test_json_that_is_no_call_is_shown_as_it_is() -> None:
    agent = agent_of(says('{"answer": 42, "because": "you asked"}'))

    events = wait(events_of(agent, "JSON please"))

    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == '{"answer": 42, "because": "you asked"}'


def test_a_botched_call_gets_one_clear_correction() -> None:
    agent = agent_of(
        says('<tool_call>{"name": "create_event", "argum</tool_call>'),
        calls(("create_event", {"title": "Lunch"})),
        says("Done."),
        profile=SMALL,
    )
    conversation = agent.conversation()

    done = wait(conversation.ask("Lunch"))

    correction = conversation.messages[2]
    assert isinstance(correction, UserMessage)
    assert correction.text == ""
    assert correction.note
    assert done.text == "Done."


def test_the_small_profile_keeps_every_core_tool_open_and_has_shorter_texts() -> None:
    registry = calendar()
    registry.tool(lambda: "", name="read_file", core=True)
    registry.tool(lambda: "", name="browser_click", core=True)
    standard = agent_of(registry=registry).assemble()
    small = agent_of(registry=registry, profile=SMALL).assemble()

    names = [tool["function"]["name"] for tool in small.tools]
    assert names[:2] == ["read_file", "browser_click"]
    assert small.report.tokens_after < standard.report.tokens_after


@pytest.mark.parametrize("model", ["Qwen3-4B-Instruct-2507-Q4_K_M.gguf", "somebody's-4b"])
def test_the_small_profile_folds_a_few_large_tools_whatever_the_window(model: str) -> None:
    async def nothing(call: PendingCall) -> str:
        return ""

    registry = Registry()
    for number in range(23):
        registry.add(Tool(f"tool_{number}", "It does something. " * 140), nothing)
    standard = Agent(ScriptedModel([], name=model), registry).assemble()
    small = Agent(ScriptedModel([], name=model), registry, profile=SMALL).assemble()

    assert 15_000 < standard.report.tokens_before < 17_000
    assert not standard.active
    assert small.active
    assert "at least 3,000 (`threshold_tokens`)" in small.report.reason


def test_a_call_as_json_behind_words_is_asked_for_once() -> None:
    shown = (
        'I will add it:\n```json\n{"name": "create_event", "arguments": {"title": "Lunch"}}\n```'
    )
    agent = agent_of(says(shown), calls(("create_event", {"title": "Lunch"})), says("Done."),
                     profile=SMALL)  # fmt: skip
    conversation = agent.conversation()

    done = wait(conversation.ask("Lunch"))

    correction = conversation.messages[2]
    assert isinstance(correction, UserMessage)
    assert correction.note == (
        'Nothing was run: your message only shows a call of "create_event". If you mean it, make '
        "it as a tool call, without words around it; if not, answer in plain words."
    )
    assert done.text == "Done."
    again = agent_of(says(shown), says(shown), says("never asked"), profile=SMALL)
    assert wait(again.conversation().ask("Lunch")).text == shown


def test_a_made_up_call_in_text_is_answered_with_the_signature_it_may_mean() -> None:
    made_up = '{"name": "add_calendar_event", "arguments": {"title": "Lunch"}}'
    agent = agent_of(says(made_up), calls(("create_event", {"title": "Lunch"})), says("Done."),
                     profile=SMALL)  # fmt: skip
    conversation = agent.conversation()

    assert wait(conversation.ask("Lunch")).text == "Done."

    correction = conversation.messages[2]
    assert isinstance(correction, UserMessage)
    assert correction.note == (
        'Nothing was run: there is no tool "add_calendar_event". If this one fits, call it now, by '
        "its exact name: create_event(title: string)"
    )


@pytest.mark.parametrize("how", ["direct", "tool_call"])
def test_a_small_model_that_repeats_what_worked_does_it_once_and_is_told(how: str) -> None:
    lunch = {"title": "Lunch"}
    again = ("create_event", lunch)
    if how == "tool_call":
        again = ("tool_call", {"name": "create_event", "arguments": lunch})
    registry = calendar()
    agent = agent_of(
        calls(("create_event", lunch)), calls(again), says("Lunch is in."),
        calls(again), says("Two."),
        registry=registry, profile=SMALL,
    )  # fmt: skip
    conversation = agent.conversation()

    done = wait(conversation.ask("Lunch"))

    assert (done.text, done.round_trips) == ("Lunch is in.", 3)
    *_, refused, told, _ = conversation.messages
    assert isinstance(refused, ResultMessage)
    assert refused.text == "Not run again: this very call has just been made, and it worked."
    assert isinstance(told, UserMessage)
    assert told.note == (
        "It is done: create_event has run. Do not call it again. Say in one sentence what was "
        "done, or go on with what is left."
    )
    assert wait(agent.call("list_events")).text == '["Lunch"]'
    wait(conversation.ask("Once more"))
    assert wait(agent.call("list_events")).text == '["Lunch","Lunch"]'


def test_what_reads_fails_or_differs_may_be_called_again() -> None:
    registry = calendar()

    @registry.tool
    def fails(title: str) -> str:
        """Fail."""
        raise ValueError(title)

    again = [
        calls(("list_events", {})), calls(("list_events", {})),
        calls(("fails", {"title": "a"})), calls(("fails", {"title": "a"})),
        calls(("create_event", {"title": "a"})), calls(("create_event", {"title": "b"})),
        calls(("create_event", {"title": "a"})),
    ]  # fmt: skip
    conversation = agent_of(*again, says("Done."), registry=registry, profile=SMALL).conversation()

    wait(conversation.ask("Go"))

    results = [m.text for m in conversation.messages if isinstance(m, ResultMessage)]
    assert len(results) == 7
    assert not any("Not run again" in text for text in results)


def test_a_model_of_another_profile_may_repeat_itself() -> None:
    lunch = ("create_event", {"title": "Lunch"})
    conversation = agent_of(calls(lunch), calls(lunch), says("Twice.")).conversation()

    wait(conversation.ask("Lunch, twice"))

    assert wait(conversation.agent.call("list_events")).text == '["Lunch","Lunch"]'


def test_likely_tools_are_named_in_the_order_of_the_steps_that_they_serve() -> None:
    host = DemoHost()
    asked = (
        "Find out who is on call for the payments team, and send that person a private message "
        "saying that checkout is down."
    )
    agent = Agent(ScriptedModel([says("Done.")]), host.registry(), settings=FOLDED, profile=SMALL)
    conversation = agent.conversation()
    wait(conversation.ask(asked))
    first = conversation.messages[0]
    assert isinstance(first, UserMessage)

    named = [text.partition("(")[0] for text in first.note.partition(": ")[2].split("; ")]
    assert named[:2] == ["monitor__get_on_call", "chat__send_direct_message"]


def test_an_open_tool_that_serves_a_step_best_is_named_before_folded_ones() -> None:
    registry = calendar()

    @registry.tool(core=True, read_only=True)
    def read_file(path: str) -> str:
        """Read a text file of the working folder."""
        return path

    agent = agent_of(says("Done."), registry=registry, profile=SMALL)
    conversation = agent.conversation()
    wait(conversation.ask("Read the file plan.md and then put an event in my calendar."))
    first = conversation.messages[0]

    assert isinstance(first, UserMessage)
    assert first.note.startswith(
        "(Tools that may help: first read_file, called directly; then these, to be run with "
        "tool_call: create_event(title: string)"
    )


def test_the_small_profile_names_likely_tools_unless_the_agent_says() -> None:
    def note(**options: object) -> str:
        conversation = agent_of(says("Done."), **options).conversation()  # type: ignore[arg-type]
        wait(conversation.ask("Put lunch into my calendar"))
        first = conversation.messages[0]
        assert isinstance(first, UserMessage)
        return first.note

    assert "create_event(title: string" in note(profile=SMALL)
    assert note(profile=SMALL, prefetch="off") == ""
    assert note(profile=SMALL, settings=replace(FOLDED, prefetch="off")) == ""


# ---- approvals


def test_a_person_is_asked_about_the_real_tool_once_always_or_never() -> None:
    asked: list[tuple[str, object]] = []
    verdicts = iter(["deny", "once", "always"])

    async def ask(call: PendingCall) -> str:
        asked.append((call.tool.name, dict(call.arguments)))
        return next(verdicts)

    wipe = calls(("tool_call", {"name": "wipe_calendar", "arguments": {}}))
    agent = agent_of(
        wipe, says("1"), wipe, says("2"), wipe, says("3"), wipe, says("4"),
        hooks=[Approvals(ask)],  # type: ignore[arg-type]
    )  # fmt: skip
    conversation = agent.conversation()
    for _ in range(4):
        wait(conversation.ask("wipe it"))

    results = [m.text for m in conversation.messages if isinstance(m, ResultMessage)]
    assert asked == [("wipe_calendar", {})] * 3
    assert results == [
        "wipe_calendar was not run. The user said no. Do not try it again; ask the user, or go "
        "on without it.",
        "empty",
        "empty",
        "empty",
    ]


def test_always_holds_for_the_tool_as_it_was_shown() -> None:
    asked = 0

    async def ask(call: PendingCall) -> str:
        nonlocal asked
        asked += 1
        return "always"

    registry = calendar()
    wipe = calls(("wipe_calendar", {}))
    agent = agent_of(
        wipe, says("1"), wipe, says("2"), registry=registry,
        hooks=[Approvals(ask)],  # type: ignore[arg-type]
    )  # fmt: skip
    conversation = agent.conversation()
    wait(conversation.ask("wipe"))

    registry.remove("wipe_calendar")
    registry.tool(lambda: "gone", name="wipe_calendar", destructive=True)
    wait(conversation.ask("wipe"))

    assert asked == 2


def test_people_are_asked_one_question_at_a_time() -> None:
    asking = 0
    most = 0

    async def ask(call: PendingCall) -> str:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(0)
        asking -= 1
        return "once"

    many = calls(*[("list_events", {})] * 5)
    approvals = Approvals(ask, when=lambda call: True)  # type: ignore[arg-type]
    wait(agent_of(many, says("ok"), hooks=[approvals]).run("go"))

    assert most == 1


# ---- failures and cancellation


def test_a_model_error_reaches_the_caller_and_the_conversation_goes_on() -> None:
    agent = agent_of()
    conversation = agent.conversation()

    with pytest.raises(ModelError, match="the script has no reply number 1"):
        wait(conversation.ask("Hi"))

    model = agent.model
    assert isinstance(model, ScriptedModel)
    model._script.append(says("Back."))  # pyright: ignore[reportPrivateUsage]
    assert wait(conversation.ask("Again")).text == "Back."


def test_a_cancelled_turn_leaves_a_whole_transcript_and_no_task() -> None:
    registry = Registry()
    started = asyncio.Event()
    cleaned: list[bool] = []

    @registry.tool
    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    agent = agent_of(calls(("hang", {}), ("hang", {})), says("after"), registry=registry)
    conversation = agent.conversation()

    async def main() -> None:
        task = asyncio.create_task(conversation.ask("go"))
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert (await conversation.ask("go on")).text == "after"

    asyncio.run(main())

    assert [type(m).__name__ for m in conversation.messages] == [
        "UserMessage", "ModelMessage", "ResultMessage", "ResultMessage", "UserMessage",
        "ModelMessage",
    ]  # fmt: skip
    assert cleaned == [True, True]


def test_a_turn_that_nobody_reads_any_more_stops() -> None:
    agent = agent_of(calls(("list_events", {})), says("never"))
    conversation = agent.conversation()

    async def main() -> None:
        turn = conversation.send("go")
        async for event in turn:
            if isinstance(event, Reply):
                break
        await turn.aclose()  # type: ignore[attr-defined]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())

    model = agent.model
    assert isinstance(model, ScriptedModel)
    assert model.left >= 1


def test_a_conversation_answers_one_message_at_a_time() -> None:
    agent = agent_of(says("one"), says("two"))
    conversation = agent.conversation()

    async def main() -> None:
        turn = conversation.send("one")
        await anext(aiter(turn))
        with pytest.raises(ToolfoldError, match="still answering"):
            await conversation.ask("two")
        await turn.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())


def test_a_consumer_that_is_cancelled_while_it_closes_a_turn_stays_cancelled() -> None:
    registry = Registry()
    started, go_on = asyncio.Event(), asyncio.Event()

    @registry.tool
    async def slow_to_stop() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await go_on.wait()

    agent = agent_of(calls(("slow_to_stop", {})), registry=registry)

    async def main() -> None:
        task = asyncio.create_task(agent.conversation().ask("go"))
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_an_agent_and_its_approvals_live_through_several_event_loops() -> None:
    async def ask(call: PendingCall) -> str:
        await asyncio.sleep(0)
        return "once"

    approvals = Approvals(ask, when=lambda call: True)  # type: ignore[arg-type]
    many = calls(("list_events", {}), ("list_events", {}), ("list_events", {}))
    agent = agent_of(many, says("one"), many, says("two"), hooks=[approvals])
    conversation = agent.conversation()

    wait(conversation.ask("a"))
    wait(conversation.ask("b"))

    results = [m.text for m in conversation.messages if isinstance(m, ResultMessage)]
    assert results == ["[]"] * 6


def test_a_client_that_knows_its_window_tells_the_gate() -> None:
    model = ScriptedModel([])
    model.context_length = 2_000  # type: ignore[attr-defined]

    assert Agent(model, calendar()).assemble().report.context_length == 2_000


def test_a_correction_is_never_compacted_to_nothing() -> None:
    botched = [says('<tool_call>{"name": "x", "argum</tool_call>'), says("ok")] * 12
    agent = agent_of(*botched, limits=Limits(discovery_tokens=20), profile=SMALL)
    conversation = agent.conversation()
    for n in range(12):
        wait(conversation.ask(f"turn {n}"))

    sent = [m for m in conversation.prompt() if isinstance(m, UserMessage)]
    assert all(m.text or m.note for m in sent)


# ---- prefetch


def test_prefetch_names_the_likely_tools_behind_the_message_and_saves_the_search() -> None:
    agent = agent_of(
        calls(("tool_call", {"name": "create_event", "arguments": {"title": "Lunch"}})),
        says("Done."),
        prefetch="always",
    )
    conversation = agent.conversation()

    done = wait(conversation.ask("Put an event in the calendar: Lunch"))

    first = conversation.messages[0]
    assert isinstance(first, UserMessage)
    assert first.text == "Put an event in the calendar: Lunch"
    assert "create_event(title: string)" in first.note
    assert done.round_trips == 2


def test_prefetch_says_where_even_the_likeliest_tool_is_probably_none() -> None:
    settings = Settings(enabled="on", relevance_floor=0.0)
    agent = agent_of(says("Hello."), prefetch="always", settings=settings)
    conversation = agent.conversation()

    wait(conversation.ask("Tell me something about the weather on Mars"))

    first = conversation.messages[0]
    assert isinstance(first, UserMessage)
    assert first.note.startswith("(No close match; nearest tools, to be run with tool_call: ")


def test_prefetch_leaves_out_what_an_answer_would_leave_out() -> None:
    agent = agent_of(says("Done."), prefetch="always")
    conversation = agent.conversation()

    wait(conversation.ask("create_event"))

    first = conversation.messages[0]
    assert isinstance(first, UserMessage)
    assert (
        first.note == "(Tools that may help, to be run with tool_call: create_event(title: string))"
    )


# ---- a subagent as a tool


def test_an_agent_can_be_a_tool_of_another_and_cannot_delegate_to_itself() -> None:
    registry = calendar()
    inner = ScriptedModel(
        [
            calls(("tool_call", {"name": "delegate", "arguments": {"task": "again"}})),
            calls(("list_events", {})),
            says("Nothing is on."),
        ]
    )
    heard: list[Activity] = []
    outer = agent_of(
        calls(("delegate", {"task": "What is on?"})),
        says("Free."),
        registry=registry,
        on_activity=heard.append,
    )
    helper = outer.subagent("helper", allow=("@calendar", "delegate"), model=inner)
    registry.add(*helper.as_tool("delegate", "Ask the calendar helper."))

    done = wait(outer.run("Am I free?"))

    assert done.text == "Free."
    said = [m.text for m in inner.requests[1].messages if isinstance(m, ResultMessage)]
    assert said[0].startswith('"delegate" is not available in this session.')
    assert [(a.agent, a.tool) for a in heard if a.kind == "finished"] == [
        ("agent/helper", "list_events"),
        ("agent", "delegate"),
    ]


def test_usage_adds_up_over_replies_and_turns() -> None:
    agent = agent_of(calls(("list_events", {})), says("one"), says("two"))
    conversation = agent.conversation()

    first = wait(conversation.ask("a"))
    second = wait(conversation.ask("b"))

    assert conversation.usage == first.usage + second.usage
    assert second.usage.cached > 0
    assert Usage(1, 2, 3) + Usage(1, 1, 1) == Usage(2, 3, 4)


# ---- names


def test_a_renamed_bridge_is_known_to_the_whole_agent() -> None:
    agent = agent_of(
        calls(("fold_search", {"query": "put an event"})),
        calls(("fold_call", {"name": "create_event", "arguments": {"title": "Lunch"}})),
        says("Done."),
        settings=Settings(enabled="on", bridge_prefix="fold"),
        prefetch="always",
    )
    conversation = agent.conversation()

    done = wait(conversation.ask("Put an event in the calendar: Lunch"))

    first, results = conversation.messages[0], conversation.messages
    assert isinstance(first, UserMessage) and "to be run with fold_call" in first.note
    found, ran = [message for message in results if isinstance(message, ResultMessage)]
    assert found.found is not None and "create_event" in found.found
    assert (ran.text, ran.found, done.text) == ("created Lunch", None, "Done.")


class Stranger(Source):
    """A source with a tool of a bridge's name."""

    name = "stranger"

    def tools(self) -> list[Tool]:
        return [Tool("tool_search", "Dig up the garden.", source=self.name)]

    async def call(self, tool: Tool, arguments: object, context: object) -> str:
        return f"{self.name} ran {tool.name}"


def test_a_source_with_a_tool_of_a_bridges_name_is_called_by_the_name_it_is_served_as() -> None:
    agent = Agent(ScriptedModel([]), [calendar(), Stranger()], settings=FOLDED)

    found = wait(agent.call("tool_search", {"query": "dig up the garden"}))
    ran = wait(agent.call("stranger__tool_search", {}))

    assert "stranger__tool_search()" in found.text
    assert ran.text == "stranger ran tool_search"
