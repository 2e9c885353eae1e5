"""Fifty clients over HTTP while servers are killed at random: no call lost, crossed or run twice.

Clients speak the protocol by hand, so that every message that comes back is seen and no library
tries anything again. A call carries a mark; its server writes each run down under that mark
before it answers. So afterwards it is known of every call what came back, and how often it ran.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from bench.by_hand import asked_once, opened_session
from bench.processes import free_port, resident_mb, started

__all__ = ["chaos"]

Row = dict[str, Any]

_SERVER = Path(__file__).resolve().parent / "peers" / "marking_server.py"
_SERVERS = tuple(f"server{n}" for n in range(8))
_CLIENTS = 50
_CALLS = 30_000
_KILL_EVERY = 2.5
"""Seconds between two kills, in the mean."""

_PATIENCE = 120.0
"""Seconds after which a call counts as lost."""


@dataclass(slots=True)
class _Account:
    """What came of the calls."""

    results: int = 0
    errors: int = 0
    lost: list[str] = field(default_factory=list[str])
    """Calls that got no answer, or more than one."""
    crossed: list[str] = field(default_factory=list[str])
    """Results that belong to another call or server."""
    unclear: list[str] = field(default_factory=list[str])
    """Errors that do not name the server."""
    taken: list[float] = field(default_factory=list[float])
    succeeded: set[str] = field(default_factory=set[str])

    def add(self, mark: str, server: str, answers: list[Any], seconds: float) -> None:
        """Take down what came back for one call."""
        self.taken.append(seconds)
        if len(answers) != 1:
            self.lost.append(f"{mark}: {len(answers)} answers")
            return
        result: dict[str, Any] = answers[0].get("result") or {"isError": True}
        text = json.dumps(answers[0])
        if not result.get("isError"):
            self.results += 1
            self.succeeded.add(mark)
            if result["content"][0]["text"] != f"{server} {mark}":
                self.crossed.append(f"{mark}: {text[:200]}")
            return
        self.errors += 1
        if server not in text:
            self.unclear.append(f"{mark}: {text[:200]}")


def chaos() -> list[Row]:
    """Fifty clients, 30,000 calls, servers killed at random: what became of every call."""
    with tempfile.TemporaryDirectory() as folder:
        return [asyncio.run(_chaos(Path(folder)))]


async def _chaos(folder: Path) -> Row:
    port = free_port()
    command = [sys.executable, "-m", "toolfold", "serve", "--config", str(_config(folder))]
    with started([*command, "--http", f"127.0.0.1:{port}"], port) as pid:
        url = f"http://127.0.0.1:{port}/mcp"
        limits = httpx2.Limits(max_connections=_CLIENTS * 2)
        async with httpx2.AsyncClient(timeout=_PATIENCE, limits=limits, trust_env=False) as http:
            await _until_all_are_there(http, url)
            account = _Account()
            before = resident_mb(pid)
            killing = asyncio.create_task(_kill(folder))
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for number in range(_CLIENTS):
                    group.create_task(_client(http, url, number, account))
            seconds = time.perf_counter() - began
            killing.cancel()
            after = resident_mb(pid)
            kills = await killing
    return _row(folder, account, kills, seconds, (before, after))


def _row(
    folder: Path, account: _Account, kills: int, seconds: float, mb: tuple[float, float]
) -> Row:
    runs = Counter((folder / "runs").read_text(encoding="utf-8").split())
    twice = [mark for mark, count in runs.items() if count > 1]
    never = [mark for mark in account.succeeded if mark not in runs]
    faults = {
        "lost": account.lost,
        "crossed": account.crossed,
        "unclear": account.unclear,
        "run twice": twice,
        "never run": never,
    }
    for kind, marks in faults.items():
        for mark in marks[:3]:
            print(f"note: {kind}: {mark}", file=sys.stderr)
    taken = sorted(account.taken)
    return {
        "clients": _CLIENTS,
        "calls": _CALLS,
        "kills": kills,
        "results": account.results,
        "errors that name the server": account.errors - len(account.unclear),
        **{kind: len(marks) for kind, marks in faults.items()},
        "p50 ms": round(median(taken) * 1_000, 1),
        "p99 ms": round(taken[int(0.99 * len(taken))] * 1_000, 1),
        "calls/s": round(_CALLS / seconds),
        "MB before, after": f"{mb[0]:.0f}, {mb[1]:.0f}",
        "held": "no" if any(faults.values()) or len(taken) != _CALLS else "yes",
    }


async def _client(http: httpx2.AsyncClient, url: str, number: int, account: _Account) -> None:
    chance = random.Random(number)
    headers = await opened_session(http, url)
    for n in range(_CALLS // _CLIENTS):
        mark, server = f"c{number}-{n}", chance.choice(_SERVERS)
        arguments = {"mark": mark, "seconds": round(chance.uniform(0, 0.02), 4)}
        call = {"name": f"{server}__write", "arguments": arguments}
        params = {"name": "tool_call", "arguments": call}
        began = time.perf_counter()
        answers = await asked_once(http, url, headers, n + 1, "tools/call", params)
        account.add(mark, server, answers, time.perf_counter() - began)


async def _until_all_are_there(http: httpx2.AsyncClient, url: str) -> None:
    headers = await opened_session(http, url)
    params = {"name": "tool_describe", "arguments": {"names": [f"{s}__write" for s in _SERVERS]}}
    for n in range(1, 600):
        (answer,) = await asked_once(http, url, headers, n, "tools/call", params)
        text = json.dumps(answer)
        if all(f"Write a mark into {server}" in text for server in _SERVERS):
            return
        await asyncio.sleep(0.1)
    raise SystemExit("the servers do not start")


async def _kill(folder: Path) -> int:
    """Kill a server now and then until cancelled; return how many died."""
    chance = random.Random("kill")
    died: set[int] = set()
    try:
        while True:
            await asyncio.sleep(chance.expovariate(1 / _KILL_EVERY))
            pid = int((folder / f"{chance.choice(_SERVERS)}.pid").read_text(encoding="ascii"))
            if pid not in died:
                os.kill(pid, signal.SIGKILL)
                died.add(pid)
    except asyncio.CancelledError:
        return len(died)


def _config(folder: Path) -> Path:
    own = ["-S", "-E", str(_SERVER)]
    servers = {
        name: {"command": sys.executable, "args": [*own, name, str(folder)]} for name in _SERVERS
    }
    content = {
        "mcpServers": servers,
        "serve": {"audit": "off", "state_dir": str(folder / "state")},
        "tools": {"tool_search": {"enabled": "on"}},
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
