"""`toolfold.serve.replica.watchdog`: a process ends in time, whatever becomes of ours."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from toolfold.serve.replica.watchdog import Watchdog
from toolfold.sources.mcp.server import Server
from toolfold.sources.mcp.transports._process import Child, StartError, start
from toolfold.store.postgres.leases import now

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="there are no groups of processes"),
]

LIVES = "import time; print('here', flush=True); time.sleep(60)"


@asynccontextmanager
async def watched(code: str, seconds: float) -> AsyncGenerator[tuple[Child, Watchdog]]:
    watchdog = Watchdog(now() + seconds)
    server = Server("s", command=sys.executable, args=("-I", "-S", "-c", code))
    child = await start(server, through=watchdog.command, descriptors=watchdog.descriptors)
    watchdog.started()
    try:
        async with asyncio.timeout(20):
            yield child, watchdog
    finally:
        watchdog.close()
        await child.end()


async def printed(child: Child) -> bytes:
    assert child.process.stdout is not None
    return await child.process.stdout.readline()


def test_a_process_is_killed_when_its_time_has_come() -> None:
    async def main() -> None:
        began = now()
        async with watched(LIVES, 0.7) as (child, _):
            assert await printed(child) == b"here\n"
            await child.left()
            assert await child.outcome() == "killed by SIGKILL"
            assert now() - began > 0.7

    asyncio.run(main())


def test_a_process_lives_on_while_it_is_told_of_a_later_time() -> None:
    async def main() -> None:
        async with watched(LIVES, 0.7) as (child, watchdog):
            began = now()
            watchdog.extend(began + 1.2)
            watchdog.extend(began + 0.1)  # an earlier time takes nothing back
            assert await printed(child) == b"here\n"
            await child.left()
            assert now() - began > 1.2

    asyncio.run(main())


def test_a_process_is_killed_with_whoever_should_have_told_it() -> None:
    async def main() -> None:
        async with watched(LIVES, 60) as (child, watchdog):
            assert await printed(child) == b"here\n"
            watchdog.close()
            await child.left()
            assert await child.outcome() == "killed by SIGKILL"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("import sys; sys.stdout.write(sys.stdin.readline()); sys.exit(3)", "ended with 3"),
        ("import os; print(input(), flush=True); os.kill(os.getpid(), 15)", "killed by SIGTERM"),
    ],
)
def test_input_output_and_outcome_are_the_process_own(code: str, outcome: str) -> None:
    async def main() -> None:
        async with watched(code, 60) as (child, _):
            assert child.process.stdin is not None
            child.process.stdin.write(b"hello\n")
            assert await printed(child) == b"hello\n"
            assert await printed(child) == b""  # nobody else holds its output
            await child.left()
            assert await child.outcome() == outcome

    asyncio.run(main())


def test_a_command_that_is_not_there_is_said_as_ever() -> None:
    async def main() -> None:
        server = Server("s", command="no-such-program")
        with pytest.raises(StartError, match="'no-such-program' is not there"):
            await start(server, through=(sys.executable,))

    asyncio.run(main())
