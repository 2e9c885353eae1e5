"""Calls that do not run twice, though their client sends them twice.

A client that lost its connection may send the same request, by the same id in the same session,
to any replica. So a call is written down before it is sent to a server, and what it came to is
written down before it is answered: the second time it is answered with that, or waited for where
it is still running, or, where the replica that ran it is gone, with the truth that nobody knows
whether it ran. While the database is away calls run all the same, without the journal, but for
those that have waited for it: their client may have sent them to another replica by now.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
)

from toolfold import prompts
from toolfold._json_values import NotJsonError, canonical, compact_bytes, parse
from toolfold.serve.mcp._results import text_result
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.journal import JournalEntry, JournalRows
from toolfold.store.postgres.replicas import ReplicaGoneError, Replicas
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, is_object

__all__ = ["CallJournal", "JournaledCall"]

_log = logging.getLogger(__name__)

LARGEST_OUTCOME = 256 * 1024
"""How many bytes of what a call came to are kept."""

CallOutcome = dict[str, Json]
"""What a call came to: `{"result": …}`, `{"error": {code, message, data}}`."""

LATE = 0.5
"""How old a call may be that runs though it could not be written down, in seconds."""

_Key = tuple[str, bytes]


class CallJournal:
    """The journal, as one replica writes and reads it.

    Args:
        replicas: The replicas.
        database: Where it is.
    """

    def __init__(self, replicas: Replicas, database: Database) -> None:
        self._replicas = replicas
        self._rows = JournalRows(database)
        self._running: dict[_Key, tuple[bytes, asyncio.Future[CallOutcome]]] = {}
        self._is_away = False
        self._tasks: set[asyncio.Task[None]] = set()
        replicas.on("journal.outcome", self._asked)

    async def once(
        self,
        session: str,
        request: Json,
        params: Mapping[str, Json],
        arrived: float,
        work: Callable[[], Awaitable[dict[str, Json]]],
    ) -> dict[str, Json]:
        """Return what a call comes to, or came to when it was made before.

        Args:
            session: The client's session.
            request: The id of its request.
            params: What it asks for.
            arrived: When it came in, by the monotonic clock.
            work: Makes the call.

        Raises:
            MCPError: The call fails, or failed, as one of the protocol.
        """
        key, digest = _key(session, request), _digest(params)
        running = self._running.get(key)
        if running is not None and running[0] == digest:
            return _taken(await asyncio.shield(running[1]))
        future: asyncio.Future[CallOutcome] = asyncio.get_running_loop().create_future()
        self._running[key] = (digest, future)
        beginning = asyncio.create_task(self._begin(key, digest))
        outcome: CallOutcome = _failure(prompts.CANCELLED)
        is_written = False
        try:
            found = await asyncio.shield(beginning)
            if isinstance(found, JournalEntry):
                is_written = True
                outcome = await self._known(key, found)
                return _taken(outcome)
            if not found and time.monotonic() - arrived > LATE:
                is_written = True
                outcome = {"result": _told(prompts.NOT_WRITTEN_DOWN)}
                return outcome["result"]
            try:
                outcome = {"result": await work()}
            except Exception as error:
                outcome = _failure(error)
                raise
            if found:
                await self._end(key, outcome)
            is_written = True
            return outcome["result"]
        finally:
            future.set_result(outcome)
            if self._running.get(key, (b"", None))[1] is future:
                del self._running[key]
            if not is_written:
                self._soon(self._end_after(beginning, key, outcome))

    async def result(
        self, session: str, request: Json, params: Mapping[str, Json]
    ) -> dict[str, Json] | None:
        """Return what a call came to when it was made before; None where it was not.

        Raises:
            MCPError: The call failed as one of the protocol.
        """
        key = _key(session, request)
        with suppress(StoreAwayError):
            found = await asyncio.to_thread(self._rows.find, *key, _digest(params))
            if found is not None:
                return _taken(await self._known(key, found))
        return None

    async def outcome(self, session: str, stream: str) -> JSONRPCMessage | None:
        """Return what a request came to whose replica is gone; None where it was no such call."""
        from toolfold.serve.replica.session_mail import request_id

        key = _key(session, stream)
        with suppress(StoreAwayError):
            found = await asyncio.to_thread(self._rows.find, *key)
            if found is not None:
                return _message(request_id(stream), await self._known(key, found))
        return None

    async def sweep(self) -> None:
        """Delete what was kept for long enough."""
        await asyncio.to_thread(self._rows.sweep)

    async def _begin(self, key: _Key, digest: bytes) -> JournalEntry | bool:
        """Write a call down; return what is known of it, or whether it was written."""
        try:
            found = await asyncio.to_thread(self._rows.begin, *key, digest, self._replicas.id)
        except StoreAwayError as error:
            if not self._is_away:
                self._is_away = True
                _log.warning(
                    "%s; until it is back, a call that a client sends twice may run twice", error
                )
            return False
        self._is_away = False
        return True if found is None else found

    async def _end(self, key: _Key, outcome: CallOutcome) -> None:
        content = compact_bytes(outcome)
        if len(content) > LARGEST_OUTCOME:
            content = compact_bytes({"result": _told(prompts.RESULT_NOT_KEPT)})
        try:
            await asyncio.to_thread(self._rows.end, *key, self._replicas.id, content)
        except StoreAwayError as error:
            _log.debug("what a call came to is not kept: %s", error)

    async def _end_after(
        self, beginning: asyncio.Task[JournalEntry | bool], key: _Key, outcome: CallOutcome
    ) -> None:
        """Write down what a call came to that was given up, or failed, perhaps at once."""
        if await beginning is True:
            await self._end(key, outcome)

    async def _known(self, key: _Key, found: JournalEntry) -> CallOutcome:
        """Return what a call came to that was begun before."""
        _log.info("a call that was sent twice is not run again")
        if found.outcome is not None:
            return parse(found.outcome)
        if found.replica == self._replicas.id:
            # It ended here, and that could not be written down.
            return {"result": _told(prompts.RESULT_NOT_KEPT)}
        session, request = key
        question = {"session": session, "request": request.hex()}
        try:
            told = await self._replicas.ask(found.replica, "journal.outcome", question)
        except (ReplicaGoneError, StoreAwayError):
            told = None
        if is_object(told):
            return told
        # It may have come to an end, and to its own, after it was looked up.
        with suppress(StoreAwayError):
            again = await asyncio.to_thread(self._rows.find, *key)
            if again is not None and again.outcome is not None:
                return parse(again.outcome)
        return {"result": _told(prompts.REPLICA_GONE)}

    async def _asked(self, content: Json) -> Json:
        running = self._running.get((content["session"], bytes.fromhex(content["request"])))
        return None if running is None else await asyncio.shield(running[1])

    def _soon(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@dataclass(slots=True)
class JournaledCall:
    """One call of a client, which may have been made before."""

    journal: CallJournal
    session: str
    """The client's session."""
    request: Json
    """What the client calls the request."""
    params: Mapping[str, Json]
    arrived: float
    """When it came in, by the monotonic clock."""
    _is_begun: bool = field(default=False, init=False)

    async def once(self, work: Callable[[], Awaitable[dict[str, Json]]]) -> dict[str, Json]:
        """Make the call, or return what it came to when it was made before."""
        self._is_begun = True
        return await self.journal.once(self.session, self.request, self.params, self.arrived, work)

    async def result_before(self) -> dict[str, Json] | None:
        """Return what it came to when it was made before; None where `once` was asked already."""
        if self._is_begun:
            return None
        return await self.journal.result(self.session, self.request, self.params)


