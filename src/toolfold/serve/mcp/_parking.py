"""Calls that wait for their client to come back with an answer.

Clients of 2026-07-28 take no questions in the middle of a call. For them the call is parked:
they get the question as the call's result, with a token, and their next request with that
token carries the answer in and takes the wait up again. A token works once, only for the
principal that it was given to, and for ten minutes. Among several replicas it names the one
that the call waits at, and another takes it up there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolfold.sources.mcp.mcp_source import McpSource
from toolfold.sources.mcp.relay import Caller, Questions, RelayedCall
from toolfold.sources.source import Source
from toolfold.tool import Json

__all__ = ["Parking", "is_continuation", "may_ask"]

PARKED_AT_MOST = 1_000
PARKED_SECONDS = 600.0
TOKEN_PREFIX = "toolfold-"


def is_continuation(params: Mapping[str, Json]) -> bool:
    """Whether a request takes a parked call up again."""
    token = params.get("requestState")
    return isinstance(token, str) and token.startswith(TOKEN_PREFIX)


@dataclass(frozen=True, slots=True)
class _Event:
    """What a parked call comes to: questions, a result or an error."""

    questions: Questions | None = None
    result: dict[str, Json] | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class _Parked:
    call: RelayedCall
    task: asyncio.Task[None]
    events: asyncio.Queue[_Event]
    owner: str
    asked: tuple[str, ...]
    expiry: asyncio.TimerHandle | None = None


TakesUp = Callable[[str, Caller, Mapping[str, Json]], Awaitable[dict[str, Json]] | None]
"""Takes a call up again that waits at another replica, by its token; None where it waits here."""


class Parking:
    """Calls that wait for their client to come back with an answer."""

    def __init__(self) -> None:
        self._parked: OrderedDict[str, _Parked] = OrderedDict()
        self.prefix = TOKEN_PREFIX
        """What tokens begin with; it begins as all of them do."""
        self.elsewhere: TakesUp = lambda token, caller, params: None
        """Takes up calls that wait at other replicas."""

    def __len__(self) -> int:
        return len(self._parked)

    async def take_up(self, caller: Caller, params: Mapping[str, Json]) -> dict[str, Json]:
        """Go on with a call that was parked.

        Raises:
            MCPError: The call failed, or the token is not known.
        """
        elsewhere = self.elsewhere(params["requestState"], caller, params)
        return await (elsewhere or self.conduct(caller, params, _never))

    async def conduct(
        self,
        caller: Caller,
        params: Mapping[str, Json],
        work: Callable[[RelayedCall], Awaitable[Json]],
    ) -> dict[str, Json]:
        """Run a call of a 2026-07-28 client whose server may ask in between.

        Args:
            caller: The request.
            params: Its parameters; with a token of ours, it takes a parked call up again.
            work: What to do, where it is a new call.

        Raises:
            MCPError: The call failed, or the token is not known.
        """
        if is_continuation(params):
            parked = self._take(params["requestState"], caller.owner)
            call, task, events = parked.call, parked.task, parked.events
            call.caller = caller
            call.answer(parked.asked, params.get("inputResponses"))
        else:
            call = RelayedCall(caller, params)
            events = asyncio.Queue[_Event]()
            call.park = lambda asked: events.put_nowait(_Event(questions=asked))
            task = asyncio.create_task(_run(call, events, work))
        try:
            event = await events.get()
        except asyncio.CancelledError:
            task.cancel()
            raise
        if event.error is not None:
            raise event.error
        if event.result is not None:
            return event.result
        return {
            "resultType": "input_required",
            "inputRequests": event.questions,
            "requestState": self._park(
                _Parked(call, task, events, caller.owner, tuple(event.questions or ()))
            ),
        }

    def _park(self, parked: _Parked) -> str:
        token = self.prefix + secrets.token_urlsafe(24)
        loop = asyncio.get_running_loop()
        parked.expiry = loop.call_later(PARKED_SECONDS, self._drop, token)
        self._parked[token] = parked
        if len(self._parked) > PARKED_AT_MOST:
            # The oldest of its own: nobody's questions make another's go.
            own = (t for t, other in self._parked.items() if other.owner == parked.owner)
            self._drop(next(own))
        return token

    def _take(self, token: str, owner: str) -> _Parked:
        parked = self._parked.get(token)
        if parked is None or parked.owner != owner:
            raise MCPError(INVALID_PARAMS, "this question is over: make the call again")
        if parked.expiry is not None:
            parked.expiry.cancel()
        return self._parked.pop(token)

    def _drop(self, token: str) -> None:
        parked = self._parked.pop(token, None)
        if parked is not None:
            if parked.expiry is not None:
                parked.expiry.cancel()
            parked.task.cancel()

    def close(self) -> None:
        """Give up every parked call."""
        for token in list(self._parked):
            self._drop(token)


async def _run(
    call: RelayedCall,
    events: asyncio.Queue[_Event],
    work: Callable[[RelayedCall], Awaitable[Json]],
) -> None:
    try:
        events.put_nowait(_Event(result=await work(call)))
    except asyncio.CancelledError as error:
        gone = MCPError(INTERNAL_ERROR, "the call was given up")
        gone.__cause__ = error
        events.put_nowait(_Event(error=gone))
        raise
    except Exception as error:
        events.put_nowait(_Event(error=error))


async def _never(call: RelayedCall) -> Json:
    raise AssertionError("a continued call has begun long ago")


def may_ask(source: Source) -> bool:
    """Whether a source may ask in the middle of a call: an older server, or one not yet known."""
    if not isinstance(source, McpSource):
        return False
    return source.connection is None or not source.connection.is_modern
