"""Run the calls of one turn.

Every call is resolved through the fold, so that scope and schema are asked whatever path
it takes, and every call gets exactly one result, in the model's order: an answer, a
tool's output, or why there is none. Nothing that one call does reaches its siblings.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson

from toolfold import prompts
from toolfold.answer import Answer, Invocation
from toolfold.arguments import check
from toolfold.bounds import one_line
from toolfold.fold import Folded
from toolfold.redact import redact
from toolfold.runtime.activity import Activity, Listener
from toolfold.runtime.calls import CURRENT, CallContext, Output, PendingCall, Refusal
from toolfold.runtime.hooks import Hook, after, before
from toolfold.runtime.messages import Call, ResultMessage
from toolfold.runtime.registry import Registered, Registry, is_asynchronous
from toolfold.runtime.threads import in_thread
from toolfold.scope import EVERYTHING, Scope
from toolfold.session import Session
from toolfold.signature import signature
from toolfold.sources.functions import bind

__all__ = ["Batch"]

_log = logging.getLogger(__name__)

_GRACE_SECONDS = 2.0
"""How long a tool may take to clean up after it was cancelled."""

_REASON_LIMIT = 400


@dataclass(frozen=True, slots=True)
class _Job:
    """A call that comes to a real tool."""

    place: int
    call: PendingCall
    entry: Registered


class Batch:
    """The calls of one turn, and what they come to.

    Example:
        batch = Batch(reply.message.calls, folded, registry)
        await batch.run()
        batch.results   # one a call, in the model's order; complete even where `run` was cancelled

    Args:
        calls: What the model wrote.
        folded: The fold that the model saw.
        registry: What runs the tools.
        session: The conversation before this turn; by default, that of the fold.
        hooks: Asked before and after each call.
        listener: Hears what happens.
        agent: Who calls.
        parallel: How many tools may run at once.
        cut_off: Whether the reply hit its limit, so that its last call may not be whole.
        scope: What the caller may use, for tools that call on its behalf.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        folded: Folded,
        registry: Registry,
        *,
        session: Session | None = None,
        hooks: Sequence[Hook] = (),
        listener: Listener | None = None,
        agent: str = "agent",
        parallel: int = 16,
        cut_off: bool = False,
        scope: Scope = EVERYTHING,
    ) -> None:
        self.session = folded.session if session is None else session
        self._calls = tuple(calls)
        self._folded = folded
        self._registry = registry
        self._hooks = tuple(hooks)
        self._listener = listener
        self._agent = agent
        self._cut_off = cut_off
        self._scope = scope
        self._slots = asyncio.Semaphore(max(parallel, 1))
        self._results: list[ResultMessage | None] = [None] * len(self._calls)
        self._started: set[int] = set()

    @property
    def results(self) -> tuple[ResultMessage, ...]:
        """One result a call, in the model's order. A call that has none yet was cancelled."""
        return tuple(
            result or self._result(place, self._why_none(place), is_error=True)
            for place, result in enumerate(self._results)
        )

    async def run(self) -> None:
        """Resolve the calls in order, then run the tools: at once where all may, else in order."""
        jobs = [job for place in range(len(self._calls)) if (job := await self._resolve(place))]
        # In a group on both paths: a second cancellation waits for the first to be done.
        async with asyncio.TaskGroup() as group:
            if all(job.entry.may_run_beside_others for job in jobs):
                for job in jobs:
                    group.create_task(self._run(job))
            else:
                group.create_task(self._in_order(jobs))

    async def _in_order(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            await self._run(job)

    def _why_none(self, place: int) -> str:
        return prompts.CANCELLED if place in self._started else prompts.NOT_STARTED

    # ---- from what the model wrote to a job

    async def _resolve(self, place: int) -> _Job | None:
        """Settle a call that needs no tool; return the job of one that does."""
        written = self._calls[place]
        last = place == len(self._calls) - 1
        if self._cut_off and last and not written.arguments.strip():
            # With arguments that are half written, `resolve` says so itself.
            text = prompts.unreadable_arguments(written.name, prompts.CUT_OFF, None)
            self._results[place] = self._result(place, text, is_error=True)
            return None
        resolve = self._folded.resolve
        if self._folded.bridge.settings.reranker.enabled:
            resolved = await asyncio.to_thread(
                resolve, written.name, written.arguments, session=self.session
            )
        else:
            resolved = resolve(written.name, written.arguments, session=self.session)
        self.session = resolved.session
        if isinstance(resolved, Answer):
            self._settle_answer(place, resolved)
            return None
        entry = self._registry.get(resolved.tool.name)
        shown = self._folded.bridge.settings.aliases
        if entry is None or entry.tool.with_aliases(shown) != resolved.tool:
            # It left, or became another tool, between the assembly and this call.
            text = prompts.not_available(resolved.tool.shown_name, ())
            self._results[place] = self._result(place, text, is_error=True)
            return None
        return _Job(place, self._pending(written, resolved), entry)

    def _pending(self, written: Call, resolved: Invocation) -> PendingCall:
        arguments = resolved.arguments
        if written.recovered:  # read out of text, numbers may be texts; a fold repairs its own
            arguments = check(resolved.tool, dict(arguments)).arguments
        return PendingCall(
            resolved.tool, arguments, resolved.via, written.id, self._agent, written.recovered
        )

    def _settle_answer(self, place: int, answer: Answer) -> None:
        written = self._calls[place]
        tools = [hit.tool for hit in answer.hits] or list(answer.tools)
        discovery = written.name in prompts.BRIDGE_NAMES and written.name != prompts.TOOL_CALL
        found = tuple(dict.fromkeys(tool.shown_name for tool in tools)) if discovery else None
        self._results[place] = self._result(
            place, answer.text, is_error=answer.is_error, found=found
        )
        kind = "rejected" if answer.is_error else "searched"
        said = one_line(answer.text if answer.is_error else written.arguments, 200)
        activity = Activity(kind, written.name, written.id, self._agent, place=place, message=said)
        self._tell(replace(activity, is_error=answer.is_error, found=found or ()))

    # ---- from a job to a result

    async def _run(self, job: _Job) -> None:
        """Run one job. Whatever happens inside becomes its result; only cancellation passes."""
        try:
            output = await self._guarded(job)
            text = _bounded(output.text, job.entry.result_limit)
        except Exception as error:
            _log.exception("the call of %s could not be run", job.call.tool.name)
            output = Output(_failure(job.call, error), is_error=True)
            text = output.text
        self._results[job.place] = self._result(job.place, text, is_error=output.is_error)

    async def _guarded(self, job: _Job) -> Output:
        """Ask the hooks, run the tool, ask the hooks."""
        activity = Activity(
            "started",
            job.call.tool.name,
            job.call.id,
            self._agent,
            job.call.tool.toolset_name,
            job.call.via,
            job.place,
            job.call.arguments,
        )
        try:
            decision = await before(self._hooks, job.call)
        except Exception:
            _log.exception("a hook failed before the call of %s", job.call.tool.name)
            decision = Refusal(prompts.HOOK_FAILED)
        if isinstance(decision, Refusal):
            self._tell(replace(activity, kind="refused", message=decision.reason, is_error=True))
            return Output(prompts.refused(job.call.tool.shown_name, decision.reason), True)
        started = time.perf_counter()
        if isinstance(decision, PendingCall):
            activity = replace(activity, arguments=decision.arguments)
        self._tell(activity)
        try:
            if isinstance(decision, Output):
                call, output = job.call, decision
            else:
                call, output = (
                    decision,
                    await self._in_a_slot(replace(job, call=decision), activity),
                )
            output = await after(self._hooks, call, output)
        except asyncio.CancelledError:
            seconds = time.perf_counter() - started
            gone = replace(activity, kind="finished", seconds=seconds, is_error=True)
            self._tell(replace(gone, message="cancelled"))
            raise
        except Exception:
            _log.exception("a hook failed after the call of %s", job.call.tool.name)
            output = Output(prompts.withheld(job.call.tool.shown_name), True)
        seconds = time.perf_counter() - started
        said = one_line(output.text, 200) if output.is_error else ""
        done = replace(activity, kind="finished", seconds=seconds, size=len(output.text))
        self._tell(replace(done, is_error=output.is_error, message=said))
        return output

    async def _in_a_slot(self, job: _Job, activity: Activity) -> Output:
        """Run the tool when there is room, if it is still there: hooks and people take time."""
        async with self._slots:
            if self._registry.get(job.entry.tool.name) is not job.entry:
                return Output(prompts.not_available(job.call.tool.shown_name, ()), is_error=True)
            return await self._limited(job, activity)

    async def _limited(self, job: _Job, activity: Activity) -> Output:
        """Run the tool within its time; turn what it returns or raises into an output."""
        loop, here = asyncio.get_running_loop(), threading.get_ident()

        def report(message: str, fraction: float | None) -> None:
            shown = one_line(message, 200)
            said = replace(activity, kind="progress", message=shown, fraction=fraction)
            if context.cancelled:  # nobody waits any more
                return
            if threading.get_ident() == here:
                self._tell(said)
            else:  # listeners and queues belong to the loop's thread
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._tell, said)

        self._started.add(job.place)
        context = CallContext(job.call, report, self._scope)
        task = asyncio.create_task(_called(job, context))
        try:
            done, _ = await asyncio.wait({task}, timeout=job.entry.timeout)
            if not done:
                await _stopped(task, context)
                text = prompts.timed_out(job.call.tool.shown_name, job.entry.timeout or 0)
                return Output(text, is_error=True)
        except asyncio.CancelledError:
            await _stopped(task, context)
            raise
        if task.cancelled():  # by itself: nobody here asked for it
            return Output(prompts.gave_up(job.call.tool.shown_name), is_error=True)
        error = task.exception()
        if error is not None:
            _log.info("%s failed", job.call.tool.name, exc_info=error)
            return Output(_failure(job.call, error), is_error=True)
        return _output(job.call, task.result())

    def _result(
        self, place: int, text: str, *, is_error: bool, found: tuple[str, ...] | None = None
    ) -> ResultMessage:
        call = self._calls[place]
        return ResultMessage(text, call.id, call.name, is_error, found)

    def _tell(self, activity: Activity) -> None:
        if self._listener is None:
            return
        try:
            self._listener(activity)
        except Exception:
            _log.exception("an activity listener failed")


