"""Requests on their way to a server, and what the server asks of the clients behind them.

A server's question goes to the client of the very call that it belongs to. Where a
transport tells (streamable HTTP), the call is known through `CURRENT`; elsewhere it is known
only while all calls under way on a connection are of one client. In doubt a question is
refused: it is never answered by somebody else.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST

from toolfold.sources.calls import CallClock
from toolfold.tool import Json, is_object

__all__ = ["CURRENT", "Caller", "InFlight", "Questions", "RelayedCall", "can"]

NOTES_AT_MOST = 256
"""How many reports of one call may wait for a slow client. Further ones are dropped."""

GHOST_SECONDS = 60.0
"""For how long a call that was given up may still be working, as far as anybody knows."""

_NOTES_LINGER = 1.0

_NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}

_NOTHING: Mapping[str, Json] = MappingProxyType({})

Questions: TypeAlias = dict[str, dict[str, Json]]
"""Questions by key, each `{"method", "params"}`."""


_ENVELOPE = "io.modelcontextprotocol/"
_LEVEL_KEY = f"{_ENVELOPE}logLevel"


class Caller(Protocol):
    """One request of a client, and the way back to the client while it lasts."""

    @property
    def key(self) -> str:
        """Names the conversation, for what is kept of it."""
        ...

    @property
    def origin(self) -> str:
        """Names the client for certain: two requests of one origin are of one client."""
        ...

    @property
    def owner(self) -> str:
        """Names the principal, and the session where there is one."""
        ...

    @property
    def is_modern(self) -> bool:
        """Whether it speaks 2026-07-28."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Json]:
        """What the client can do."""
        ...

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked for progress reports."""
        ...

    @property
    def log_level(self) -> str | None:
        """From which level on the client wants log messages, where it said so."""
        ...

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Ask the client in the middle of its request."""
        ...

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report progress."""
        ...

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass a log message on."""
        ...

    async def close_stream(self) -> None:
        """Close the stream of the request, where the client comes back for the rest."""
        ...


