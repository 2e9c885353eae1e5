"""Lead a conversation in the terminal: at the prompt, by a script, or one message long.

A turn shows the answer as it comes and what runs beside it, then one line that says what
it cost. Whatever ends a turn, the conversation can go on and its transcript is written.
The agent's sources are opened once, live on one event loop, and are closed at the end.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import Self, cast

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.chat._loop_thread import LoopThread
from toolfold.chat.commands import Commands
from toolfold.chat.feed import Feed
from toolfold.chat.screen import Screen, harmless
from toolfold.chat.script import Replay
from toolfold.chat.transcript_file import Transcript
from toolfold.dispatch.activity import Activity
from toolfold.errors import ToolfoldError
from toolfold.fold import Folded, Report
from toolfold.runtime.agent import Agent
from toolfold.runtime.conversation import Done, Event
from toolfold.runtime.model import Reply, TextDelta
from toolfold.tool import Json

__all__ = ["Talk", "TurnOutcome"]

_PROMPT = "> "
_STOPPED = {
    "turns": "the model was asked as often as one message allows",
    "tokens": "one message's tokens are spent",
    "length": "the answer reached its limit, or repeated itself",
    "loop": "the model made the same calls again and again",
    "refused": "the model would not answer",
}


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What a turn came to."""

    user: str
    """What the user said."""

    done: Done
    activities: tuple[Activity, ...]
    saved: tuple[int, ...]
    """By request: the tokens that folding kept out of it."""

    report: Report

    def as_json(self) -> dict[str, Json]:
        """Return it as one JSON object."""
        return {
            "user": self.user,
            "text": self.done.text,
            "stop": self.done.stop,
            "usage": asdict(self.done.usage),
            "round_trips": self.done.round_trips,
            "asked_again": self.done.asked_again,
            "seconds": round(self.done.seconds, 3),
            "saved": sum(self.saved),
            "kept": self.report.kept,
            "deferred": self.report.deferred,
            "activities": [asdict(activity) for activity in self.activities],
        }

    @property
    def status(self) -> str:
        """What it cost, on one line."""
        usage = self.done.usage
        parts = [
            prompts.plural(self.done.round_trips, "round trip"),
            f"{usage.prompt:,} tokens read ({usage.cached:,} cached), {usage.completion:,} written",
        ]
        if self.report.active:
            same = len(set(self.saved)) == 1
            each = f" ({self.saved[0]:,} × {len(self.saved)})" if same else ""
            parts.append(f"{sum(self.saved):,} saved by folding{each}")
        return " · ".join([*parts, _counts(self.report)])


