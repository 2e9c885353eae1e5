"""What a gateway or proxy does now and did last: calls, requests to models, searches in vain.

It is for its own user: whose call of which tool, how it ended and how long it took.
No argument and no result is in it, and queries are redacted. What is kept is bounded; each
entry has a number, so that who asks again asks for what is new.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolfold._bounds import one_line
from toolfold.dispatch.records import CallRecord, RequestRecord, SearchRecord, Silent
from toolfold.redact import Redactor
from toolfold.serve.control.moments import moment
from toolfold.serve.control.verb_arguments import number
from toolfold.tool import Json

if TYPE_CHECKING:
    from toolfold.memory import Memory

__all__ = ["RecentActivity"]

KEPT = 200
"""How many calls, and how many searches in vain, are kept."""

UNDER_WAY_SHOWN = 100
"""How many of the calls under way are told, the oldest first."""

_NAME_LIMIT = 200
_QUERY_LIMIT = 300
_ERROR_LIMIT = 300
_MEMORY_SECONDS = 10.0

_Key = tuple[float, str, str | None, str, str, int]


class RecentActivity(Silent):
    """Keeps what happened last, as an observer, and answers the verb `activity`.

    Args:
        redactor: Takes secrets out of queries and errors.
        memory: What searches led to.
    """

    def __init__(self, redactor: Redactor | None = None, memory: Memory | None = None) -> None:
        self._redactor = redactor or Redactor()
        self._memory = memory
        self._under_way: dict[_Key, CallRecord] = {}
        self._calls: deque[dict[str, Json]] = deque(maxlen=KEPT)
        self._empty: deque[dict[str, Json]] = deque(maxlen=KEPT)
        self._requests: deque[dict[str, Json]] = deque(maxlen=KEPT)
        self._number = 0
        self._effect: Json = None
        self._looked = 0.0

    # ---- as an observer

    def started(self, record: CallRecord) -> None:
        """Keep a call while it runs."""
        self._under_way[_key(record)] = record

    def called(self, record: CallRecord) -> None:
        """Keep a call that is over."""
        self._under_way.pop(_key(record), None)
        error = None if record.error is None else self._shown(record.error, _ERROR_LIMIT)
        ended: dict[str, Json] = {
            **_call(record),
            "outcome": record.outcome,
            "seconds": round(record.seconds, 6),
            "request_size": record.request_size,
            "result_size": record.result_size,
            "error": error,
        }
        self._calls.append(self._numbered(ended))

    def searched(self, record: SearchRecord) -> None:
        """Keep a search that found nothing."""
        if record.hits or record.error is not None:
            return
        empty: dict[str, Json] = {
            "at": moment(record.at, "milliseconds"),
            "principal": one_line(record.principal, _NAME_LIMIT),
            "query": self._shown(record.query, _QUERY_LIMIT),
        }
        self._empty.append(self._numbered(empty))

    def requested(self, record: RequestRecord) -> None:
        """Keep a request to a model that is over."""
        if not record.dialect:
            return
        error = None if record.error is None else self._shown(record.error, _ERROR_LIMIT)
        ended: dict[str, Json] = {
            "at": moment(record.at, "milliseconds"),
            "principal": one_line(record.principal, _NAME_LIMIT),
            "upstream": one_line(record.upstream, _NAME_LIMIT),
            "model": one_line(record.model, _NAME_LIMIT),
            "outcome": record.outcome,
            "status": record.status,
            "seconds": round(record.seconds, 6),
            "rounds": record.rounds,
            "searches": record.searches,
            "tokens_before": record.tokens_before,
            "tokens_after": record.tokens_after,
            "error": error,
        }
        self._requests.append(self._numbered(ended))

    def _numbered(self, entry: dict[str, Json]) -> dict[str, Json]:
        self._number += 1
        return {"number": self._number, **entry}

    def _shown(self, text: str, limit: int) -> str:
        return one_line(self._redactor.redact(text[:4_000]), limit)

    # ---- as it is asked

    async def activity(self, arguments: Mapping[str, Json]) -> Json:
        """Answer the verb `activity`."""
        since = number(arguments, "since", default=0, high=2**53)
        limit = number(arguments, "limit", default=50, high=KEPT)
        return {
            "number": self._number,
            "under_way": self._running(),
            "calls": _newest(self._calls, since, limit),
            "empty_searches": _newest(self._empty, since, limit),
            "requests": _newest(self._requests, since, limit),
            "memory": await self._memory_effect(),
        }

    def _running(self) -> list[Json]:
        now = time.time()
        oldest = sorted(self._under_way.values(), key=lambda record: record.at)[:UNDER_WAY_SHOWN]
        return [{**_call(call), "seconds": round(max(now - call.at, 0.0), 3)} for call in oldest]

    async def _memory_effect(self) -> Json:
        """Return what memory holds and weighs; it is looked at now and then, in a thread."""
        memory = self._memory
        if memory is not None and time.monotonic() - self._looked > _MEMORY_SECONDS:
            self._looked = time.monotonic()
            self._effect = await asyncio.to_thread(_effect, memory)
        return self._effect


def _effect(memory: Memory) -> Json:
    from toolfold.memory import StoreError
    from toolfold.memory.summary import summary_of

    try:
        summary = summary_of(memory, memory.records())
    except StoreError as error:
        return {"error": one_line(error.message, _ERROR_LIMIT)}
    return {
        "requests": summary.requests,
        "tools": len(summary.tools),
        "worked": summary.worked,
        "failed": summary.failed,
        "weight": round(summary.weight, 4),
        "why": summary.why,
    }


def _newest(kept: deque[dict[str, Json]], since: int, limit: int) -> list[Json]:
    found = [entry for entry in reversed(kept) if entry["number"] > since]
    return found[:limit]


def _call(record: CallRecord) -> dict[str, Json]:
    return {
        "at": moment(record.at, "milliseconds"),
        "principal": one_line(record.principal, _NAME_LIMIT),
        "server": one_line(record.server, _NAME_LIMIT),
        "tool": one_line(record.tool, _NAME_LIMIT),
        "via": record.via,
    }


def _key(record: CallRecord) -> _Key:
    return (
        record.at, record.principal, record.session, record.tool, record.call_id, record.position
    )  # fmt: skip