def _key(session: str, request: Json) -> _Key:
    # The protocol's library takes 7 and "7" for one id, and so do the streams of a session.
    return session, hashlib.sha256(str(request).encode("utf-8", "surrogatepass")).digest()


def _digest(params: Mapping[str, Json]) -> bytes:
    asked = {key: value for key, value in params.items() if key != "_meta"}
    try:
        return hashlib.sha256(canonical(asked)).digest()
    except NotJsonError as error:
        raise MCPError(INVALID_PARAMS, f"what was asked {error.message}") from None


def _told(text: str) -> dict[str, Json]:
    return text_result(text, is_error=True)


def _failure(error: Exception | str) -> CallOutcome:
    if isinstance(error, MCPError):
        return {"error": error.error.model_dump(mode="json", exclude_none=True)}
    return {"error": {"code": INTERNAL_ERROR, "message": str(error)}}


def _taken(outcome: CallOutcome) -> dict[str, Json]:
    if "error" in outcome:
        error = ErrorData.model_validate(outcome["error"])
        raise MCPError(error.code, error.message, error.data)
    return outcome["result"]


def _message(number: int | str, outcome: CallOutcome) -> JSONRPCMessage:
    if "error" in outcome:
        error = ErrorData.model_validate(outcome["error"])
        return JSONRPCError(jsonrpc="2.0", id=number, error=error)
    return JSONRPCResponse(jsonrpc="2.0", id=number, result=outcome["result"])