async def _called(job: _Job, context: CallContext) -> Any:
    """Call what runs the tool, in a thread where it is a plain function."""
    CURRENT.set(context)
    try:
        if job.entry.run is not None:
            return await job.entry.run(job.call)
        function = job.entry.tool.function
        assert function is not None  # the registry takes no tool without either
        if is_asynchronous(function):
            returned = _bound_call(function, job.call)
        else:
            returned = await in_thread(lambda: _bound_call(function, job.call))
        return await returned if inspect.isawaitable(returned) else returned
    except SystemExit as error:  # it would end the host's event loop
        raise RuntimeError(f"it tried to exit with {error.code}") from error


def _bound_call(function: Callable[..., Any], call: PendingCall) -> Any:
    """Call a function with what its signature says; answer what cannot be made into that."""
    bound = bind(function, call.arguments)
    if bound.faults:
        text = prompts.bad_arguments(call.tool.shown_name, bound.faults, signature(call.tool))
        return Output(text, is_error=True)
    return function(**bound.arguments)


async def _stopped(task: asyncio.Task[Any], context: CallContext) -> None:
    """Cancel a tool and wait a little for it to clean up."""
    context.stopped.set()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=_GRACE_SECONDS)
    if not done:
        _log.warning("%s does not stop when it is cancelled", context.call.tool.name)
        task.add_done_callback(_forgotten)
    else:
        _forgotten(task)


