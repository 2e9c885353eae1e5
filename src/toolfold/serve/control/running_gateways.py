"""The gateways that run for this user, asked all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolfold.serve.control.asking import ask, sockets
from toolfold.serve.control.messages import ControlError
from toolfold.serve.control.run_folder import pid_of
from toolfold.tool import Json, is_object

__all__ = ["RunningGateway", "running_gateways"]


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
    places = sockets(states)

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
        report = await ask(place, "status")
    except ControlError as error:
        return None if error.code == "gone" else RunningGateway(pid, error=error.message)
    if not is_object(report):
        return RunningGateway(pid, error="its answer cannot be read")
    return RunningGateway(pid, report)
