"""The one way of a call, in every door: resolve, may it run, run it in time, record.

A door gives what the model wrote and gets back what to tell it. In between, for every call
and in this order: the fold resolves it within the caller's scope, the hooks and approvals
are asked, the source runs it within its deadline, the hooks see what came back, and one
record is made, from which activity, audit, metrics, spans and status all come. What one
call does, raises or takes too long for becomes its own result; only a cancellation of the
caller passes through.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.absent import AbsentSource
from toolfold.answer import Answer, Invocation
from toolfold.arguments import read_arguments
from toolfold.dispatch.deadline import Deadline, stopped
from toolfold.dispatch.hooks import Hook, after, before
from toolfold.dispatch.outputs import failure, json_size, output_of, words_of
from toolfold.dispatch.records import CallRecord, Observer, Observers, Outcome, SearchRecord
from toolfold.dispatch.spans import Spans
from toolfold.fold import Folded
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import SearchMemory
from toolfold.session import Session
from toolfold.sources.calls import CURRENT, CallContext, Output, PendingCall, Refusal
from toolfold.sources.merged import Located
from toolfold.sources.source import Bounds, SourceError
from toolfold.tool import Json, Tool

__all__ = ["CallResult", "Dispatch", "Origin", "answer_record"]

_log = logging.getLogger(__name__)

_ERROR_LIMIT = 900
_QUERY_LIMIT = 2_000
_SHOWN = 200

_NO_SPANS = Spans()

GIVEN_UP = "the caller gave it up before it ended"
"""Why a call was cancelled, where nobody knows better."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose call it is."""

    principal: str = "agent"
    """The agent, or whoever is behind the door."""

    session: str | None = None
    """The session it came in, where the door has sessions."""

    call_id: str = ""
    """The model's id for the call."""

    position: int = 0
    """Which call of the turn it is, from 0."""

    tenant: str = "default"
    """Whose it is, among those who share a deployment."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call came to."""

    output: Output
    """What the model reads, before anything is cut."""

    outcome: Outcome
    error: BaseException | None = None
    """What the source raised, where it did."""


