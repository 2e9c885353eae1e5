"""One checkout of toolfold, measured: microseconds at the median, as one JSON object.

It must run with older checkouts, too, so it uses what has long been there.
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
from collections.abc import AsyncIterator, Callable
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
_REPLIES = 20


def _records() -> list[dict[str, Any]]:
    lines = (_DEMO / "catalog.jsonl").read_text("utf-8").splitlines()
    return [{"type": "function", "function": _function(json.loads(line))} for line in lines]


def _function(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record[key] for key in ("name", "description", "parameters")}


def _microseconds(work: Callable[[], object], times: int) -> float:
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1e6)
    return median(taken)


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


def _agent(records: list[dict[str, Any]]) -> float:
    registry = Registry()

    async def unused(call: PendingCall) -> Output:
        return Output("unused")

    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    registry.add_source(records, unused)
    registry.add(add)
    model = _Script()
    settings = Settings(enabled="on", cache_dir="off")
    agent = Agent(model, registry, settings=settings, limits=Limits(turns=_REPLIES + 2))

    async def hold() -> float:
        taken: list[float] = []
        for _ in range(30):
            model.left = _REPLIES
            began = time.perf_counter()
            await agent.conversation().ask("Add.")
            taken.append((time.perf_counter() - began) * 1e6 / _REPLIES)
        return median(taken[5:])

    return asyncio.run(hold())


async def _gateway() -> float:
    from mcp import Client

    with tempfile.TemporaryDirectory() as folder:
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
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        address = f"127.0.0.1:{port}"
        command = [sys.executable, "-m", "toolfold", "serve", "--config", str(config)]
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
            [*command, "--http", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                await asyncio.sleep(0.05)
            async with Client(f"http://{address}/mcp", mode="legacy") as client:
                await client.list_tools()
                taken: list[float] = []
                for n in range(220):
                    arguments = {"name": "s__echo", "arguments": {"mark": f"m{n}"}}
                    began = time.perf_counter()
                    await client.call_tool("tool_call", arguments)
                    taken.append((time.perf_counter() - began) * 1e6)
            return median(taken[20:])
        finally:
            process.terminate()
            process.wait(15)


def main() -> None:
    """Measure, and print one line of JSON."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    records = _records()
    settings = Settings(enabled="on", cache_dir="off")
    folded = fold(records, settings=settings)
    lines = (_DEMO / "queries.jsonl").read_text("utf-8").splitlines()
    queries = [json.loads(line)["query"] for line in lines]
    for query in queries[:20]:
        folded.resolve("tool_search", {"query": query})

    def search() -> None:
        for query in queries:
            folded.resolve("tool_search", {"query": query})

    found = {
        "fold, 207 tools, warm": _microseconds(lambda: fold(records, settings=settings), 300),
        "search": _microseconds(search, 7) / len(queries),
        "an agent's call, folded": _agent(records),
        "a gateway's call over HTTP": asyncio.run(_gateway()),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
