"""What clients fetch that is no call of a tool, as observers hear of it.

A resource that is read and a prompt that is got is recorded once, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from toolfold._bounds import one_line
from toolfold.dispatch.outputs import json_size
from toolfold.dispatch.records import CallRecord, Observers, Outcome
from toolfold.serve._calls_under_way import CallsUnderWay, StoppedError, StoppingError
from toolfold.serve.mcp._parking import is_continuation
from toolfold.serve.principals import Principal
from toolfold.sources.mcp.relay import Caller
from toolfold.tool import Json, is_object

__all__ = ["Fetch", "recorded"]

_ERROR_LIMIT = 900


@dataclass(slots=True)
class Fetch:
    """One of them, under way."""

    server: str | None = None
    """Who has it; None where nobody does."""

    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What the client sent."""

    result: dict[str, Json] | None = None
    """What came back."""


@contextmanager
def recorded(
    observers: Observers,
    calls: CallsUnderWay,
    via: Literal["resource", "prompt"],
    name: str,
    caller: Caller,
    principal: Principal,
) -> Generator[Fetch]:
    """Count a fetch among what is under way, and tell the observers of it at its end."""
    at, began = time.time(), time.perf_counter()
    outcome: Outcome = "cancelled"
    error: str | None = None
    fetch = Fetch()
    try:
        with calls.entered():
            yield fetch
        outcome = "ok"
    except (asyncio.CancelledError, StoppedError):
        error = calls.why_given_up()
        raise
    except StoppingError as refusal:
        outcome, error = "refused", refusal.message
        raise
    except Exception as failure:
        is_missing = fetch.server is None and not is_continuation(fetch.params)
        outcome = "refused" if is_missing else "failed"
        error = one_line(str(failure), _ERROR_LIMIT)
        raise
    finally:
        given = fetch.params.get("arguments")
        record = CallRecord(
            at=at,
            principal=principal.name,
            session=caller.key,
            server=fetch.server or "",
            tool=name,
            via=via,
            outcome=outcome,
            seconds=time.perf_counter() - began,
            result_size=0 if fetch.result is None else json_size(fetch.result),
            arguments=given if is_object(given) else None,
            error=error,
            tenant=principal.tenant,
        )
        observers.fetched(record)
