"""The agent loop: what the user says goes in, what the model and its tools do comes out.

The transcript keeps what was said, as it was said; `prompt` is what is sent of it. It is
whole after every step: a reply stands with one result for each of its calls, also where
the turn was cancelled halfway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolfold import prompts
from toolfold._memo import Memo
from toolfold._signature import signature
from toolfold.answer import Hit
from toolfold.dispatch.activity import Activity
from toolfold.dispatch.learning import Learning
from toolfold.errors import ToolfoldError
from toolfold.fold import Folded, Report
from toolfold.memory import Memory
from toolfold.runtime._empty_replies import is_empty, without_empty_replies
from toolfold.runtime._lenient import attempted_call
from toolfold.runtime._loops import LoopGuard
from toolfold.runtime._prefetch import may_prefetch, prefetched
from toolfold.runtime._repeats import JustMade
from toolfold.runtime._replies import read_reply
from toolfold.runtime.compaction import compacted
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.model import Model, ModelError, Reply, Request, TextDelta, Usage
from toolfold.session import Session

if TYPE_CHECKING:
    from toolfold.runtime.agent import Agent
    from toolfold.tool import Tool

__all__ = ["Conversation", "Done", "Event"]

_log = logging.getLogger(__name__)

_REFUSED: Memo[tuple[str, ...], bool] = Memo(256)
"""Whom deferred tools were refused by, for all conversations of the process."""

_CORRECTIONS_AT_MOST = 2
_ENDED = ("end", "calls")
_THROUGH_THE_BRIDGE = (prompts.TOOL_DESCRIBE, prompts.TOOL_CALL)


@dataclass(frozen=True, slots=True)
class Done:
    """How a turn ended."""

    text: str
    """The answer."""

    stop: Literal["end", "turns", "tokens", "length", "loop", "refused"] = "end"
    """Why it ended: the model was done, a limit was reached, it went round in circles, or
    it would not."""

    usage: Usage = field(default_factory=Usage)
    """The tokens of the turn."""

    round_trips: int = 0
    """How often the model was asked."""

    seconds: float = 0.0

    asked_again: int = 0
    """How many of its replies were empty and asked for once more."""


Event: TypeAlias = TextDelta | Activity | Reply | Done
"""What a turn yields: pieces of text, what runs, whole replies, and last how it ended."""

_Emit: TypeAlias = Callable[[Event], None]


class Conversation:
    """One conversation of an agent. One turn at a time.

    Args:
        agent: Whose conversation it is.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.messages: list[Message] = []
        """The transcript, as it was written."""
        self.session = Session()
        self.usage = Usage()
        self.report: Report | None = None
        """What the last fold did."""
        self._busy = False
        self._folded: Folded | None = None
        self._made = JustMade()
        self._seen: tuple[Agent, tuple[Tool, ...], tuple[str, ...]] | None = None
        self._learning = Learning(agent.memory) if isinstance(agent.memory, Memory) else None

    def prompt(self) -> list[Message]:
        """Return the transcript as it is sent: older discoveries shrunk, empty replies left out."""
        limits = self.agent.limits
        results = limits.result_tokens
        if results is None and self.report is not None and self.report.context_length:
            results = self.report.context_length // 2
        return compacted(
            without_empty_replies(self.messages),
            discovery_tokens=limits.discovery_tokens,
            result_tokens=results,
        )

    async def ask(self, text: str) -> Done:
        """Answer a message and return how that ended.

        Raises:
            ModelError: The model cannot be reached, or refuses the request.
        """
        done: Done | None = None

        def emit(event: Event) -> None:
            nonlocal done
            done = event if isinstance(event, Done) else done

        turn = self._begun(text, emit)
        try:
            await asyncio.wait({turn})
            turn.result()
        finally:
            await _over(turn)
        assert done is not None  # a turn ends with Done or raises
        return done

    async def send(self, text: str) -> AsyncIterator[Event]:
        """Answer a message, yielding what happens as it happens.

        A turn that is no longer read, or whose task is cancelled, stops: the model's server
        and the running tools are told.

        Raises:
            ModelError: The model cannot be reached, or refuses the request.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        turn = self._begun(text, events.put_nowait)
        turn.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await turn
        finally:
            await _over(turn)

    def _begun(self, text: str, emit: _Emit) -> asyncio.Task[None]:
        """Return the task of a turn that has begun."""
        if self._busy:
            raise ToolfoldError(
                "the conversation is still answering", hint="wait, or start another conversation"
            )
        self._busy = True
        if self._learning is not None:
            self._learning.begin_task(self.agent.name)

        def ended(turn: asyncio.Task[None]) -> None:
            self._busy = False
            if not turn.cancelled():
                turn.exception()  # read, so that nobody is told that it was not

        turn = asyncio.create_task(self._turn(text, emit))
        turn.add_done_callback(ended)
        return turn

    # ---- one turn

    async def _turn(self, text: str, emit: _Emit) -> None:
        agent = self.agent
        started = time.perf_counter()
        spent = Usage()
        trips = 0
        retries = _Retries()
        guard = LoopGuard()
        self._made = JustMade()
        session = _taken_up(self.session, self.messages, agent.settings.bridge_prefix)
        self.session = before = session.moved_on()  # searches in vain count within one message
        folded = self._as_it_takes(self._assemble(), before)
        self.messages.append(UserMessage(text, await self._prefetched(folded, text)))

        def done(stop: Literal["end", "turns", "tokens", "length", "loop", "refused"]) -> None:
            said = _last_words(self.messages)
            seconds = time.perf_counter() - started
            emit(Done(said, stop, spent, trips, seconds, retries.empty))

        while True:
            if trips >= agent.limits.turns:
                return done("turns")
            if agent.limits.tokens and spent.prompt + spent.completion >= agent.limits.tokens:
                return done("tokens")
            reply, folded = await self._reply(folded, emit)
            trips += 1
            spent += reply.usage
            self.usage += reply.usage
            self.messages.append(reply.message)
            emit(reply)
            if reply.stop == "paused":  # it goes on where it was, once it has the reply back
                continue
            if not reply.message.calls:
                is_last = trips >= agent.limits.turns
                note = await retries.note(
                    reply, folded, recover=agent.profile.recover, is_last=is_last
                )
                if note is None:
                    return done("end" if reply.stop == "calls" else reply.stop)
                self.messages.append(UserMessage("", note))
                continue
            results = await self._run(reply, folded, emit)
            verdict = guard.step(reply.message.calls, results)
            if verdict == "stop":
                return done("loop")
            last = self.messages[-1]
            if verdict == "warn" and isinstance(last, ResultMessage):
                self.messages[-1] = _noted(last, prompts.again(guard.times))
            folded = self._assemble()

    async def _prefetched(self, folded: Folded, text: str) -> str:
        """Return the note behind the user's message that names the likely tools, if any."""
        if not may_prefetch(folded):
            return ""
        sent = self.prompt()
        is_later = any(isinstance(message, ModelMessage) for message in sent)
        seen = _seen_in(sent)
        note, hits = await asyncio.to_thread(
            prefetched, folded, text, is_seen=seen, is_later=is_later
        )
        if hits:
            self.session = self.session.reveal(hit.name for hit in hits)
            if self._learning is not None:
                self._learning.noted(self.agent.name, None, hits)
        return note

    def _assemble(self) -> Folded:
        """Return what the model sees now: the last fold again while the live tools are the same."""
        seen = (self.agent, self.agent.tools(), self.agent.core())
        if self._folded is None or seen != self._seen:
            folded = self.agent.assemble(self.session)
        else:
            folded = self._folded.for_session(self.session)
        self._seen = seen
        return self._goes_on(folded)

    def _as_it_takes(self, folded: Folded, before: Session) -> Folded:
        """Return a fold with the bridge where another conversation was refused deferred tools.

        Args:
            folded: The fold.
            before: The session before it; one that the provider already defers for goes on.
        """
        sent, name = before.sent, folded.report.strategy
        if not folded.is_native or (sent is not None and sent.strategy == name):
            return folded
        if not _REFUSED.get(_asked_at(self.agent.model)):
            return folded
        return self._goes_on(folded.for_session(replace(before, refused=folded.refused().refused)))

    def _goes_on(self, folded: Folded) -> Folded:
        """Go on with a fold, and with the conversation as it knows it."""
        self._folded, self.session, self.report = folded, folded.session, folded.report
        return folded

    async def _run(self, reply: Reply, folded: Folded, emit: _Emit) -> tuple[ResultMessage, ...]:
        """Run the calls of a reply; the transcript gets a result for each, come what may."""
        calls = reply.message.calls
        if self.agent.profile.recover and (names := self._made.repeated(calls, folded)):
            results = tuple(ResultMessage(prompts.NOT_AGAIN, c.id, c.name, True) for c in calls)
            self.messages.extend((*results, UserMessage("", prompts.just_done(names))))
            return results
        listener = self.agent.on_activity

        def heard(activity: Activity) -> None:
            emit(activity)
            if listener is not None:
                listener(activity)

        batch = self.agent.batch(
            calls,
            folded,
            session=self.session,
            listener=heard,
            cut_off=reply.stop in ("length", "refused"),
            observers=() if self._learning is None else (self._learning,),
        )
        try:
            await batch.run()
        finally:
            results = batch.results
            self.messages.extend(results)
            self.session = batch.session
        if self.agent.profile.recover:
            self._made.note(calls, results, folded)
        return results

    async def _reply(self, folded: Folded, emit: _Emit) -> tuple[Reply, Folded]:
        """Return the model's reply, and the fold that it saw.

        A provider that refuses deferred tools is asked again, with the bridge; the session
        remembers it, so that this happens once.
        """
        model = self.agent.model
        try:
            return await self._asked(folded, emit), folded
        except ModelError as error:
            if not folded.is_native:
                raise
            from toolfold.providers import refuses_native

            if not refuses_native(error.status, error.body or str(error)):
                raise
            _log.warning(
                "%s does not take deferred tools, and gets the bridge: %s", model.name, error
            )
        folded = self._goes_on(folded.for_session(folded.refused()))
        reply = await self._asked(folded, emit)
        # Only now: a server that refuses the bridge as well had another reason.
        _REFUSED.put(_asked_at(model), True)
        return reply, folded

    async def _asked(self, folded: Folded, emit: _Emit) -> Reply:
        agent = self.agent
        guidance = (folded.guidance,) if folded.guidance else ()
        request = Request(
            self.prompt(),
            "\n\n".join(part for part in (agent.system, *guidance) if part),
            folded.tools,
            agent.limits.reply_tokens or agent.profile.reply_tokens,
            folded,
        )
        known = _names_of(folded) if agent.profile.recover else _nobody
        return await read_reply(agent.model, request, known, lambda t: emit(TextDelta(t)))