class Talk:
    """A conversation of an agent with the person at the terminal; open it with `with`.

    Args:
        agent: Who answers.
        screen: Where it is shown.
        feed: What shows the activities.
        transcript: Where the messages are written, if anywhere.
        secrets: What must not be written where the person saves the conversation.
    """

    def __init__(
        self,
        agent: Agent,
        screen: Screen,
        feed: Feed,
        transcript: Transcript | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.agent = agent
        self.screen = screen
        self.conversation = agent.conversation()
        self._feed = feed
        self._transcript = transcript
        self._answering = False
        self.secrets = tuple(secrets)
        self._loop = LoopThread()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Open the agent's sources."""
        with ExitStack() as stack:
            stack.enter_context(self._loop)
            stack.callback(lambda: self._loop.run(self._close()))
            self._loop.run(self.agent.__aenter__())
            stack.callback(lambda: self._loop.run(self.agent.__aexit__()))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the agent's sources, and the model's client."""
        self._open.close()

    def assembled(self) -> Folded:
        """Return what the model sees now."""
        return self._loop.call(lambda: self.agent.assemble(self.conversation.session))

    def renew(self) -> None:
        """Start another conversation."""
        self.conversation = self.agent.conversation()

    def greet(self, who: str) -> None:
        """Say who answers, and with what tools."""
        report = self.assembled().report
        tokens = f"{report.tokens_before:,} tokens of tools a request"
        if report.active:
            tokens += f", folded to {report.tokens_after:,}"
        self.screen.line(f"{one_line(who, 80)} · {_counts(report)} · {tokens}", "dim")

    # ---- the three ways to lead it

    def at_the_prompt(self) -> bool:
        """Answer what is typed until the person ends it; return whether all went well."""
        with suppress(ImportError):
            import_module("readline")  # gives `input` its line editing and history

        # A byte that is no UTF-8 is a sign in the message, not the end of the conversation.
        with suppress(AttributeError):
            cast(TextIOWrapper, sys.stdin).reconfigure(errors="replace")
        commands = Commands(self)
        went_well = True
        for message in self._messages():
            if commands.run(message):
                if commands.ended:
                    break
                continue
            try:
                outcome = self._loop.run(self.turn(message))
            except KeyboardInterrupt:
                if self._answering:  # pressed again before the turn could end: it is meant
                    raise
                self.screen.line("  cancelled", "yellow")
            except ToolfoldError as error:
                went_well = False
                self.screen.fault(error)
            else:
                self.screen.line(f"  {outcome.status}", "dim")
            self.screen.line()
        return went_well

    def play(self, replay: Replay) -> Iterator[TurnOutcome]:
        """Yield the turns of a script as they are played.

        Raises:
            ToolfoldError: The script does not fit what happens.
        """
        for place in range(len(replay.script.turns)):
            turn = replay.begin()
            if place:
                self.screen.line()
            self.screen.line(f"{_PROMPT}{harmless(turn.user)}", "bold")
            outcome = self._loop.run(self.turn(turn.user))
            self.screen.line(f"  {outcome.status}", "dim")
            replay.end()
            yield outcome

    def once(self, message: str) -> TurnOutcome:
        """Answer one message."""
        outcome = self._loop.run(self.turn(message))
        self.screen.line(f"  {outcome.status}", "dim")
        return outcome

    # ---- one turn

    async def turn(self, message: str) -> TurnOutcome:
        """Answer a message and show it.

        Raises:
            ModelError: The model cannot be reached, or refuses the request.
        """
        conversation = self.conversation
        before = len(conversation.messages)
        activities: list[Activity] = []
        saved: list[int] = []
        done: Done | None = None
        self._answering = True
        self._feed.begin()
        stream = cast("AsyncGenerator[Event, None]", conversation.send(message))
        try:
            async with aclosing(stream):
                async for event in stream:
                    match event:
                        case TextDelta():
                            self.screen.text(event.text)
                        case Activity():
                            activities.append(event)
                            self._feed.show(event)
                        case Reply():
                            saved.append(_saved(conversation.report))
                            self.screen.end_text()
                            if event.message.calls:
                                self.screen.aside(event.message.text)
                        case Done():
                            done = event
        finally:
            self.screen.end_text()
            self._answering = False
            if self._transcript is not None:
                self._transcript.add(conversation.messages[before:])
        assert done is not None and conversation.report is not None  # a turn ends with both
        if done.stop != "end":
            self.screen.line(f"  ⊘ stopped: {_STOPPED[done.stop]}", "yellow")
        return TurnOutcome(message, done, tuple(activities), tuple(saved), conversation.report)

    async def _close(self) -> None:
        close = getattr(self.agent.model, "aclose", None)
        if close is not None:
            await close()

    def _messages(self) -> Iterator[str]:
        """Yield what the person types, until Ctrl-C, Ctrl-D or the end of the input."""
        typed = sys.stdin.isatty()
        while True:
            try:
                line = input(_PROMPT) if typed else sys.stdin.readline()
            except (EOFError, KeyboardInterrupt):
                self.screen.line()
                return
            if not typed and not line:
                return
            message = line.strip()
            if message and not typed:
                self.screen.line(f"{_PROMPT}{harmless(message)}", "bold")
            if message:
                yield message


def _saved(report: Report | None) -> int:
    return report.tokens_before - report.tokens_after if report is not None else 0


def _counts(report: Report) -> str:
    if not report.active:
        return f"{prompts.plural(report.tools_before, 'tool')}, none folded"
    return f"{prompts.plural(report.kept, 'tool')} kept, {report.deferred:,} deferred"
