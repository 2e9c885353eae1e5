"""Calls under way: progress comes back, and a cancellation really arrives at the server."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clients import INSPECTOR, Target, Way, connected, text
from gateways import configured
from servers import World, everything_entry, tapped
from test_questions import reached
from ways import python_way
from web import open_web

from conftest import run, until

LONG = {"duration": 60, "steps": 600}


def told(log: Path, method: str) -> list[dict[str, Any]]:
    """What the server was sent of one method."""
    if not log.exists():
        return []
    messages = [json.loads(line) for line in log.read_text().splitlines()]
    return [message for message in messages if message.get("method") == method]


@python_way
def test_progress_reports_come_in_order_and_before_the_result(way: Way, tmp_path: Path) -> None:
    made = configured(tmp_path, {"everything": everything_entry()})
    name, arguments = "everything__trigger-long-running-operation", {"duration": 0.5, "steps": 5}

    async def main(target: Target) -> None:
        async with connected(way, target) as client:
            bridged: list[Any] = []
            result = await client.through(name, arguments, progress=bridged)
            arrived = list(bridged)
            direct: list[Any] = []
            await client.call(name, arguments, progress=direct)

        assert text(result).startswith("Long running operation completed")
        assert arrived == bridged == direct == [(i, 5) for i in range(1, 6)]

    with reached(made, way) as target:
        run(lambda: main(target))


def test_progress_of_calls_at_once_is_never_mixed_up(tmp_path: Path) -> None:
    made = configured(tmp_path, {"everything": everything_entry()})
    name = "everything__trigger-long-running-operation"

    async def main(url: str) -> None:
        async def one(way: Way, steps: int) -> None:
            seen: list[Any] = []
            async with connected(way, Target(url=url)) as client:
                await client.through(name, {"duration": 1, "steps": steps}, progress=seen)
            assert seen == [(i, steps) for i in range(1, steps + 1)]

        async with asyncio.TaskGroup() as group:
            for steps in range(3, 9):
                client = ("official", "fastmcp")[steps % 2]
                era = ("old", "new")[steps % 3 % 2]
                group.create_task(one(Way(client, era, "http"), steps))

    with made.listening() as url:
        run(lambda: main(url))


@python_way
def test_a_cancelled_call_is_cancelled_at_the_server(way: Way, tmp_path: Path) -> None:
    log = tmp_path / "given.jsonl"
    made = configured(tmp_path, {"everything": tapped(everything_entry(), log)})

    async def main(target: Target) -> None:
        async with connected(way, target) as client:
            call = asyncio.create_task(
                client.through("everything__trigger-long-running-operation", LONG)
            )
            await until(lambda: told(log, "tools/call"))
            call.cancel()
            await until(lambda: told(log, "notifications/cancelled"))
            echoed = await client.through("everything__echo", {"message": "goes on"})

        [cancelled] = told(log, "notifications/cancelled")
        assert cancelled["params"]["requestId"] == told(log, "tools/call")[0]["id"]
        assert text(echoed) == "Echo: goes on"

    with reached(made, way) as target:
        run(lambda: main(target))


@python_way
def test_a_cancelled_fetch_hangs_up(way: Way, tmp_path: Path) -> None:
    """The effect, not the message: a server of 2026-07-28 drops what it was doing."""
    with open_web() as web:
        made = configured(tmp_path, {"fetch": World(tmp_path, web.url).entries["fetch"]})

        async def main(target: Target) -> None:
            async with connected(way, target) as client:
                url = {"url": f"{web.url}/slow", "raw": True}
                call = asyncio.create_task(client.through("fetch__fetch", url))
                await until(web.waiting.is_set)
                call.cancel()
                await until(web.left.is_set)

        with reached(made, way) as target:
            run(lambda: main(target))


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_an_interrupted_inspector_leaves_no_call_behind(over: str, tmp_path: Path) -> None:
    log = tmp_path / "given.jsonl"
    made = configured(tmp_path, {"everything": tapped(everything_entry(), log)})
    wrapped = {"name": "everything__trigger-long-running-operation", "arguments": LONG}

    async def main(target: Target) -> None:
        process = await asyncio.create_subprocess_exec(
            INSPECTOR, "--cli", "--method", "tools/call", "--tool-name", "tool_call",
            "--tool-args-json", json.dumps(wrapped), "--quiet",
            "--", *(target.command or [target.url]),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await until(lambda: told(log, "tools/call"), 30)
        process.send_signal(signal.SIGINT)
        await process.wait()

    with reached(made, Way("inspector", "old", over)) as target:  # type: ignore[arg-type]
        run(lambda: main(target))
    # The gateway has gone with its client, or was told to; its server with it.
    _gone(str(log))


def _gone(mark: str) -> None:
    def running() -> list[str]:
        lines: list[str] = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
            except OSError:
                continue
        return [line for line in lines if mark in line]

    holds: Callable[[], bool] = lambda: not running()  # noqa: E731
    run(lambda: until(holds))
