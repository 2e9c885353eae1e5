"""A real conversation over a folded catalog, and what must hold about it.

Protocol and shape are asserted, wisdom is not: what the model chose, found and said goes
into the report as it was.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from live.report import Report, short
from live.server import Server
from live.steered import Steered, client, forced
from toolfold import Settings
from toolfold.demo.host import SYSTEM, DemoHost
from toolfold.runtime import (
    SMALL,
    Activity,
    Agent,
    Call,
    Conversation,
    Done,
    Limits,
    ModelError,
    ModelMessage,
    Reply,
    ResultMessage,
    TextDelta,
)

__all__ = ["CONTEXT", "hold"]

CONTEXT = 4_096
"""The context window that the server is given."""

_OPEN = "notes__create_note"
"""A tool that stays open, to be called without the bridge."""

_CAP = 16
_LONG = 1_500
"""The tokens of a reply that is cancelled long before it is done."""

_TURNS: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("Say hello in one sentence.", ()),
    ("Find a tool that can put an event on my calendar.", ("tool_search", None)),
    ("Now call it: lunch with Ada tomorrow at noon.", ("tool_call", None)),
    ("Note down that the oat milk is empty.", (_OPEN, None)),
    ("Thank you. What have we done so far?", ()),
)


async def hold(server: Server, report: Report) -> None:
    """Hold the conversation, and try what else a client must be able to do."""
    model = Steered(server)
    agent = Agent(
        model,
        DemoHost().registry(),
        system=SYSTEM,
        settings=Settings(enabled="on", core=(_OPEN,)),
        context_length=CONTEXT,
        profile=SMALL,
        recovered="run",  # nothing behind these tools is real
        limits=Limits(turns=3, reply_tokens=120),
    )
    parts = {
        "the unfolded tools": _does_not_fit(server, report, agent),
        "the conversation": _turns(report, agent, model),
        "the cap": _cap(server, report, agent),
        "cancelling": _cancelled(server, report, agent),
        "an empty stream": _nothing(server, report, agent),
        "its own choice": _own_choice(server, report, agent),
    }
    _fits(server, report, agent)
    try:
        for what, part in parts.items():
            try:
                await part
            except ModelError as error:
                report.check(f"{what}: no request fails", False, short(str(error), 400))
    finally:
        for part in parts.values():
            part.close()
        await model.aclose()


# ---- the context


def _fits(server: Server, report: Report, agent: Agent) -> None:
    folded = agent.assemble()
    counted = server.tokens(json.dumps(folded.tools))
    told = folded.report
    report.check(
        "the folded tools fit the context with room to spare",
        folded.active and counted < CONTEXT // 4,
        f"{told.tools_before} tools as {told.tools_after}, {counted:,} tokens to the model, "
        f"{told.tokens_after:,} by our estimate",
    )


async def _does_not_fit(server: Server, report: Report, agent: Agent) -> None:
    unfolded = replace(
        agent,
        model=client(server, stream=False, **forced(_OPEN)),
        settings=Settings(enabled="off"),
    )
    try:
        await unfolded.run("Hello.")
    except ModelError as error:
        fits, saw = error.status != 400, short(str(error), 170)
    else:
        fits, saw = True, "the server took them"
    report.check("the same tools unfolded do not, and the server's reason is passed on", not fits)
    report.note(f"unfolded: {saw}")


# ---- the conversation


@dataclass(slots=True)
class _Turn:
    """What one turn brought."""

    deltas: list[str] = field(default_factory=list[str])
    replies: list[Reply] = field(default_factory=list[Reply])
    activities: list[Activity] = field(default_factory=list[Activity])
    done: Done | None = None


async def _take(conversation: Conversation, text: str) -> _Turn:
    turn = _Turn()
    async for event in conversation.send(text):
        match event:
            case TextDelta():
                turn.deltas.append(event.text)
            case Reply():
                turn.replies.append(event)
            case Activity():
                turn.activities.append(event)
            case Done():
                turn.done = event
    return turn


async def _turns(report: Report, agent: Agent, model: Steered) -> None:
    conversation = agent.conversation()
    turns: list[_Turn] = []
    for number, (text, choices) in enumerate(_TURNS, 1):
        model.next.extend(choices)
        before = len(conversation.messages)
        turn = await _take(conversation, text)
        turns.append(turn)
        report.check(
            f"turn {number} is answered" + (f", after a call of {choices[0]}" if choices else ""),
            turn.done is not None
            and turn.done.round_trips == len(turn.replies) >= max(len(choices), 1)
            and all(
                [call.name for call in reply.message.calls] == [choice]
                for reply, choice in zip(turn.replies, choices, strict=False)
                if choice is not None
            ),
            f"{len(turn.replies)} round trips, {turn.done.seconds if turn.done else 0:.1f} s",
        )
        _tell(report, number, text, conversation.messages[before + 1 :])
    replies = [reply for turn in turns for reply in turn.replies]
    report.check(
        "texts are put together from what was streamed",
        all("".join(turn.deltas) == _text(turn.replies) for turn in turns),
        f"{sum(len(turn.deltas) for turn in turns)} pieces",
    )
    report.check(
        "tokens are counted for every reply, and add up",
        all(reply.usage.prompt and reply.usage.completion for reply in replies if _wrote(reply))
        and sum(reply.usage.prompt for reply in replies) == conversation.usage.prompt,
        f"{conversation.usage.prompt:,} read, {conversation.usage.completion:,} written",
    )
    told = [activity for turn in turns for activity in turn.activities]
    report.check(
        "the activity feed names real tools",
        all(activity.tool != "tool_call" for activity in told),
        ", ".join(dict.fromkeys(f"{each.tool} {each.kind}" for each in told)),
    )
    _transcript(report, conversation)


def _text(replies: Sequence[Reply]) -> str:
    """Return the texts of the replies, without those that were taken for calls."""
    said = (r.message for r in replies if not any(call.recovered for call in r.message.calls))
    return "".join(message.text for message in said)


def _wrote(reply: Reply) -> bool:
    return bool(reply.message.text or reply.message.calls)


def _tell(report: Report, number: int, asked: str, messages: Sequence[object]) -> None:
    """Note what the model did in a turn, as it was."""
    report.note(f"turn {number}, the user: {short(asked)}")
    for message in messages:
        if isinstance(message, ModelMessage):
            for call in message.calls:
                how = "wrote, as text, a call of" if call.recovered else "was told to call"
                report.note(f"    {how} {call.name}; arguments {short(call.arguments, 120)}")
            if not message.calls:
                report.note(f"    said {short(message.text)}")
        elif isinstance(message, ResultMessage):
            what = "error" if message.is_error else "result"
            report.note(f"    {what}: {short(message.text)}")


def _transcript(report: Report, conversation: Conversation) -> None:
    """Check that every call has its one result."""
    waiting: list[tuple[str, str]] = []
    calls: list[Call] = []
    paired = True
    for message in conversation.messages:
        if isinstance(message, ResultMessage):
            paired = paired and waiting[:1] == [(message.call_id, message.name)]
            waiting = waiting[1:]
            continue
        paired = paired and not waiting
        if isinstance(message, ModelMessage):
            waiting = [(call.id, call.name) for call in message.calls]
            calls.extend(message.calls)
    ids = [call.id for call in calls if not call.recovered]
    report.check(
        "every call has exactly one result, under the id that the server gave it",
        paired and not waiting and len(set(ids)) == len(ids) >= 3 and all(ids),
        f"{len(calls)} calls, the first {short(ids[0]) if ids else 'without an id'}",
    )
    # The server holds the arguments to the schema, so only putting them together can spoil them.
    arguments = [call.arguments for call in calls if not call.recovered]
    report.check(
        "streamed arguments are put together as the model wrote them",
        all(_is_object(each) for each in arguments),
        f"{sum(map(len, arguments))} characters of JSON",
    )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# ---- what else a client must be able to do


async def _cap(server: Server, report: Report, agent: Agent) -> None:
    limits = Limits(reply_tokens=_CAP)
    # The model may not end by itself before it has written twice the cap.
    talker = replace(agent, model=client(server, min_tokens=2 * _CAP), limits=limits)
    done = await talker.run("Tell me a long story about the sea.")
    counted = server.tokens(done.text)
    report.check(
        "a reply ends at its cap",
        done.stop == "length" and counted <= _CAP + 1,
        f"{counted} tokens, the cap is {_CAP}",
    )


async def _cancelled(server: Server, report: Report, agent: Agent) -> None:
    """Cancel long replies in both ways; the server must be free at once."""
    endless = replace(
        agent,
        model=client(server, min_tokens=_LONG, temperature=1.2),
        limits=Limits(reply_tokens=_LONG),
    )
    brief = replace(agent, limits=Limits(reply_tokens=4))
    await brief.run("Hello.")  # now both wait for the same thing: a prompt that is read already
    for how, stop in (("no longer read", _walk_away), ("cancelled", _cancel)):
        told = server.said().count("Disconnected from client")
        conversation = endless.conversation()
        rate = await stop(conversation)
        started = time.perf_counter()
        done = await brief.run("Hello.")
        waited = time.perf_counter() - started
        report.check(
            f"a reply that is {how} frees the server for the next",
            bool(done.text) and waited < _LONG / rate / 3,
            f"answered after {waited:.1f} s; the rest would have taken {_LONG / rate:.0f} s",
        )
        report.check(
            f"the server saw that it was {how}",
            server.said().count("Disconnected from client") > told,
        )
        conversation.agent = brief
        again = await conversation.ask("Hello again.")
        report.check("the same conversation goes on after it", bool(again.text))


async def _walk_away(conversation: Conversation) -> float:
    """Read the beginning of a reply and leave; return the pieces a second."""
    started = time.perf_counter()
    count = 0
    async with aclosing(conversation.send("Tell me a long story about the sea.")) as events:
        async for event in events:
            count += isinstance(event, TextDelta)
            if count == 20:
                break
    return count / (time.perf_counter() - started)


async def _cancel(conversation: Conversation) -> float:
    """Cancel the task of a turn at the beginning of its reply; return the pieces a second."""
    started = time.perf_counter()
    begun = asyncio.Event()
    count = 0

    async def read() -> None:
        nonlocal count
        async for event in conversation.send("Tell me a long story about the mountains."):
            count += isinstance(event, TextDelta)
            if count == 20:
                begun.set()

    task = asyncio.create_task(read())
    await begun.wait()
    rate = count / (time.perf_counter() - started)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return rate


async def _nothing(server: Server, report: Report, agent: Agent) -> None:
    """Ask for what this server cannot do: it drops the stream, after a status of 200."""
    chooser = replace(agent, model=client(server, tool_choice="auto"))
    try:
        await chooser.run("Find a tool that sends mail.")
    except ModelError as error:
        failed, saw = True, short(str(error))
    else:
        failed, saw = False, "there was a reply"
    report.check("a stream that brings nothing is an error, not a silence", failed, saw)
    done = await replace(agent, limits=Limits(reply_tokens=8)).run("Hello.")
    report.check("and the next request is answered", bool(done.text))


async def _own_choice(server: Server, report: Report, agent: Agent) -> None:
    """Let the model choose by itself, which this server does only for whole replies."""
    chooser = replace(
        agent,
        model=client(server, tool_choice="auto", stream=False),
        limits=Limits(turns=1),
    )
    conversation = chooser.conversation()
    turn = await _take(conversation, "Find a tool that sends mail.")
    usage = turn.replies[0].usage
    report.check(
        "a reply that comes whole is read like a streamed one",
        len(turn.replies) == 1 and _wrote(turn.replies[0]) and usage.completion > 0,
        f"{usage.prompt:,} tokens read, {usage.completion:,} written, by the server's count",
    )
    calls = [call for reply in turn.replies for call in reply.message.calls]
    report.note("free to choose, the user: 'Find a tool that sends mail.'")
    for call in calls:
        report.note(f"    called {call.name} with {short(call.arguments, 120)}")
    results = [m for m in conversation.messages if isinstance(m, ResultMessage)]
    report.check("its calls have one result each", len(results) == len(calls))
    if not calls:
        report.note(f"    called nothing and said {short(_text(turn.replies))}")
