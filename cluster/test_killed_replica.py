"""Replicas as processes: one is killed in the middle of a conversation, or told to stop."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from cluster.roaming import Raw, Told, events
from support.gateways import run, until
from toolfold import prompts

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

SERVE = "from toolfold.cli import main; main()"
TOOLS = """
import asyncio
import os
from pathlib import Path

from toolfold.runtime import Registry

HERE = Path(__file__).parent
registry = Registry()


@registry.tool
async def carry(parcel: str) -> str:
    "Carry a parcel, which takes a while."
    with open(HERE / "ran", "a") as file:
        file.write(f"{parcel} {os.getpid()}\\n")
    while not (HERE / f"may end {parcel}").exists():
        await asyncio.sleep(0.02)
    return f"carried {parcel}"


@registry.tool
def send(parcel: str) -> str:
    "Send a parcel."
    with open(HERE / "ran", "a") as file:
        file.write(f"{parcel} {os.getpid()}\\n")
    return f"sent {parcel}"
"""


class Process(NamedTuple):
    """A replica."""

    url: str
    process: subprocess.Popen[bytes]


@asynccontextmanager
async def serving(folder: Path, address: str, name: str) -> AsyncGenerator[Process]:
    """Start a replica, and kill it in the end."""
    (folder / "tools.py").write_text(TOOLS)
    config, errors = folder / "toolfold.json", folder / f"{name}.log"
    whole = {
        "mcpServers": {},
        "functions": {"own": "./tools.py"},
        "serve": {"store": address, "state_dir": str(folder / name), "audit": "off"},
        "tools": {"tool_search": {"cache_dir": "off"}},
    }
    config.write_text(json.dumps(whole))
    command = [sys.executable, "-c", SERVE, "serve", "--config", str(config)]
    with errors.open("w") as log:
        process = subprocess.Popen(  # noqa: ASYNC220
            [*command, "--http", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=log
        )
    try:
        listening = re.compile(r"listening on (http://\S+)/mcp")
        await until(lambda: process.poll() is not None or listening.search(errors.read_text()), 40)
        found = listening.search(errors.read_text())
        assert found, errors.read_text()
        yield Process(found[1], process)
    finally:
        process.kill()
        process.wait()


def text(message: Any) -> str:
    """The text of a result."""
    return message["result"]["content"][0]["text"]


def test_a_session_outlives_its_replica_and_no_call_runs_twice(
    address: str, tmp_path: Path
) -> None:
    async def main() -> None:
        ran = tmp_path / "ran"
        async with (
            serving(tmp_path, address, "a") as a,
            serving(tmp_path, address, "b") as b,
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            assert text(await raw.call(a.url, "own__send", 1, parcel="one")) == "sent one"
            params = {"name": "own__carry", "arguments": {"parcel": "two"}}
            call = {"id": 2, "method": "tools/call", "params": params}
            async with raw.stream(a.url, "POST", **call) as response:
                told = Told(response)
                last = await told.event()
                await until(lambda: "two" in ran.read_text(), 10)
                a.process.send_signal(signal.SIGKILL)
                with pytest.raises(httpx2.HTTPError):
                    await told.event()

            # The session goes on, what had ended is known, and what had not is not run again.
            assert text(await raw.call(b.url, "own__send", 1, parcel="one")) == "sent one"
            assert (
                text(await raw.call(b.url, "own__carry", 2, parcel="two")) == prompts.REPLICA_GONE
            )
            async with raw.stream(b.url, "GET", last) as response:
                (message,) = events((await response.aread()).decode())
            assert message["id"] == 2
            assert text(message) == prompts.REPLICA_GONE
            assert text(await raw.call(b.url, "own__send", 3, parcel="three")) == "sent three"
            parcels = [line.split()[0] for line in ran.read_text().splitlines()]
            assert parcels == ["one", "two", "three"]

    run(main, 100)


def test_a_replica_that_stops_has_its_clients_go_on_elsewhere(address: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            serving(tmp_path, address, "a") as a,
            serving(tmp_path, address, "b") as b,
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            calling = asyncio.create_task(raw.call(a.url, "own__carry", 1, parcel="p"))
            await until(lambda: (tmp_path / "ran").exists(), 10)
            async with raw.stream(a.url, "GET") as listening:
                os.kill(a.process.pid, signal.SIGTERM)
                await listening.aread()  # it ends, though the call has not
            assert not calling.done()
            assert (await http.get(f"{a.url}/readyz")).status_code == 503
            # What is asked there now is to be asked elsewhere, and has not begun.
            refused = await raw.post(a.url, method="tools/list", id=2)
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
            async with raw.stream(b.url, "GET") as listening:
                assert listening.status_code == 200
                assert text(await raw.call(b.url, "own__send", 3, parcel="q")) == "sent q"
            (tmp_path / "may end p").touch()
            assert text(await calling) == "carried p"

    run(main, 100)
