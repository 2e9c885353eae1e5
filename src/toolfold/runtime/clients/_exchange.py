"""One request and its reply: tried again while nothing of it was handed out, and bounded.

A provider's part is a `ReplyReader`, which puts a reply together from its pieces. What is the
same for all stands here: when to try again and after how long, when to stop reading a
model that never ends, and what a failure is called.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from toolfold.redact import Redactor
from toolfold.runtime.clients._endpoint import Endpoint, Piece
from toolfold.runtime.clients._failure import Failure
from toolfold.runtime.model import ModelError, Reply, Stop, TextDelta
from toolfold.tool import Json

__all__ = ["ModelExchange", "ReplyReader", "Sleep", "event_json"]

_CHANCE = random.Random()  # of its own: the program's is left as it is

FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
"""The bounds of the waits between attempts, in seconds, where the server names none."""

LONGEST_ASKED_WAIT = 60.0
"""A server that asks for more is not waited for."""

RUNAWAY_SLACK = 3
"""A reply this many times longer than its limit, at four characters a token, never ends."""

RUNAWAY_FLOOR = 4_000
"""Characters that any reply may have."""

GRACE_SECONDS = 5.0
"""How long the counts of a reply that has ended are waited for."""

DRAIN_SECONDS = 0.25
"""How long the end of a stream is waited for, to use the connection again."""

_log = logging.getLogger(__name__)

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits so many seconds."""


class ReplyReader(ABC):
    """Puts one reply together."""

    def __init__(self) -> None:
        self.written = 0
        """How many characters the model has written, of text, arguments and thoughts."""
        self.is_begun = False
        """Whether something of the reply has come."""
        self.is_ended = False
        """Whether the reply is whole, but for its counts."""
        self.is_over = False
        """Whether nothing more can come."""

    @abstractmethod
    def read(self, piece: Piece) -> str:
        """Take a piece; return the text in it.

        Raises:
            Failure: It is an error, or cannot be read.
        """

    @abstractmethod
    def reply(self, stop: Stop | None = None) -> Reply:
        """Return the reply as far as it has come, with another reason to stop if given."""


def event_json(data: str) -> Json:
    """Return the value that an event's data is.

    Raises:
        Failure: It is none.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Failure("a piece of the reply is not JSON", body=data) from None


@dataclass(frozen=True, slots=True)
class ModelExchange:
    """How requests are made."""

    endpoint: Endpoint
    name: str
    """The model's name, for errors."""

    redactor: Redactor
    retries: int
    sleep: Sleep
    origin: str = ""
    """Who answers, for what only they can read."""

    adapt: Callable[[Json, Failure], Json | None] = lambda body, failure: None
    """Returns another body for a server that refused this one, or None."""

    async def stream(
        self,
        body: Json,
        new_reader: Callable[[], ReplyReader],
        max_tokens: int,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[TextDelta | Reply, None]:
        """Yield a reply's text as it comes, then the reply.

        Args:
            body: What is asked.
            new_reader: Makes what puts a reply together.
            max_tokens: The cap on the reply.
            headers: What this request says beside what every one says.

        Raises:
            ModelError: There is none.
        """
        attempt = 0
        while True:
            reader = new_reader()
            try:
                async with aclosing(self._attempt(body, reader, max_tokens, headers)) as events:
                    async for event in events:
                        yield event
                return
            except Failure as caught:
                failure = caught
            adapted = None if reader.is_begun else self.adapt(body, failure)
            if adapted is not None:
                _log.info("asking %s in another way: %s", self.name, self._told(failure))
                body = adapted
                continue
            wait = _wait(attempt, failure)
            if reader.is_begun or not failure.again or attempt >= self.retries or wait is None:
                raise self._error(failure, attempt)
            attempt += 1
            _log.info("trying %s again in %.1f s: %s", self.name, wait, self._told(failure))
            await self.sleep(wait)

    async def _attempt(
        self, body: Json, reader: ReplyReader, max_tokens: int, headers: Mapping[str, str]
    ) -> AsyncGenerator[TextDelta | Reply, None]:
        """Yield what one attempt brings."""
        limit = RUNAWAY_FLOOR + 4 * RUNAWAY_SLACK * max_tokens
        async with aclosing(self.endpoint.post(body, headers)) as pieces:
            while not reader.is_over and (piece := await _next(pieces, reader)) is not None:
                text = reader.read(piece)
                if text:
                    yield TextDelta(text)
                if reader.written > limit:
                    break
            if reader.is_over:
                await _drain(pieces)
        if reader.is_ended:
            yield self._signed(reader.reply())
        elif reader.written > limit:
            _log.warning("%s went on beyond its limit and was stopped", self.name)
            yield self._signed(reader.reply("length"))
        elif reader.is_begun:
            raise Failure("the reply broke off", hint="try again")
        else:
            raise Failure("the server sent no reply", hint="check the base URL")

    def _signed(self, reply: Reply) -> Reply:
        """Return a reply that says whose blocks it holds, where it holds any."""
        if not reply.message.native:
            return reply
        return replace(reply, message=replace(reply.message, origin=self.origin))

    def _told(self, failure: Failure) -> str:
        return self.redactor.redact(failure.message)

    def _error(self, failure: Failure, attempts: int) -> ModelError:
        tried = f" (after {attempts + 1} attempts)" if attempts else ""
        asked = failure.wait or 0.0
        hint = None if failure.hint is None else self.redactor.redact(failure.hint)
        if failure.again and asked > LONGEST_ASKED_WAIT:
            hint = f"the server asks to wait {asked:,.0f} s; try again then"
        return ModelError(
            f"model {self.name!r}: {self._told(failure)}{tried}",
            hint=hint,
            status=failure.status,
            body=self.redactor.redact(failure.body),
        )


async def _next(pieces: AsyncIterator[Piece], reader: ReplyReader) -> Piece | None:
    """Return the next piece, or None where nothing more is worth waiting for."""
    if not reader.is_ended:
        return await anext(pieces, None)
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            return await anext(pieces, None)
    except (TimeoutError, Failure):
        return None


async def _drain(pieces: AsyncIterator[Piece]) -> None:
    """Read to the end, if it is near: a connection that was read to its end is kept."""
    with suppress(TimeoutError, Failure):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in pieces:
                pass


def _wait(attempt: int, failure: Failure) -> float | None:
    """Return the seconds before the next attempt, or None where the server wants too many."""
    if failure.wait:
        return failure.wait if failure.wait <= LONGEST_ASKED_WAIT else None
    # Full jitter: clients that failed together do not come back together.
    return _CHANCE.uniform(0.0, min(LONGEST_WAIT, FIRST_WAIT * 2**attempt))
