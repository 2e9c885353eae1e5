"""`toolfold serve` as a process over wild servers, in a folder of its own.

All that is started carries a mark in its environment, so that a test can say what is left
of it, children of children included.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.gateways import said

WILD = str(Path(__file__).parent / "wild.py")
WILD_HTTP = str(Path(__file__).parent / "wild_http.py")
SERVE = "from toolfold.cli.serve import command; command.main(prog_name='toolfold serve')"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
SECONDS = 20.0
"""Far more than anything here takes, for machines that do much else."""


class Place:
    """A folder with a configuration, and a mark that all its processes carry."""

    def __init__(self, folder: Path) -> None:
        self.mark = f"CHAOS={uuid.uuid4().hex}"
        self.config = folder / "mcp.json"
        self.runs = folder / "runs"
        self.errors = folder / "stderr"
        self._entries: dict[str, dict[str, Any]] = {}
        self.audit = folder / "audit.jsonl"
        self._serve: dict[str, Any] = {"state_dir": str(folder / "state"), "audit": "off"}
        self.write()

    def write(self) -> None:
        written = {"mcpServers": self._entries, "serve": self._serve}
        self.config.write_text(json.dumps(written), "utf-8")

    def serve(self, **settings: Any) -> Place:
        """Set keys under `serve`."""
        self._serve |= settings
        self.write()
        return self

    def audited(self) -> list[Any]:
        """The lines of the audit, where `serve` names the file."""
        return [json.loads(line) for line in self.audit.read_text("utf-8").splitlines()]

    @property
    def environment(self) -> dict[str, str]:
        key, _, value = self.mark.partition("=")
        return {key: value}

    def add(self, name: str, *flags: str, **more: Any) -> Place:
        """Configure a wild server."""
        env = {"WHO": f"{name}:", "RUNS": str(self.runs), **self.environment}
        args = ["-S", "-E", WILD, *flags]
        self._entries[name] = {"command": sys.executable, "args": args, "env": env, **more}
        self.write()
        return self

    def ran(self) -> Counter[str]:
        """How often each tool ran with each text."""
        return Counter(self.runs.read_text("utf-8").splitlines() if self.runs.exists() else ())

    def left(self) -> dict[int, str]:
        """What runs with the mark: process ids and command lines."""
        found: dict[int, str] = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal() or int(folder.name) == os.getpid():
                continue
            with suppress(OSError):
                marked = self.mark.encode() in (folder / "environ").read_bytes().split(b"\0")
                state = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()[0]
                if marked and state not in "ZX":
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(folder.name)] = line.decode("utf-8", "replace")[:200]
        return found

    @property
    def gateway(self) -> int:
        """The process of the gateway itself."""
        # What it is starting looks like itself for a moment.
        return min(pid for pid, line in self.left().items() if "toolfold.cli.serve" in line)


@contextmanager
def prepared(folder: Path) -> Iterator[Place]:
    """A place, and an end to all that a failed test has left."""
    made = Place(folder)
    yield made
    for pid in made.left():
        os.kill(pid, signal.SIGKILL)


def command(place: Place, *options: str) -> list[str]:
    return [sys.executable, "-c", SERVE, "--config", str(place.config), *options]


@asynccontextmanager
async def serving(place: Place, *options: str, **more: Any) -> AsyncIterator[Client]:
    """The official client with `toolfold serve` as its process; nothing is left of it after."""
    program, *arguments = command(place, *options)
    parameters = StdioServerParameters(
        command=program, args=arguments, env={**os.environ, **place.environment}
    )
    with place.errors.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(parameters, errors), mode="legacy", **more) as client:
            yield client
    assert place.left() == {}


def calling(client: Client) -> Callable[..., Any]:
    """Return what calls a tool through the bridge, or directly where nothing is folded."""

    async def call(name: str, x: str = "", n: int = 0) -> str:
        result = await client.call_tool(name, {"x": x, "n": n})
        return said(result)

    return call


async def echoes(client: Client, server: str, count: int, pause: float = 0) -> list[float]:
    """Call a server again and again, check every answer and return the seconds each took."""
    seconds: list[float] = []
    for i in range(count):
        began = time.perf_counter()
        mark = f"{i}-{uuid.uuid4().hex}"
        assert said(await client.call_tool(f"{server}__echo", {"x": mark})) == f"{server}:{mark}"
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(pause)
    return seconds


async def again_until(call: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Call until what comes back is as it should be."""
    end = time.monotonic() + SECONDS
    while not holds(came := await call()):
        assert time.monotonic() < end, came
        await asyncio.sleep(0.05)
    return came
