"""The gateways that run for this user, asked all at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolfold.errors import ToolfoldError
from toolfold.serve.control._unix_sockets import connected, own_uid
from toolfold.serve.control.messages import ControlError, Question, read_answer
from toolfold.serve.control.run_folder import (
    RunFolder,
    address_of,
    has_sockets,
    peer_uid,
    pid_of,
    remove,
)
from toolfold.tool import Json, is_object

__all__ = ["RunningGateway", "running_gateways"]

PATIENCE = 3.0
"""How long an answer is waited for, in seconds."""

_ANSWER_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A process that listens on a control socket."""

    pid: int
    report: dict[str, Json] | None = None
    """How it stands; None where it did not say."""

    error: str | None = None
    """Why it did not."""


def running_gateways(states: Iterable[Path]) -> list[RunningGateway]:
    """Return the gateways that run with one of some state folders, the oldest first.

    What killed ones have left there is removed.

    Raises:
        ToolfoldError: The system has no such sockets.
    """
    if not has_sockets():
        raise ToolfoldError(
            "running gateways cannot be asked on this system",
            hint="over HTTP, `/metrics` says how one stands",
        )
    places = [place for state in states for place in RunFolder(state).places()]

    async def ask_all() -> list[RunningGateway | None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_asked(place)) for place in places]
        return [task.result() for task in tasks]

    found = [gateway for gateway in asyncio.run(ask_all()) if gateway is not None]
    return sorted(found, key=lambda g: (str((g.report or {}).get("since", "~")), g.pid))


async def _asked(place: Path) -> RunningGateway | None:
    """Return what listens on a socket; None where nobody does."""
    pid = pid_of(place)
    try:
        async with asyncio.timeout(PATIENCE):
            report = await _answer(place, Question("status"))
    except (ConnectionRefusedError, FileNotFoundError):
        remove(place)
        return None
    except TimeoutError:
        return RunningGateway(pid, error=f"does not answer within {PATIENCE:g} s")
    except ControlError as error:
        return RunningGateway(pid, error=error.message)
    except (OSError, ValueError) as error:
        return RunningGateway(pid, error=f"cannot be asked: {error}")
    if not is_object(report):
        return RunningGateway(pid, error="its answer cannot be read")
    return RunningGateway(pid, report)


async def _answer(place: Path, question: Question) -> Json:
    reader, writer = await connected(address_of(place), _ANSWER_LIMIT)
    try:
        connection: socket.socket = writer.get_extra_info("socket")
        if peer_uid(connection) not in (None, own_uid()):
            raise ControlError("user", "it is another user's")
        writer.write(question.line())
        await writer.drain()
        line = await reader.readline()
        if not line:
            raise ControlError("closed", "closed the connection without an answer")
        return read_answer(line)
    finally:
        writer.close()
