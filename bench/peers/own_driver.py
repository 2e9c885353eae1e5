"""One checkout of toolfold, measured on demand: a measure's name on a line, microseconds back.

It must run with older checkouts, too, so it uses what has long been there. What runs in this
process is taken in the processor's time, a gateway's call by the clock.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import toolfold
from toolfold import Settings, fold
from toolfold.runtime import (
    Agent,
    Call,
    Limits,
    ModelMessage,
    Output,
    PendingCall,
    Registry,
    Reply,
    Request,
    TextDelta,
    Usage,
)

_DEMO = Path(toolfold.__file__).parent / "demo"
_ECHO = Path(__file__).resolve().parent / "echo_server.py"
_SETTINGS = Settings(enabled="on", cache_dir="off")
_REPLIES = 20

Measure = Callable[[], Awaitable[float]]


def _records() -> list[dict[str, Any]]:
    lines = (_DEMO / "catalog.jsonl").read_text("utf-8").splitlines()
    return [{"type": "function", "function": _function(json.loads(line))} for line in lines]


def _function(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record[key] for key in ("name", "description", "parameters")}


def _fold(records: list[dict[str, Any]]) -> Measure:
    async def measure() -> float:
        began = time.process_time()
        for _ in range(40):
            fold(records, settings=_SETTINGS)
        return (time.process_time() - began) * 1e6 / 40

    return measure


def _search(records: list[dict[str, Any]]) -> Measure:
    folded = fold(records, settings=_SETTINGS)
    lines = (_DEMO / "queries.jsonl").read_text("utf-8").splitlines()
    queries = [json.loads(line)["query"] for line in lines]

    async def measure() -> float:
        began = time.process_time()
        for query in queries:
            folded.resolve("tool_search", {"query": query})
        return (time.process_time() - began) * 1e6 / len(queries)

    return measure


class _Script:
    name = "scripted"
    shape: Any = "openai-chat"

    def __init__(self) -> None:
        self.left = 0

    async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        if not self.left:
            yield Reply(ModelMessage("Done."), Usage(1, 1))
            return
        self.left -= 1
        # Each call is another: a model that repeats itself is stopped.
        arguments = {"name": "add", "arguments": {"a": self.left, "b": 2}}
        call = Call("tool_call", json.dumps(arguments), f"c{self.left}")
        yield Reply(ModelMessage(calls=(call,)), Usage(1, 1), "calls")


def _agent(records: list[dict[str, Any]]) -> Measure:
    registry = Registry()

    async def unused(call: PendingCall) -> Output:
        return Output("unused")

    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    registry.add_source(records, unused)
    registry.add(add)
    model = _Script()
    agent = Agent(model, registry, settings=_SETTINGS, limits=Limits(turns=_REPLIES + 2))

    async def measure() -> float:
        began = time.process_time()
        for _ in range(5):
            model.left = _REPLIES
            await agent.conversation().ask("Add.")
        return (time.process_time() - began) * 1e6 / _REPLIES / 5

    return measure


@asynccontextmanager
async def _gateway() -> AsyncGenerator[Measure]:
    from mcp import Client

    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        config = Path(folder) / "mcp.json"
        config.write_text(
            json.dumps(
                {
                    "mcpServers": {"s": {"command": sys.executable, "args": [str(_ECHO), "stdio"]}},
                    "serve": {"audit": "off", "state_dir": str(Path(folder) / "state")},
                    "tools": {"tool_search": {"enabled": "on"}},
                }
            ),
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "toolfold", "serve", "--config", str(config)]
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
            [*command, "--http", f"127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await _listens(port)
            async with Client(f"http://127.0.0.1:{port}/mcp", mode="legacy") as client:
                await client.list_tools()

                async def measure() -> float:
                    taken: list[float] = []
                    for n in range(40):
                        arguments = {"name": "s__echo", "arguments": {"mark": f"m{n}"}}
                        began = time.perf_counter()
                        await client.call_tool("tool_call", arguments)
                        taken.append((time.perf_counter() - began) * 1e6)
                    return median(taken)

                yield measure
        finally:
            process.terminate()
            process.wait(15)


async def _listens(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        await asyncio.sleep(0.05)


async def _serve() -> None:
    records = _records()
    async with _gateway() as gateway:
        measures: dict[str, Measure] = {
            "fold, 207 tools, warm": _fold(records),
            "search": _search(records),
            "an agent's call, folded": _agent(records),
            "a gateway's call over HTTP": gateway,
        }
        for measure in measures.values():
            await measure()
        print(json.dumps(list(measures)), flush=True)
        while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print(await measures[name](), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    asyncio.run(_serve())
