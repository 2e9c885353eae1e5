"""Run the calls of one turn.

Every call goes through dispatch, so that scope, schema, hooks and records are asked
whatever path it takes, and every call gets exactly one result, in the model's order: an
answer, a tool's output, or why there is none. Nothing that one call does reaches its
siblings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from toolfold import prompts
from toolfold.answer import Answer, Invocation
from toolfold.arguments import check
from toolfold.dispatch.activity import ActivityFeed, Listener
from toolfold.dispatch.dispatch import Dispatch, Origin
from toolfold.dispatch.hooks import Hook
from toolfold.dispatch.outputs import bounded
from toolfold.dispatch.records import Observer
from toolfold.dispatch.spans import Spans
from toolfold.fold import Folded
from toolfold.runtime.messages import Call, ResultMessage
from toolfold.scope import EVERYTHING, Scope
from toolfold.session import Session
from toolfold.sources.calls import PendingCall
from toolfold.sources.merged import Located, Sources
from toolfold.sources.source import Source
from toolfold.tool import Tool

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class _Job:
    """A call that comes to a real tool."""

    call: PendingCall
    located: Located

    @property
    def may_run_beside_others(self) -> bool:
        tool, source = self.located
        return source.bounds(tool).lets_run_beside_others(self.call.tool)


class Batch:
    """The calls of one turn, and what they come to.

    Example:
        batch = Batch(reply.message.calls, folded, registry)
        await batch.run()
        batch.results   # one a call, in the model's order; complete even where `run` was cancelled

    Args:
        calls: What the model wrote.
        folded: The fold that the model saw.
        sources: What runs the tools: a source, or several.
        session: The conversation before this turn; by default, that of the fold.
        hooks: Asked before and after each call.
        observers: Told of each call and search.
        spans: Makes OpenTelemetry's spans.
        listener: Hears what happens.
        agent: Who calls.
        parallel: How many tools may run at once.
        cut_off: Whether the reply hit its limit, so that its last call may not be whole.
        scope: What the caller may use, for tools that call on its behalf.
        recovered: Whether calls that were read out of text wait for a yes, unless their tools
            are known to be read-only, or may run like any other.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        folded: Folded,
        sources: Source | Sources,
        *,
        session: Session | None = None,
        hooks: Sequence[Hook] = (),
        observers: Iterable[Observer] = (),
        spans: Spans | None = None,
        listener: Listener | None = None,
        agent: str = "agent",
        parallel: int = 16,
        cut_off: bool = False,
        scope: Scope = EVERYTHING,
        recovered: Literal["ask", "run"] = "ask",
    ) -> None:
        self.session = folded.session if session is None else session
        self._calls = tuple(calls)
        self._folded = folded
        self._sources = sources if isinstance(sources, Sources) else Sources((sources,))
        feed = () if listener is None else (ActivityFeed(listener),)
        self._dispatch = Dispatch(hooks=hooks, observers=(*feed, *observers), spans=spans)
        self._agent = agent
        self._cut_off = cut_off
        self._scope = scope
        self._asks = recovered != "run"
        self._room = asyncio.Semaphore(max(parallel, 1))
        self._results: list[ResultMessage | None] = [None] * len(self._calls)
        self._started: set[int] = set()

    @property
    def results(self) -> tuple[ResultMessage, ...]:
        """One result a call, in the model's order. A call that has none yet was cancelled."""
        return tuple(
            result or self._result(position, self._why_none(position), is_error=True)
            for position, result in enumerate(self._results)
        )

    async def run(self) -> None:
        """Resolve the calls in order, then run the tools: at once where all may, else in order."""
        jobs = [job for i in range(len(self._calls)) if (job := await self._resolve(i))]
        # In a group on both paths: a second cancellation waits for the first to be done.
        async with asyncio.TaskGroup() as group:
            if all(job.may_run_beside_others for job in jobs):
                for job in jobs:
                    group.create_task(self._run(job))
            else:
                group.create_task(self._in_order(jobs))

    async def _in_order(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            await self._run(job)

    def _why_none(self, position: int) -> str:
        return prompts.CANCELLED if position in self._started else prompts.NOT_STARTED

    async def _resolve(self, position: int) -> _Job | None:
        """Settle a call that needs no tool; return the job of one that does."""
        written = self._calls[position]
        is_last = position == len(self._calls) - 1
        if self._cut_off and is_last and not written.arguments.strip():
            # With arguments that are half written, `resolve` says so itself.
            return self._reject(
                position, prompts.unreadable_arguments(written.name, prompts.CUT_OFF, None)
            )
        resolved = await self._dispatch.resolve(
            self._folded,
            written.name,
            written.arguments,
            session=self.session,
            origin=self._origin(position),
            absent=self._sources.absent(self._scope),
        )
        self.session = resolved.session
        if isinstance(resolved, Answer):
            found = _found(self._folded.bridge.role(written.name), resolved)
            self._results[position] = self._result(
                position,
                resolved.text,
                is_error=resolved.is_error,
                found=found,
                note="" if found is None else resolved.note,
            )
            return None
        located = self._sources.find(resolved.tool.name)
        shown, settings = self._sources.served(resolved.tool.name), self._folded.bridge.settings
        if located is None or shown is None or settings.applied(shown) != resolved.tool:
            # It left, or became another tool, between the assembly and this call.
            text = prompts.not_available(resolved.tool.shown_name, ())
            return self._reject(position, text, resolved.tool)
        return _Job(self._pending(position, resolved, located), located)

    def _reject(self, position: int, text: str, meant: Tool | None = None) -> None:
        written = self._calls[position]
        self._results[position] = self._result(position, text, is_error=True)
        origin = self._origin(position)
        self._dispatch.rejected(written.name, written.arguments, text, origin, meant)

    def _origin(self, position: int) -> Origin:
        return Origin(self._agent, None, self._calls[position].id, position)

    def _pending(self, position: int, resolved: Invocation, located: Located) -> PendingCall:
        written = self._calls[position]
        arguments = resolved.arguments
        if written.recovered:  # read out of text, numbers may be texts; a fold repairs its own
            arguments = check(resolved.tool, dict(arguments)).arguments
        return PendingCall(
            resolved.tool,
            arguments,
            resolved.via,
            written.id,
            self._agent,
            written.recovered,
            position=position,
            doubtful=written.recovered and self._asks and not self._is_known_read_only(located),
        )

    def _is_known_read_only(self, located: Located) -> bool:
        """Whether the host says that a tool changes nothing; a server's own word is none."""
        tool, source = located
        said = self._folded.bridge.settings.hints(tool).get("readOnlyHint")
        return source.is_hosts_own and tool.is_read_only if said is None else said

    async def _run(self, job: _Job) -> None:
        """Run one job. Whatever happens inside becomes its result; only cancellation passes."""
        position = job.call.position
        tool, source = job.located
        done = await self._dispatch.run(
            job.call,
            job.located,
            scope=self._scope,
            room=self._room,
            on_start=lambda: self._started.add(position),
        )
        text = bounded(done.output.text, source.bounds(tool).result_limit)
        self._results[position] = self._result(position, text, is_error=done.output.is_error)

    def _result(
        self,
        position: int,
        text: str,
        *,
        is_error: bool,
        found: tuple[str, ...] | None = None,
        note: str = "",
    ) -> ResultMessage:
        call = self._calls[position]
        return ResultMessage(text, call.id, call.name, is_error, found, note)


def _found(role: str | None, answer: Answer) -> tuple[str, ...] | None:
    """Return what a search or a describe named; None of any other call."""
    if role in (None, prompts.TOOL_CALL):
        return None
    return tuple(tool.shown_name for tool in answer.found)
