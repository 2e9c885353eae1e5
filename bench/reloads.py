"""A reload storm: a change every 100 ms under load, over a gateway process, and what is left of it.

Servers come, go and change, a token is rotated and a profile too, while clients call two of the
servers: `steady`, whose entry never changes, and `turns`, whose entry does. A call carries a mark,
and its server writes each run down, so it is known of every call what came back and how often it
ran. At the end the configuration is what it was at first, and so should be what is held.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx2

from bench.by_hand import asked_once, opened_session
from bench.processes import descendants, descriptors, free_port, resident_mb, started

__all__ = ["reload"]

Row = dict[str, Any]

_SERVER = Path(__file__).resolve().parent / "peers" / "marking_server.py"
_SECONDS = float(os.environ.get("STORM_SECONDS", "60"))
_EVERY = 0.1
_CLIENTS = 8
_PATIENCE = 60.0
_TOKEN, _ADMIN = "clients-" + "1" * 32, "admins-" + "2" * 32
_MORE_DESCRIPTORS = 8
"""How many more may be open at the end: connections that clients keep."""


@dataclass(slots=True)
class _Storm:
    """What came of the calls and of the reloads."""

    results: int = 0
    refused: int = 0
    """Calls of what was just being changed, turned away before they were sent."""
    lost: list[str] = field(default_factory=list[str])
    """Calls without an answer, and calls of `steady` with an error."""
    unclear: list[str] = field(default_factory=list[str])
    """Calls of `turns` that were sent and have no result."""
    succeeded: list[str] = field(default_factory=list[str])
    steady: list[float] = field(default_factory=list[float])
    """Seconds of the calls that no change touches."""
    turns: list[float] = field(default_factory=list[float])
    """Seconds of those whose server is being changed."""
    reloads: list[float] = field(default_factory=list[float])
    broken: list[str] = field(default_factory=list[str])
    """Reloads that were refused."""

    def add(self, mark: str, server: str, answers: list[Any]) -> None:
        """Take down what came back for one call."""
        result: dict[str, Any] = answers[0].get("result") or {} if len(answers) == 1 else {}
        text = json.dumps(answers)[:300]
        if result and not result.get("isError"):
            self.results += 1
            self.succeeded.append(mark)
            if result["content"][0]["text"] != f"{server} {mark}":
                self.lost.append(f"{mark}: crossed: {text}")
        elif server == "steady" or len(answers) != 1:
            self.lost.append(f"{mark}: {text}")
        elif "may have had effects" in text:
            self.unclear.append(f"{mark}: {text}")
        else:
            self.refused += 1


class _State(NamedTuple):
    """What a gateway holds of the system."""

    processes: int
    descriptors: int
    mb: float

    @classmethod
    def of(cls, pid: int) -> _State:
        """Return what it holds now."""
        return cls(descendants(pid), descriptors(pid), resident_mb(pid))


def reload() -> list[Row]:
    """A change every 100 ms for a minute under load: calls lost, and what the gateway holds."""
    with tempfile.TemporaryDirectory() as folder:
        return [asyncio.run(_stormed(Path(folder)))]


async def _stormed(folder: Path) -> Row:
    port = free_port()
    file = folder / "toolfold.json"
    _write(file, 0)
    command = [sys.executable, "-m", "toolfold", "serve", "--config", str(file)]
    with started([*command, "--http", f"127.0.0.1:{port}"], port) as pid:
        url = f"http://127.0.0.1:{port}"
        limits = httpx2.Limits(max_connections=_CLIENTS * 2)
        async with httpx2.AsyncClient(timeout=_PATIENCE, limits=limits, trust_env=False) as http:
            storm, done = _Storm(), asyncio.Event()
            token = {"authorization": f"Bearer {_TOKEN}"}
            sessions = [await opened_session(http, f"{url}/mcp", token) for _ in range(_CLIENTS)]
            await _until_there(http, url, sessions[0])
            await _reloaded(http, url, _Storm())
            before = await _settled(pid, None)
            async with asyncio.TaskGroup() as group:
                for number, headers in enumerate(sessions):
                    group.create_task(_client(http, url, headers, number, done, storm))
                await _change(http, url, file, storm)
                done.set()
            _write(file, 0)
            await _reloaded(http, url, _Storm())
            await _until_there(http, url, sessions[0])
            after = await _settled(pid, before)
    return _row(folder, storm, before, after)


async def _change(http: httpx2.AsyncClient, url: str, file: Path, storm: _Storm) -> None:
    end, number = time.monotonic() + _SECONDS, 0
    while time.monotonic() < end:
        began = time.monotonic()
        number += 1
        _write(file, number)
        await _reloaded(http, url, storm)
        await asyncio.sleep(max(began + _EVERY - time.monotonic(), 0))


async def _reloaded(http: httpx2.AsyncClient, url: str, storm: _Storm) -> None:
    began = time.perf_counter()
    headers = {"authorization": f"Bearer {_ADMIN}"}
    answer = await http.post(f"{url}/admin/reload", json={}, headers=headers)
    storm.reloads.append(time.perf_counter() - began)
    if answer.status_code != 200:
        storm.broken.append(answer.text[:200])


async def _client(
    http: httpx2.AsyncClient,
    url: str,
    headers: dict[str, str],
    number: int,
    done: asyncio.Event,
    storm: _Storm,
) -> None:
    count = 0
    while not done.is_set():
        count += 1
        server = ("steady", "turns")[count % 2]
        mark = f"c{number}-{count}"
        params = {"name": f"{server}__write", "arguments": {"mark": mark, "seconds": 0.002}}
        began = time.perf_counter()
        answers = await asked_once(http, f"{url}/mcp", headers, count, "tools/call", params)
        getattr(storm, server).append(time.perf_counter() - began)
        storm.add(mark, server, answers)


async def _until_there(http: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> None:
    for number in range(600):
        (answer,) = await asked_once(http, f"{url}/mcp", headers, number + 10**6, "tools/list", {})
        text = json.dumps(answer)
        if all(f"Write a mark into {server}" in text for server in ("steady", "turns")):
            return
        await asyncio.sleep(0.1)
    raise SystemExit("the servers do not start")


async def _settled(pid: int, before: _State | None) -> _State:
    """Return what a gateway holds when nothing is on its way out any more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(20):
            while True:
                await asyncio.sleep(1)
                now = _State.of(pid)
                if before is None or (
                    now.processes <= before.processes
                    and now.descriptors <= before.descriptors + _MORE_DESCRIPTORS
                ):
                    return now
    return _State.of(pid)