class Dispatch:
    """Resolves and runs calls. Safe to share between conversations and doors.

    Args:
        hooks: Asked before and after each call, in this order.
        observers: Told of each call and search.
        spans: Makes OpenTelemetry's spans.
        given_up: Says why a call was cancelled, in one sentence for the records.
        memory: Returns what earlier searches led to, as a principal of a tenant may know it.
    """

    def __init__(
        self,
        *,
        hooks: Iterable[Hook] = (),
        observers: Iterable[Observer] | Observers = (),
        spans: Spans | None = None,
        given_up: Callable[[], str] = lambda: GIVEN_UP,
        memory: Callable[[str, str], SearchMemory] | None = None,
    ) -> None:
        self._memory = memory
        self._hooks = tuple(hooks)
        self._observers = observers if isinstance(observers, Observers) else Observers(observers)
        self._spans = spans or _NO_SPANS
        self._given_up = given_up

    # ---- from what the model wrote to an answer or an invocation

    async def resolve(
        self,
        folded: Folded,
        name: str,
        arguments: Json,
        *,
        session: Session,
        origin: Origin,
        absent: Sequence[AbsentSource] = (),
    ) -> Answer | Invocation:
        """Return what a model's call comes to, and record it where it is an answer.

        Args:
            folded: What the model saw.
            name: The tool name that it called.
            arguments: Its arguments, as an object or as JSON text.
            session: The conversation so far.
            origin: Whose call it is.
            absent: The sources that are not there now and of which the caller may know.
        """
        role = folded.bridge.role(name)
        if role != prompts.TOOL_SEARCH:
            resolved = await _resolved(folded, name, arguments, session, absent)
            if isinstance(resolved, Answer) and self._observers:
                record = answer_record(resolved, name, role, arguments, origin, 0.0)
                self._observers.answered(record)
            return resolved
        memory = None if self._memory is None else self._memory(origin.principal, origin.tenant)
        with self._spans.search() as span:
            began = time.perf_counter()
            resolved = await _resolved(folded, name, arguments, session, absent, memory)
            if isinstance(resolved, Answer):
                seconds = time.perf_counter() - began
                record = answer_record(resolved, name, role, arguments, origin, seconds)
                self._observers.answered(record)
                self._observers.searched(record)
                span(record)
        return resolved

    def rejected(
        self, name: str, arguments: Json, text: str, origin: Origin, meant: Tool | None = None
    ) -> None:
        """Record a call that the door itself answers with an error: it came to no tool."""
        if self._observers:
            answer = Answer(text, is_error=True, meant=meant)
            self._observers.answered(answer_record(answer, name, None, arguments, origin, 0.0))

    # ---- from an invocation to a result

    async def run(
        self,
        call: PendingCall,
        located: Located,
        *,
        scope: Scope = EVERYTHING,
        room: AbstractAsyncContextManager[Any] | None = None,
        on_start: Callable[[], None] | None = None,
        on_progress: Callable[[str, float | None], None] | None = None,
    ) -> CallResult:
        """Run a call of a real tool and return what it came to.

        Args:
            call: The call.
            located: The tool as it is now, and its source.
            scope: What the caller may use, for tools that call on its behalf.
            room: Entered before the source is asked; how many may be in it is the door's.
            on_start: Told when the source is asked: from then on it may have effects.
            on_progress: Told how far the tool says it is, on the event loop.
        """
        running = _Running(self._observers, call, on_progress)
        with self._spans.call(call.tool.name, call.tool.source or "") as span:
            try:
                result = await self._guarded(running, located, scope, room, on_start)
                _check(result.output)
            except asyncio.CancelledError as error:
                # What the error says speaks of tasks, which is nobody's business.
                given_up = CallResult(Output(self._given_up(), True), "cancelled")
                span(running.ended(given_up), type(error).__name__)
                raise
            except Exception as error:
                _log.exception("the call of %s could not be run", call.tool.name)
                result = CallResult(Output(failure(call, error), True), "failed", error)
            span(running.ended(result), _raised(result))
        return result

    async def _guarded(
        self,
        running: _Running,
        located: Located,
        scope: Scope,
        room: AbstractAsyncContextManager[Any] | None,
        on_start: Callable[[], None] | None,
    ) -> CallResult:
        """Ask the hooks, run the tool, ask the hooks."""
        call = running.call
        shown = call.tool.shown_name
        try:
            decision = await before(self._hooks, call) if self._hooks else call
        except Exception:
            _log.exception("a hook failed before the call of %s", call.tool.name)
            decision = Refusal(prompts.HOOK_FAILED)
        if isinstance(decision, Refusal):
            return _refused(shown, decision)
        if isinstance(decision, PendingCall):
            running.call = call = decision
            if call.doubtful:
                return _refused(shown, Refusal(prompts.STOOD_IN_TEXT))
        running.started()
        if isinstance(decision, Output):
            result = CallResult(decision, "tool_error" if decision.is_error else "ok")
        else:
            async with room or nullcontext():
                result = await self._limited(running, located, scope, on_start)
        if not self._hooks:
            return result
        try:
            output = await after(self._hooks, call, result.output)
        except Exception as error:
            _log.exception("a hook failed after the call of %s", call.tool.name)
            return CallResult(Output(prompts.withheld(shown), True), "failed", error)
        if output is result.output:
            return result
        outcome = result.outcome
        if output.is_error != result.output.is_error:  # what the hook says counts
            outcome = "tool_error" if output.is_error else "ok"
        return CallResult(output, outcome)

    async def _limited(
        self,
        running: _Running,
        located: Located,
        scope: Scope,
        on_start: Callable[[], None] | None,
    ) -> CallResult:
        """Run the tool within its time; turn what it returns or raises into a result."""
        call, (tool, source) = running.call, located
        bounds: Bounds = source.bounds(tool)
        clock = Deadline(bounds.timeout)
        context = CallContext(call, running.progressed, scope, clock=clock)
        running.context = context
        if on_start is not None:
            on_start()
        task = asyncio.create_task(_called(located, call, context))
        try:
            is_over = await clock.outlasts(task)
            if not is_over:
                await stopped(task, context)
        except asyncio.CancelledError:
            await stopped(task, context)
            raise
        if not is_over:
            text = source.timed_out(call.tool, bounds.timeout or 0)
            return CallResult(Output(text, True), "timeout", TimeoutError())
        if task.cancelled():  # by itself: nobody here asked for it
            return CallResult(Output(prompts.gave_up(call.tool.shown_name), True), "failed")
        error = task.exception()
        if error is not None:
            if isinstance(error, SourceError):  # it says why: where it was raised says no more
                _log.info("%s failed: %s", call.tool.name, error)
                said = error.for_model(call.tool)
            else:
                _log.info("%s failed", call.tool.name, exc_info=error)
                said = failure(call, error)
            return CallResult(Output(said, True), "failed", error)
        value = task.result()
        if isinstance(value, Refusal):
            return _refused(call.tool.shown_name, value)
        output = output_of(value)
        return CallResult(output, "tool_error" if output.is_error else "ok")