def _forgotten(task: asyncio.Task[Any]) -> None:
    """Read a task's error, so that nobody is told that it was never read."""
    if not task.cancelled():
        task.exception()


def _failure(call: PendingCall, error: BaseException) -> str:
    try:
        said = one_line(redact(str(error)), _REASON_LIMIT)
    except Exception:
        said = ""
    return prompts.failed(call.tool.shown_name, type(error).__name__, said)


def _output(call: PendingCall, value: Any) -> Output:
    """Return a tool's value as what the model reads."""
    if isinstance(value, Output):
        return value
    if value is None:
        return Output(prompts.NO_OUTPUT)
    if isinstance(value, str):
        return Output(value or prompts.NO_OUTPUT, value=value)
    try:
        text = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        text = _anyhow(value)
    return Output(text, value=value)


def _anyhow(value: Any) -> str:
    """Return a text of what orjson will not write: the tool ran, and its result is shown."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _plain(value: Any) -> Any:
    """Return a value that is not JSON as one that is."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    return str(value)


def _bounded(text: str, limit: int) -> str:
    """Return a result, or its first part with a note of how much was cut."""
    # Half a character cannot be sent.
    text = text if text.isascii() else text.encode("utf-8", "replace").decode()
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n{prompts.result_cut(limit, len(text))}"
