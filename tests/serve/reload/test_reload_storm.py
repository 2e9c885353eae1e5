"""A reload storm: changes under load lose no call and leak nothing.

`STORM_SECONDS=60` makes it last for a minute.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from support.gateways import client, run, said, until
from support.reloaded import Reloaded, entry, reloaded

SECONDS = float(os.environ.get("STORM_SECONDS", "6"))
EVERY = 0.1
CLIENTS = 4

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 180)]


def changes(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A configuration that differs from the last: servers come, go and change, settings too."""
    servers = {"steady": entry("steady")}
    if number % 3:
        servers["comes"] = entry("comes")
    servers["turns"] = entry("turns", env={"WHO": "turns:", "N": str(number // 5)})
    tokens = [{"name": f"t{number % 4}", "sha256": f"{number % 256:02x}" * 32}]
    return servers, {"drain": 1 + number % 3, "tokens": tokens}


def processes() -> int:
    """How many processes this one has started that run."""
    own = str(os.getpid())
    found = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            found += words[1] == own and words[0] not in "ZX"
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def load(place: Reloaded, done: asyncio.Event, counts: dict[str, int]) -> None:
    async with client(place.gateway) as c:
        number = 0
        while not done.is_set():
            number += 1
            text = f"{number}"
            # What no change touches is never lost.
            answer = said(await c.call_tool("steady__echo", {"x": text}))
            assert answer == f"steady:{text}", answer
            counts["steady"] += 1
            other = await c.call_tool("turns__echo", {"x": text})
            if other.is_error:
                counts["refused"] += 1
                # Refused before it was sent, with a reason; never lost on the way.
                assert "may have had effects" not in said(other), said(other)
            else:
                counts["turned"] += 1
                assert said(other) == f"turns:{text}"
            await asyncio.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_change_every_tenth_of_a_second_under_load_loses_nothing_and_leaks_nothing(
    tmp_path: Path,
) -> None:
    counts = {"steady": 0, "turned": 0, "refused": 0, "reloads": 0}

    async def main() -> None:
        servers, serve = changes(0)
        async with reloaded(tmp_path, servers, **serve) as place:
            await place.has("steady__echo", "turns__echo")
            async with client(place.gateway) as c:
                steady = said(await c.call_tool("steady__pid", {}))
            before = processes(), descriptors()
            done = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for _ in range(CLIENTS):
                    group.create_task(load(place, done, counts))
                end = time.monotonic() + SECONDS
                number = 0
                while time.monotonic() < end:
                    number += 1
                    servers, serve = changes(number)
                    place.write(servers, **serve)
                    await place.ask("reload")
                    counts["reloads"] += 1
                    await asyncio.sleep(EVERY)
                done.set()
            servers, serve = changes(0)
            place.write(servers, **serve)
            await place.ask("reload")
            await place.has("steady__echo", "turns__echo")
            await until(lambda: len(place.gateway.pool.all) == 2, 30)
            await until(lambda: processes() <= before[0], 30)
            gc.collect()
            await until(lambda: descriptors() <= before[1] + 3, 30)
            async with client(place.gateway) as c:
                assert said(await c.call_tool("steady__pid", {})) == steady
            tasks = [t for t in asyncio.all_tasks() if "leaving" in t.get_name()]
            assert tasks == []

    run(main, SECONDS + 120)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{counts}, peak {peak} MiB")  # noqa: T201
    assert counts["steady"] > 10
    assert counts["reloads"] > 5