def _row(folder: Path, storm: _Storm, before: _State, after: _State) -> Row:
    runs = Counter((folder / "runs").read_text(encoding="utf-8").split())
    faults = {
        "lost": storm.lost,
        "unclear": storm.unclear,
        "run twice": [mark for mark, count in runs.items() if count > 1],
        "never run": [mark for mark in storm.succeeded if mark not in runs],
        "reloads refused": storm.broken,
    }
    for kind, marks in faults.items():
        for mark in marks[:3]:
            print(f"note: {kind}: {mark}", file=sys.stderr)
    leaked = (
        after.processes > before.processes
        or after.descriptors > before.descriptors + _MORE_DESCRIPTORS
    )
    steady, turns, reloads = (sorted(each) for each in (storm.steady, storm.turns, storm.reloads))
    return {
        "seconds": round(_SECONDS),
        "reloads": len(reloads),
        "reload p50 ms": round(median(reloads) * 1_000, 1),
        "clients": _CLIENTS,
        "calls": len(steady) + len(turns),
        "results": storm.results,
        "refused at once": storm.refused,
        **{kind: len(marks) for kind, marks in faults.items()},
        "steady p50, p99 ms": _percentiles(steady),
        "turns p50, p99 ms": _percentiles(turns),
        "processes": f"{before.processes}, {after.processes}",
        "descriptors": f"{before.descriptors}, {after.descriptors}",
        "MB": f"{before.mb:.0f}, {after.mb:.0f}",
        "held": "no" if leaked or any(faults.values()) else "yes",
    }


def _percentiles(taken: list[float]) -> str:
    return f"{median(taken) * 1_000:.0f}, {taken[int(0.99 * len(taken))] * 1_000:.0f}"


def _write(file: Path, number: int) -> None:
    """Write a configuration that differs from the last one."""
    own = ["-S", "-E", str(_SERVER)]

    def server(name: str, **env: str) -> dict[str, Any]:
        return {"command": sys.executable, "args": [*own, name, str(file.parent)], "env": env}

    servers = {"steady": server("steady"), "turns": server("turns", N=str(number // 5))}
    if number % 3:
        servers["comes"] = server("comes")
    digests = {"clients": _digest(_TOKEN), f"t{number % 4}": f"{number % 256:02x}" * 32}
    content = {
        "mcpServers": servers,
        "profiles": {"half": {"servers": ["steady"], "deny": ["*x"] if number % 2 else []}},
        "serve": {
            "admin": f"sha256:{_digest(_ADMIN)}",
            "audit": "off",
            "drain": 1 + number % 3,
            "state_dir": str(file.parent / "state"),
            "tokens": [{"name": name, "sha256": digest} for name, digest in digests.items()],
        },
        "tools": {"tool_search": {"enabled": "off"}},
    }
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content), encoding="utf-8")
    new.replace(file)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