def _asked_at(model: Model) -> tuple[str, ...]:
    """Return whom a model's requests go to: the API, the address, the model."""
    host = getattr(model, "address", None) or getattr(model, "host", None)
    return (str(getattr(model, "provider_api", None)), str(host), model.name)


async def _over(turn: asyncio.Task[None]) -> None:
    """Cancel a turn that still runs, and wait until it is over."""
    turn.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not turn.done():
        # Not `await turn`: that would pass a second cancellation on, or swallow it.
        try:
            await asyncio.wait({turn})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _taken_up(session: Session, messages: Sequence[Message], prefix: str) -> Session:
    """Return a session that knows what was found, of a transcript that was put away, too.

    Args:
        session: The conversation so far; a new one where only its transcript was kept.
        messages: The transcript.
        prefix: What the names of the bridge's tools begin with.
    """
    if session != Session():
        return session
    names = prompts.bridge_names(prefix)
    results = [message for message in messages if isinstance(message, ResultMessage)]
    is_bridged = any(names.role(result.name) in _THROUGH_THE_BRIDGE for result in results)
    found = (name for result in results for name in result.found or ())
    return Session(bridged=is_bridged).reveal(found)


def _last_words(messages: Sequence[Message]) -> str:
    """Return what a model said last, with what came before a pause of its provider."""
    words: list[str] = []
    for message in reversed(messages):
        if isinstance(message, ModelMessage) and not message.calls:
            words.append(message.text)
        elif words or isinstance(message, ModelMessage):
            break
    return "".join(reversed(words))