class RelayedCall:
    """One request on its way to a server.

    Args:
        caller: The client's request.
        params: What came with it.
    """

    def __init__(self, caller: Caller, params: Mapping[str, Json] = _NOTHING) -> None:
        self.caller = caller
        self.params = params
        self.park: Callable[[Questions], None] | None = None
        """Hands questions to a client that takes none in the middle of a call."""
        self.clock: CallClock | None = None
        self._answers: dict[str, asyncio.Future[Json]] = {}
        self._notes = 0
        self._quiet: asyncio.Event | None = None
        self.turn: asyncio.Semaphore | None = None

    def meta(self) -> dict[str, Json]:
        """Return what of a request's `_meta` goes on: not what is between the client and us."""
        given = self.params.get("_meta")
        meta = (
            {k: v for k, v in given.items() if k != "progressToken" and not k.startswith(_ENVELOPE)}
            if is_object(given)
            else {}
        )
        # Older clients get logs unasked; a server of 2026-07-28 sends them only when asked.
        level = self.caller.log_level or (None if self.caller.is_modern else "info")
        if level is not None:
            meta[_LEVEL_KEY] = level
        return meta

    # ---- questions

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Ask the client of this call.

        Raises:
            MCPError: It cannot be asked this, or it refuses.
        """
        key = secrets.token_hex(6)
        answers = await self.ask_all({key: {"method": method, "params": dict(params)}})
        return answers[key]

    async def ask_all(self, questions: Questions) -> dict[str, dict[str, Json]]:
        """Ask the client several things, for those of 2026-07-28 in one round."""
        for question in questions.values():
            self._check(question)
        self._hold()
        try:
            if self.park is not None:
                return await self._ask_parked(questions, self.park)
            return {
                key: await self.caller.ask(str(q["method"]), q.get("params") or {})
                for key, q in questions.items()
            }
        finally:
            self._go_on()

    def _check(self, question: Mapping[str, Json]) -> None:
        method = question.get("method")
        needed = _NEEDS.get(method) if isinstance(method, str) else None
        if needed is None or not can(self.caller.capabilities, needed):
            raise MCPError(INVALID_REQUEST, f"the client does not support {needed or method}")

    async def _ask_parked(
        self, questions: Questions, park: Callable[[Questions], None]
    ) -> dict[str, dict[str, Json]]:
        loop = asyncio.get_running_loop()
        # There may be others already: a server asks twice, or two calls of one client do.
        own = {key: loop.create_future() for key in questions}
        self._answers |= own
        park(questions)
        answers: dict[str, dict[str, Json]] = {}
        try:
            for key, future in own.items():
                answer = await future
                if not is_object(answer):
                    raise MCPError(INVALID_PARAMS, "the client's answer is not an object")
                answers[key] = answer
        finally:
            for key in own:
                self._answers.pop(key, None)
        return answers

    def answer(self, asked: Iterable[str], responses: Json) -> None:
        """Take the client's answers; a question without one is answered by an error."""
        given = responses if is_object(responses) else {}
        for key in asked:
            future = self._answers.get(key)
            if future is None or future.done():
                continue
            if key in given:
                future.set_result(given[key])
            else:
                future.set_exception(MCPError(INVALID_PARAMS, "the client gave no answer"))

    def _hold(self) -> None:
        # People take their time: while they are asked, the call's own clock stands still.
        if self.clock is not None:
            self.clock.pause()
        # Nor does it keep others from the server meanwhile.
        self.give_turn_back()

    def give_turn_back(self) -> None:
        """Let another call have this one's place at the server."""
        turn, self.turn = self.turn, None
        if turn is not None:
            turn.release()

    def _go_on(self) -> None:
        if self.clock is not None:
            self.clock.go_on()

    # ---- reports

    @property
    def has_room(self) -> bool:
        """Whether one more report may wait for the client."""
        return self._notes < NOTES_AT_MOST

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass a progress report on, unless too many wait already."""
        if self.has_room:
            await self._note(self.caller.progress(progress, total, message))

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass a log message on, unless too many wait already."""
        if self.has_room:
            await self._note(self.caller.log(params))

    async def close_stream(self) -> None:
        """Have the client come back for the rest, as the server has us."""
        await self.caller.close_stream()

    async def _note(self, sending: Awaitable[None]) -> None:
        self._notes += 1
        try:
            await sending
        finally:
            self._notes -= 1
            if not self._notes and self._quiet is not None:
                self._quiet.set()

    async def settle(self) -> None:
        """Let reports that are on their way arrive before the result does."""
        if self._notes:
            self._quiet = asyncio.Event()
            try:
                async with asyncio.timeout(_NOTES_LINGER):
                    await self._quiet.wait()
            except TimeoutError:
                pass


def can(capabilities: Mapping[str, Json], what: str) -> bool:
    """Whether a client says that it can do something."""
    return capabilities.get(what) is not None


CURRENT: contextvars.ContextVar[RelayedCall | None] = contextvars.ContextVar("call", default=None)
"""The call that this task works for. Transports that know carry it to what a server says."""


class InFlight:
    """The calls under way on one connection."""

    def __init__(self) -> None:
        self._calls: dict[RelayedCall, None] = {}
        self._ghosts: dict[str, float] = {}

    def add(self, call: RelayedCall) -> None:
        """A call begins."""
        self._calls[call] = None

    def remove(self, call: RelayedCall, *, is_answered: bool = True) -> None:
        """A call is over; where it was given up, the server may go on with it and ask."""
        self._calls.pop(call, None)
        if not is_answered:
            self._ghosts[call.caller.origin] = time.monotonic() + GHOST_SECONDS

    def clear(self) -> None:
        """The connection is a new one: nobody works on what was given up before."""
        self._ghosts.clear()

    @property
    def origins(self) -> set[str]:
        """The clients that what the server says now may be meant for."""
        if self._ghosts:
            now = time.monotonic()
            self._ghosts = {origin: end for origin, end in self._ghosts.items() if end > now}
        return {call.caller.origin for call in self._calls} | self._ghosts.keys()

    def owner(self) -> RelayedCall | None:
        """Return the call that what the server says now belongs to, if that is certain."""
        call = CURRENT.get()
        if call is not None:
            return call if call in self._calls else None
        if len(self.origins) > 1:
            return None
        return next(reversed(self._calls), None)

    def __len__(self) -> int:
        return len(self._calls)
