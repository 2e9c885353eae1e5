"""Calls of 2026-07-28 that wait for their client at one replica, taken up again at another.

A token names the replica that its call waits at. Whoever gets the token back asks that one to go
on, and answers the client with what comes of it, further questions included. Reports of progress
and log messages of a call are not sent while it goes on in this way.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

from toolfold import prompts
from toolfold.serve.mcp._parking import TOKEN_PREFIX, Parking
from toolfold.sources.mcp.relay import Caller
from toolfold.store.postgres.replicas import ReplicaGoneError, Replicas
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, is_object

__all__ = ["ParkedCalls"]

_log = logging.getLogger(__name__)

_HEX = 32
_CARRIED = ("inputResponses", "requestState")


class ParkedCalls:
    """The calls that wait at this replica, for the others, and theirs for this one.

    Args:
        parking: The calls that wait here.
        replicas: The replicas.
    """

    def __init__(self, parking: Parking, replicas: Replicas) -> None:
        self._parking = parking
        self._replicas = replicas
        self._continued: dict[str, asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        parking.prefix = f"{TOKEN_PREFIX}{replicas.id.hex}-"
        parking.elsewhere = self._elsewhere
        replicas.on("parked.continue", self._continue)
        replicas.on("parked.give_up", self._give_up)

    def _elsewhere(
        self, token: str, caller: Caller, params: Mapping[str, Json]
    ) -> Awaitable[dict[str, Json]] | None:
        replica = _replica_of(token)
        if replica is None or replica == self._replicas.id:
            return None
        return self._ask(replica, caller, params)

    async def _ask(
        self, replica: uuid.UUID, caller: Caller, params: Mapping[str, Json]
    ) -> dict[str, Json]:
        question = {
            "owner": caller.owner,
            "key": caller.key,
            "capabilities": dict(caller.capabilities),
            "params": {key: params[key] for key in _CARRIED if key in params},
        }
        try:
            # Whoever is not there is told nothing: a client may have made the token up.
            if not await self._replicas.is_there(replica):
                raise ReplicaGoneError("the replica that a call waited at is gone")
            told = await self._replicas.ask(replica, "parked.continue", question)
        except asyncio.CancelledError:
            self._soon(self._tell(replica, params["requestState"]))
            raise
        except ReplicaGoneError:
            raise MCPError(INTERNAL_ERROR, prompts.REPLICA_GONE) from None
        except StoreAwayError as error:
            # Clients read this: where the database is, is none of their business.
            _log.debug("a call that waits at another replica is not taken up: %s", error)
            text = "the call waits at another replica: the database is away, try later"
            raise MCPError(INTERNAL_ERROR, text) from None
        assert is_object(told)
        if "error" in told:
            error = told["error"]
            raise MCPError(error["code"], error["message"], error.get("data"))
        return told["result"]

    async def _tell(self, replica: uuid.UUID, token: str) -> None:
        with suppress(StoreAwayError):
            await self._replicas.tell(replica, "parked.give_up", {"token": token})

    # ---- what the others ask

    async def _continue(self, content: Json) -> Json:
        token = content["params"]["requestState"]
        caller = _RemoteCaller(content["key"], content["owner"], content["capabilities"])
        task = asyncio.current_task()
        assert task is not None
        self._continued[token] = task
        try:
            return {"result": await self._parking.take_up(caller, content["params"])}
        except MCPError as error:
            return {"error": error.error.model_dump(mode="json", exclude_none=True)}
        finally:
            self._continued.pop(token, None)

    async def _give_up(self, content: Json) -> Json:
        task = self._continued.get(content["token"])
        if task is not None:
            task.cancel()
        return None

    def _soon(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _replica_of(token: str) -> uuid.UUID | None:
    named, dash, _ = token.removeprefix(TOKEN_PREFIX).partition("-")
    if not dash or len(named) != _HEX:
        return None
    try:
        return uuid.UUID(hex=named)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _RemoteCaller:
    """A request that came in at another replica."""

    key: str
    owner: str
    capabilities: Mapping[str, Json] = field(default_factory=dict[str, Json])
    is_modern: bool = True
    wants_progress: bool = False
    log_level: str | None = None

    @property
    def origin(self) -> str:
        """Names the client for certain; nobody else takes this call up."""
        return f"{self.key} {id(self)}"

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """This revision has no questions in the middle of a request."""
        raise MCPError(INVALID_REQUEST, "the client cannot be asked")

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Not told."""

    async def log(self, params: Mapping[str, Json]) -> None:
        """Not told."""

    async def close_stream(self) -> None:
        """There is none."""
