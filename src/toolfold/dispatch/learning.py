"""What searches lead to, read off the one record of dispatch and given to a memory.

A call of a tool belongs to the search of its session that named it last. A search that found
nothing belongs to what the next ones led to: its words were meant for that. Calls of one session
that follow each other are one task, and what worked in one task was used together.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolfold.answer import Hit
from toolfold.dispatch.records import CallRecord, SearchRecord, Silent
from toolfold.memory import Memory
from toolfold.memory.memory import TENANTS_AT_MOST
from toolfold.search import Use
from toolfold.store.store import DEFAULT_TENANT

__all__ = ["Learning", "learning"]

_SESSIONS_AT_MOST = 1_024
_SEARCHES_AT_MOST = 8
_TASK_AT_MOST = 8
_HANDED_AT_MOST = 64
_NEEDS_AT_MOST = 8
_TEXT_AT_MOST = 4_000

TASK_GAP = 600.0
"""Seconds of silence after which a session's calls are another task."""

_Key = tuple[str, str]


@dataclass(slots=True)
class _Search:
    needs: Mapping[str, frozenset[str]]
    """What was asked for, and the names of the tools that each need was told."""
    in_vain: str = ""
    """The request, where it found nothing."""


@dataclass(slots=True)
class _Course:
    """What happened in one session so far."""

    searches: deque[_Search] = field(
        default_factory=lambda: deque[_Search](maxlen=_SEARCHES_AT_MOST)
    )
    task: list[_Key] = field(default_factory=list[_Key])
    """The tools that worked in the task under way."""
    last: float = 0.0
    handed: OrderedDict[str, _Key] = field(default_factory=OrderedDict[str, _Key])
    """Calls that somebody else runs, by their ids."""


class Learning(Silent):
    """An observer that learns. Safe to share between sessions and threads.

    Args:
        memory: What is told.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._tenants: OrderedDict[str, Learning] = OrderedDict()
        self._courses: OrderedDict[tuple[str, str | None], _Course] = OrderedDict()

    def for_tenant(self, tenant: str) -> Learning:
        """Return what learns from the sessions of a tenant, and for it alone."""
        if tenant == DEFAULT_TENANT:
            return self
        with self._lock:
            own = self._tenants.get(tenant)
            if own is None:
                own = self._tenants[tenant] = Learning(self.memory.for_tenant(tenant))
            self._tenants.move_to_end(tenant)
            while len(self._tenants) > TENANTS_AT_MOST:
                self._tenants.popitem(last=False)
            return own

    # ---- as dispatch tells it

    def searched(self, record: SearchRecord) -> None:
        """Take a search that is over."""
        if record.error is None:
            self.for_tenant(record.tenant).asked(
                record.principal, record.session, record.query, record.named
            )

    def called(self, record: CallRecord) -> None:
        """Take a call that is over; one that was not let through or not answered says nothing."""
        if record.digest and record.outcome in ("ok", "tool_error"):
            self.for_tenant(record.tenant).used(
                record.principal,
                record.session,
                (record.tool, record.digest),
                worked=record.outcome == "ok",
            )

    # ---- as any host may tell it

    def asked(
        self, principal: str, session: str | None, query: str, named: Iterable[tuple[str, str]]
    ) -> None:
        """Take a search.

        Args:
            principal: Whose it is.
            session: The session it came in.
            query: What was asked for.
            named: The needs and the tools that the answer names for each.
        """
        needs: dict[str, set[str]] = {}
        for need, name in named:
            needs.setdefault(need[:_TEXT_AT_MOST], set()).add(name)
        found = {need: frozenset(names) for need, names in needs.items()}
        # Of a query with several needs it is not told which of them was in vain.
        in_vain = "" if found or "|" in query else query[:_TEXT_AT_MOST].strip()
        with self._lock:
            self._course(principal, session).searches.append(_Search(found, in_vain))

    def noted(self, principal: str, session: str | None, hits: Sequence[Hit]) -> None:
        """Take a search that the host made before the model asked, by what it showed."""
        if hits:
            named = [(hit.need, hit.name) for hit in hits]
            self.asked(principal, session, hits[0].need, named)

    def used(
        self, principal: str, session: str | None, tool: tuple[str, str], *, worked: bool
    ) -> None:
        """Take a call of a tool, and whether it worked.

        Args:
            principal: Whose it is.
            session: The session it came in.
            tool: The tool's name and its digest.
            worked: Whether it was answered without an error.
        """
        now = time.time()
        with self._lock:
            course = self._course(principal, session)
            requests = _requests_of(course.searches, tool[0])
            beside = self._task_of(course, tool, now) if worked else ()
        for request in requests:
            self.memory.learn(Use(request, *tool, worked=worked, principal=principal, at=now))
        for other in beside:
            self.memory.together(principal, other, tool, now)

    def handed(
        self, principal: str, session: str | None, tool: tuple[str, str], call_id: str
    ) -> None:
        """Take a call that somebody else runs, and that will be told of."""
        with self._lock:
            handed = self._course(principal, session).handed
            handed[call_id] = tool
            while len(handed) > _HANDED_AT_MOST:
                handed.popitem(last=False)

    def returned(self, principal: str, session: str | None, results: Mapping[str, bool]) -> None:
        """Take what became of calls that somebody else ran.

        Args:
            principal: Whose they are.
            session: The session they came in.
            results: Whether each worked, by its id; those that are not known are passed over.
        """
        with self._lock:
            handed = self._course(principal, session).handed
            known = [(handed.pop(i), worked) for i, worked in results.items() if i in handed]
        for tool, worked in known:
            self.used(principal, session, tool, worked=worked)

    def begin_task(self, principal: str, session: str | None = None) -> None:
        """Let what follows in a session be another task: the user has said something new."""
        with self._lock:
            course = self._course(principal, session)
            course.task.clear()
            course.searches.clear()

    def _course(self, principal: str, session: str | None) -> _Course:
        key = (principal, session)
        course = self._courses.get(key)
        if course is None:
            course = self._courses[key] = _Course()
        self._courses.move_to_end(key)
        while len(self._courses) > _SESSIONS_AT_MOST:
            self._courses.popitem(last=False)
        return course

    def _task_of(self, course: _Course, tool: _Key, now: float) -> Sequence[_Key]:
        """Return what else worked in the task of a call, each once; the call is part of it then."""
        if now - course.last > TASK_GAP:
            course.task.clear()
        course.last = now
        if tool in course.task or len(course.task) == _TASK_AT_MOST:
            return ()
        before = tuple(course.task)
        course.task.append(tool)
        return before


def learning(memory: Memory | None) -> tuple[Learning, ...]:
    """Return the observers that a memory learns through: one, or none where there is none."""
    return () if memory is None else (Learning(memory),)


def _requests_of(searches: Sequence[_Search], tool: str) -> list[str]:
    """Return the requests that led to a tool: the last that named it, and those in vain before."""
    for place in range(len(searches) - 1, -1, -1):
        needs = [need for need, names in searches[place].needs.items() if tool in names]
        if needs:
            in_vain: list[str] = []
            for earlier in reversed(list(searches)[:place]):
                if not earlier.in_vain:
                    break
                in_vain.append(earlier.in_vain)
            return list(dict.fromkeys((*needs, *in_vain)))[:_NEEDS_AT_MOST]
    # It was known by name; what was searched for in vain just before was meant for it.
    last = searches[-1] if searches else None
    return [last.in_vain] if last is not None and last.in_vain else []