def _seen_in(messages: Sequence[Message]) -> Callable[[Hit], bool]:
    """Return the test of whether a model that is sent these knows how a tool is called."""
    read: list[str] = []
    called: list[Call] = []
    for message in messages:
        if isinstance(message, ModelMessage):
            called += message.calls
        else:
            read.append(message.note if isinstance(message, UserMessage) else message.text)
    texts = "\n".join(read)

    def is_seen(hit: Hit) -> bool:
        quoted = f'"{hit.tool.shown_name}"'
        return hit.signature in texts or any(
            call.name == hit.name or quoted in call.arguments for call in called
        )

    return is_seen


def _noted(result: ResultMessage, text: str) -> ResultMessage:
    """Return a result that says one thing more, in whatever form it is sent."""
    note = result.note
    if result.found is not None:
        note = f"{note}\n{text}" if note else text
    return replace(result, text=f"{result.text}\n{text}", note=note)


@dataclass(slots=True)
class _Retries:
    """What a model was told within one turn about replies that came to nothing."""

    empty: int = 0
    corrections: int = 0

    async def note(
        self, reply: Reply, folded: Folded, *, recover: bool, is_last: bool
    ) -> str | None:
        """Return what to tell the model about a reply without calls, where it is to try again.

        Args:
            reply: The reply.
            folded: What it may call.
            recover: Whether its text may have been meant as a call.
            is_last: Whether it may not be asked again.
        """
        may_ask = not self.empty and not is_last and reply.stop in _ENDED
        if may_ask and is_empty(reply.message):
            self.empty += 1
            return prompts.SAID_NOTHING
        if not recover or reply.stop != "end" or self.corrections == _CORRECTIONS_AT_MOST:
            return None
        is_first = self.corrections == 0
        correction = await asyncio.to_thread(_correction, reply.message.text, folded, is_first)
        self.corrections += correction is not None
        return correction


def _names_of(folded: Folded) -> Callable[[str], bool]:
    """Return the test of whether a name can be called."""

    def known(name: str) -> bool:
        return folded.bridge.role(name) is not None or folded.catalog.find(name) is not None

    return known


def _nobody(name: str) -> bool:
    return False


def _correction(text: str, folded: Folded, is_first: bool) -> str | None:
    """Return what to tell a model whose text was meant as a call, where it was.

    A call that only stands among words is asked about once: it may be a quotation after all.
    """
    known = _names_of(folded)
    tried = attempted_call(text, known)
    if tried is None or (tried.in_prose and not is_first):
        return None
    exists = known(tried.name)
    if not exists and tried.name:
        near = folded.bridge.near(tried.name, tried.arguments)
        if near:  # of several, a small model takes the last it has read
            return prompts.no_such_call(tried.name, signature(near[0]))
    if exists and tried.in_prose:
        return prompts.call_in_prose(tried.name)
    return prompts.unreadable_call(tried.name, exists=exists)