class _Running:
    """A call under way, as observers hear of it."""

    def __init__(
        self,
        observers: Observers,
        call: PendingCall,
        on_progress: Callable[[str, float | None], None] | None,
    ) -> None:
        self._observers = observers
        self._on_progress = on_progress
        self._at = time.time()
        self._began = time.perf_counter()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._has_started = False
        self._is_over = False
        self.call = call
        self.context: CallContext | None = None

    def _record(self, result: CallResult | None = None) -> CallRecord:
        call = self.call
        output = None if result is None else result.output
        outcome = None if result is None else result.outcome
        return CallRecord(
            at=self._at,
            principal=call.agent,
            session=call.session,
            server=call.tool.source or "",
            tool=call.tool.name,
            via=call.via,
            outcome=outcome,
            seconds=0.0 if result is None else time.perf_counter() - self._began,
            request_size=0 if result is None else json_size(call.arguments),
            result_size=_size(result),
            arguments=call.arguments,
            error=None if result is None else _error_text(result),
            call_id=call.id,
            position=call.position,
            toolset=call.tool.toolset_name,
            started=self._has_started,
            output=output,
            digest=call.tool.digest,
            cause=None if result is None else result.error,
            tenant=call.tenant,
        )

    def started(self) -> None:
        self._has_started = True
        if self._observers:
            self._observers.started(self._record())

    def progressed(self, message: str, fraction: float | None) -> None:
        if not self._observers and self._on_progress is None:
            return
        if threading.get_ident() == self._thread:
            self._tell_progress(message, fraction)
        else:  # observers and queues belong to the loop's thread
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell_progress, message, fraction)

    def _tell_progress(self, message: str, fraction: float | None) -> None:
        is_stopped = self.context is not None and self.context.cancelled
        if not self._is_over and not is_stopped:  # else nobody waits any more
            shown = one_line(message, _SHOWN)
            if self._observers:
                self._observers.progressed(self._record(), shown, fraction)
            if self._on_progress is not None:
                self._on_progress(shown, fraction)

    def ended(self, result: CallResult) -> CallRecord:
        self._is_over = True
        record = self._record(result)
        self._observers.called(record)
        return record


async def _resolved(
    folded: Folded,
    name: str,
    arguments: Json,
    session: Session,
    absent: Sequence[AbsentSource],
    memory: SearchMemory | None = None,
) -> Answer | Invocation:
    """Resolve a call; beside the event loop where the fold says that it may take long."""
    if isinstance(arguments, str):
        # Read once for both questions; what cannot be read is answered as it came.
        read = read_arguments(arguments)
        arguments = arguments if isinstance(read, str) else read
    # What an absent source had is searched too, and may have to be indexed for that.
    searches_more = absent and any(a.tools for a in absent) and folded.bridge.role(name)
    must_choose = memory is not None and not memory.is_ready(folded.bridge.folded)
    if searches_more or must_choose or folded.may_block(name, arguments):
        return await asyncio.to_thread(
            folded.resolve, name, arguments, session=session, absent=absent, memory=memory
        )
    return folded.resolve(name, arguments, session=session, absent=absent, memory=memory)


async def _called(located: Located, call: PendingCall, context: CallContext) -> Any:
    CURRENT.set(context)
    try:
        return await located.source.call(located.tool, call.arguments, context)
    except SystemExit as error:  # it would end the host's event loop
        raise RuntimeError(f"it tried to exit with {error.code}") from error


def _check(output: Output) -> None:
    text: Any = output.text  # made by a tool or a hook, whatever its type says
    if not isinstance(text, str):
        raise TypeError(f"the text of an output is {type(text).__name__}")


def _refused(name: str, refusal: Refusal) -> CallResult:
    output = Output(prompts.refused(name, refusal.reason), True, value=refusal.reason)
    return CallResult(output, "refused")


def answer_record(
    answer: Answer, name: str, role: str | None, arguments: Json, origin: Origin, seconds: float
) -> SearchRecord:
    """Return the record of a call that was answered without a tool.

    Args:
        answer: What it was answered with.
        name: What was called.
        role: Which of the bridge's tools that is; None where it is none.
        arguments: The arguments as they came.
        origin: Whose call it is.
        seconds: How long it took.
    """
    discovers = role not in (None, prompts.TOOL_CALL)
    found = tuple(tool.shown_name for tool in answer.found) if discovers else ()
    read = read_arguments(arguments) if discovers else {}
    query = "" if isinstance(read, str) else read.get("query", read.get("queries"))
    return SearchRecord(
        at=time.time() - seconds,
        principal=origin.principal,
        session=origin.session,
        query=str(query or "")[:_QUERY_LIMIT],
        hits=sum(hit.shown == "signature" for hit in answer.hits),
        seconds=seconds,
        name=name,
        role=role,
        meant=answer.meant,
        found=found,
        error=one_line(answer.text, _SHOWN) if answer.is_error else None,
        arguments=arguments,
        call_id=origin.call_id,
        position=origin.position,
        named=tuple((hit.need, hit.name) for hit in answer.hits if hit.shown != "companion"),
        tenant=origin.tenant,
    )


def _size(result: CallResult | None) -> int:
    if result is None or result.outcome not in ("ok", "tool_error"):
        return 0
    raw = result.output.raw
    return len(result.output.text) if raw is None else json_size(raw)


def _raised(result: CallResult) -> str:
    """Return the kind of what a tool or a server raised; nothing where no answer came at all."""
    has_raised = result.outcome == "failed" and not isinstance(result.error, SourceError | None)
    return type(result.error).__name__ if has_raised else ""


def _error_text(result: CallResult) -> str | None:
    if result.outcome == "refused" and isinstance(reason := result.output.value, str):
        return reason
    if result.error is None:
        return None if result.outcome in ("ok", "tool_error") else result.output.text
    # The audit redacts it and cuts it then: a part of a secret is not known for one.
    return one_line(words_of(result.error) or type(result.error).__name__, _ERROR_LIMIT)
