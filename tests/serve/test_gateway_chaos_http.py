"""Servers over HTTP that die, come back, forget sessions or answer nonsense."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from support.gateways import gateway, run, until
from support.servers.place import (
    SECONDS,
    WILD_HTTP,
    Place,
    again_until,
    calling,
    echoes,
    prepared,
    serving,
)
from toolfold.sources.mcp import lifecycle
from toolfold.sources.mcp.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


def start_http(place: Place, port: int, *flags: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", WILD_HTTP, str(port), *flags],
        env={**os.environ, **place.environment, "WHO": "far:", "RUNS": str(place.runs)},
    )
    end = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize("flag", ["plain", "typescript", "typescript-new"])
def test_a_server_over_http_that_was_restarted_runs_the_next_call_once(
    place: Place, flag: str
) -> None:
    port = free_port()
    place.add("far", command=None, args=None, url=f"http://127.0.0.1:{port}/mcp")
    process = start_http(place, port, flag)

    async def main() -> None:
        nonlocal process
        async with serving(place) as c:
            assert await calling(c)("far__write", "a") == "far:a"
            process.kill()
            process.wait()
            process = start_http(place, port, flag)
            # The session is not known to it, so nothing has run.
            assert await calling(c)("far__write", "b") == "far:b"
            assert place.ran() == {"write a": 1, "write b": 1}
            process.kill()
            process.wait()

    try:
        run(main)
    finally:
        process.kill()
        process.wait()


def test_a_server_over_http_dies_in_mid_call_and_is_found_again(place: Place) -> None:
    port = free_port()
    place.add("far", command=None, args=None, url=f"http://127.0.0.1:{port}/mcp").add("near")
    process = start_http(place, port)

    async def main() -> None:
        nonlocal process
        async with serving(place) as c:
            call = calling(c)
            assert await call("far__write", "a") == "far:a"
            async with asyncio.TaskGroup() as group:
                hung = group.create_task(call("far__hang", "h"))
                await until(lambda: place.ran()["hang h"] == 1, SECONDS)
                process.kill()
                process.wait()
                await echoes(c, "near", 10)
            ran = place.ran()
            assert hung.result().startswith("far__hang failed: the server 'far' died over it.")
            assert "failed" in await call("far__write", "b")
            process = start_http(place, port)
            await again_until(lambda: call("far__write", "c"), lambda said: said == "far:c")
            assert place.ran() - ran == {"write c": 1}
            process.kill()
            process.wait()

    try:
        run(main)
    finally:
        process.kill()
        process.wait()


def test_what_may_be_repeated_is_when_a_server_over_http_is_there_again(place: Place) -> None:
    port = free_port()
    place.add("far", command=None, args=None, url=f"http://127.0.0.1:{port}/mcp")
    process = start_http(place, port)

    async def main() -> None:
        nonlocal process
        async with serving(place) as c:
            again = asyncio.create_task(calling(c)("far__read", "a", 1))
            await until(lambda: place.ran()["read a"] == 1, SECONDS)
            process.wait()
            process = start_http(place, port)
            assert await again == "far:a"
            assert place.ran()["read a"] == 2
            process.kill()
            process.wait()

    try:
        run(main)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("flag", ["rubbish", "broken"])
def test_a_server_over_http_that_answers_nonsense_fails_its_call_alone(
    place: Place, flag: str
) -> None:
    port = free_port()
    entry = {"command": None, "args": None, "url": f"http://127.0.0.1:{port}/mcp"}
    place.add("far", **entry, call_timeout=3).add("near")
    process = start_http(place, port, flag)

    async def main() -> None:
        async with serving(place) as c:
            await c.list_tools()

            async def fails() -> None:
                with suppress(MCPError):
                    assert (await c.call_tool("far__write", {"x": "a"})).is_error

            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                group.create_task(echoes(c, "near", 10))
            assert place.ran()["write a"] == 0
            process.kill()
            process.wait()

    try:
        run(main)
    finally:
        process.kill()
        process.wait()


def test_a_server_that_never_answers_a_goodbye_does_not_keep_the_gateway_from_ending(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "PARTING", 0.2)
    port = free_port()
    process = start_http(place, port, "mute")

    async def main() -> None:
        async with gateway(
            Server("far", transport="http", url=f"http://127.0.0.1:{port}/mcp")
        ) as made:
            await until(lambda: made.pool.upstreams["far"].state == "ready", SECONDS)
        assert made.pool.upstreams["far"].state == "stopped"

    try:
        run(main)
    finally:
        process.kill()
        process.wait()
