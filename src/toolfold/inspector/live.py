"""The gateways and proxies that run now: how they stand, and what their user has them do.

All of it goes over their control sockets, which answer their own user and nobody else. What
changes something is one of a few verbs; whoever decides about trust says what they saw, and
where something else waits by then nothing is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolfold.catalog import Catalog
from toolfold.errors import ToolfoldError
from toolfold.serve.control.asking import ask, sockets
from toolfold.serve.control.messages import ControlError
from toolfold.serve.control.run_folder import pid_of
from toolfold.serve.control.running_gateways import running_gateways
from toolfold.tool import Json, is_array, is_object

__all__ = ["CHANGES", "Live", "NotRunningError", "tools_of_running"]

CHANGES = frozenset(
    {"servers.restart", "servers.enable", "servers.disable", "trust.approve", "trust.reject"}
)
"""The verbs that change something."""

_PATIENCE = 10.0
_UNKNOWN = "unknown_verb"
_TOOLS_A_TIME = 1_000


class NotRunningError(ToolfoldError):
    """No gateway or proxy of that process runs."""


class Live:
    """What runs with one of some state folders.

    Args:
        states: The folders in which gateways and proxies keep their state.
    """

    def __init__(self, states: Sequence[Path] = ()) -> None:
        self._states = tuple(states)

    def view(self) -> dict[str, Any]:
        """Return how each stands, with its last calls.

        Raises:
            ToolfoldError: Running ones cannot be asked on this system.
        """
        found = running_gateways(self._states)
        places = {pid_of(place): place for place in sockets(self._states)}

        async def activities() -> list[Json]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_activity(places.get(each.pid))) for each in found]
            return [task.result() for task in tasks]

        doing = asyncio.run(activities())
        return {
            "running": [
                {**(each.report or {}), "pid": each.pid, "error": each.error, "activity": own}
                for each, own in zip(found, doing, strict=True)
            ]
        }

    def waiting(self, pid: int) -> Json:
        """Return which tools of a gateway wait for a person, and what is different in each.

        Raises:
            ToolfoldError: It does not run, or refuses.
        """
        return self._asked(pid, "trust.pending", {})

    def log(self, pid: int, server: str) -> Json:
        """Return the last lines of a server.

        Raises:
            ToolfoldError: It does not run, or refuses.
        """
        return self._asked(pid, "servers.logs", {"name": server, "lines": 200})

    def change(self, pid: int, verb: str, arguments: Mapping[str, Json]) -> Json:
        """Have a gateway do something; return what it says.

        Raises:
            ToolfoldError: It does not run, or refuses.
        """
        if verb not in CHANGES:
            raise ControlError(_UNKNOWN, f"the page may not ask for {verb!r}")
        return self._asked(pid, verb, arguments)

    def _asked(self, pid: int, verb: str, arguments: Mapping[str, Json]) -> Json:
        place = next((p for p in sockets(self._states) if pid_of(p) == pid), None)
        if place is None:
            raise NotRunningError(f"no gateway with the number {pid} runs")
        return asyncio.run(ask(place, verb, arguments, patience=_PATIENCE))


def tools_of_running(states: Sequence[Path]) -> tuple[Catalog, str]:
    """Return the tools that the running gateway has now, and what to call it.

    Raises:
        NotRunningError: None runs, or several do.
        ToolfoldError: It cannot be asked.
    """
    running = [each for each in running_gateways(states) if each.report is not None]
    gateways = [each for each in running if (each.report or {}).get("transport") != "proxy"]
    if len(gateways) != 1:
        if gateways:
            hint = "name its configuration with --config"
            raise NotRunningError("several gateways run", hint=hint)
        raise NotRunningError("no gateway of yours runs", hint="start one with `toolfold serve`")
    pid = gateways[0].pid
    place = next(place for place in sockets(states) if pid_of(place) == pid)
    return Catalog.read(asyncio.run(_tools(place))), f"gateway {pid}"


async def _tools(place: Path) -> list[Json]:
    found: list[Json] = []
    while True:
        page = await ask(
            place, "tools", {"offset": len(found), "limit": _TOOLS_A_TIME}, patience=_PATIENCE
        )
        tools = page.get("tools") if is_object(page) else None
        if not is_array(tools) or not tools:
            return found
        found += tools


async def _activity(place: Path | None) -> Json:
    """Return what happens at a gateway; None where it does not tell, as a proxy does not."""
    if place is None:
        return None
    try:
        return await ask(place, "activity", {"limit": 50})
    except ControlError:
        return None
