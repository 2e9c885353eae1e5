"""What the gateway costs a call, beside FastMCP's proxy, and what it stands.

Client, gateway and server are processes of their own on this machine; the server is the
same for all, and so is the client. `load` is fifty clients at once: every call carries a
mark of its own and must come back with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.peers import PeerUnavailableError, clean_environment, install

__all__ = ["gateway"]

Row = dict[str, Any]

_PEERS = Path(__file__).resolve().parent / "peers"
_CALLS = 200
_CLIENTS = 50
_LOAD = 10_000
_SERVE = (sys.executable, "-m", "toolfold", "serve")


def gateway() -> list[Row]:
    """Milliseconds a call through a gateway over HTTP, and fifty clients at once."""
    warnings.simplefilter("ignore")
    # The client notes with every call that a folded tool is not listed, which it is not.
    logging.getLogger("client").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_gateway(Path(folder)))


async def _gateway(folder: Path) -> list[Row]:
    python = sys.executable
    echo = str(_PEERS / "echo_server.py")
    rows: list[Row] = []
    port = _port()
    with _started([python, echo, "http", str(port)], port):
        url = f"http://127.0.0.1:{port}/mcp"
        upstreams: dict[str, Any] = {"pipes": [python, echo, "stdio"], "HTTP": url}
        rows.append({"what": "the server itself, HTTP", **await _timed(url, "echo")})
        for kind, upstream in upstreams.items():
            with _ours(folder, upstream, folded=False) as url:
                row = {"what": f"toolfold, server over {kind}, tool by name"}
                rows.append({**row, **await _timed(url, "s__echo")})
            with _ours(folder, upstream) as url:
                row = {"what": f"toolfold, server over {kind}, tool_call"}
                rows.append({**row, **await _timed(url, "tool_call", "s__echo")})
            rows.append(await _peer(upstream, kind))
        with _ours(folder, upstreams["pipes"]) as url:
            rows.append(await _load(url))
    rows.append(_first_answer(folder))
    return rows


async def _peer(upstream: Any, kind: str) -> Row:
    what = f"FastMCP's proxy with BM25, server over {kind}, call_tool"
    try:
        python = install("fastmcp")
    except PeerUnavailableError as error:
        return {"what": what, "note": str(error)}
    command = [upstream] if isinstance(upstream, str) else upstream
    port = _port()
    driver = str(_PEERS / "fastmcp_gateway.py")
    with _started([str(python), driver, str(port), *command], port):
        return {"what": what, **await _timed(f"http://127.0.0.1:{port}/mcp", "call_tool", "echo")}


async def _timed(url: str, name: str, inner: str | None = None) -> Row:
    """Call a tool again and again, by its name or through a bridge."""
    from mcp import Client

    async with Client(url, mode="legacy") as client:
        await client.list_tools()
        taken: list[float] = []
        for n in range(-20, _CALLS):
            arguments: dict[str, Any] = {"mark": f"m{n}"}
            if inner:
                arguments = {"name": inner, "arguments": arguments}
            began = time.perf_counter()
            result = await client.call_tool(name, arguments)
            taken.append((time.perf_counter() - began) * 1_000)
            assert f"m{n}" in str(result.content), result
    taken = sorted(taken[20:])
    return {"ms_p50": round(median(taken), 2), "ms_p95": round(taken[int(0.95 * _CALLS)], 2)}


async def _load(url: str) -> Row:
    """Fifty clients, ten thousand calls: none lost, none crossed, and what it costs in memory."""
    from mcp import Client

    pid = _gateway_pid(url)
    wrong = answered = 0

    async def one(number: int) -> None:
        nonlocal wrong, answered
        async with Client(url, mode="legacy") as client:
            for n in range(_LOAD // _CLIENTS):
                mark = f"c{number}-{n}"
                arguments = {"name": "s__echo", "arguments": {"mark": mark}}
                result = await client.call_tool("tool_call", arguments)
                answered += 1
                wrong += result.content[0].text != mark  # type: ignore[union-attr]

    async def all_at_once() -> float:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(_CLIENTS):
                group.create_task(one(number))
        return time.perf_counter() - began

    await all_at_once()
    before = _megabytes(pid)
    wrong = answered = 0
    seconds = await all_at_once()
    return {
        "what": f"toolfold, {_CLIENTS} clients, {_LOAD:,} calls",
        "answered": answered,
        "wrong": wrong,
        "calls_per_second": round(_LOAD / seconds),
        "MB_before": before,
        "MB_after": _megabytes(pid),
    }


def _first_answer(folder: Path) -> Row:
    """Start the gateway over its pipes, with one server that is dead and one that hangs."""
    dead = {"command": "no-such-program"}
    hangs = _command([sys.executable, "-c", "import time; time.sleep(60)"])
    config = _config(folder, {"dead": dead, "hangs": hangs}, folded=True)
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        },
    }
    taken: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        with subprocess.Popen(
            [*_SERVE, "--config", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(hello).encode() + b"\n")
            process.stdin.flush()
            assert b'"result"' in process.stdout.readline()
            taken.append((time.perf_counter() - began) * 1_000)
            process.stdin.close()
            process.wait(15)
    what = "toolfold over pipes, a dead server: process start to initialize"
    return {"what": what, "ms_p50": round(median(taken), 1), "ms_p95": round(max(taken), 1)}


@contextmanager
def _ours(folder: Path, upstream: Any, *, folded: bool = True) -> Iterator[str]:
    """Serve one server through `toolfold serve --http`; yield its address."""
    server = {"url": upstream} if isinstance(upstream, str) else _command(upstream)
    config = _config(folder, {"s": server}, folded=folded)
    port = _port()
    with _started([*_SERVE, "--config", str(config), "--http", f"127.0.0.1:{port}"], port):
        yield f"http://127.0.0.1:{port}/mcp"


def _config(folder: Path, servers: dict[str, Any], *, folded: bool) -> Path:
    content = {
        "mcpServers": servers,
        "serve": {"audit": "off", "state_dir": str(folder / "state")},
        "tools": {"tool_search": {"enabled": "on" if folded else "off"}},
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _command(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


@contextmanager
def _started(command: Sequence[str], port: int) -> Iterator[None]:
    """Run a server until it is no longer needed."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    )
    try:
        while not _listens(port):
            if process.poll() is not None or time.perf_counter() - began > 60:
                raise SystemExit(f"{' '.join(command[:3])} does not start")
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        process.wait(15)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _gateway_pid(url: str) -> int:
    """Return the process that serves an address: the one whose command line names its port."""
    port = url.rsplit(":", 1)[1].partition("/")[0]
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        words = entry.read_bytes().split(b"\0")
        if b"serve" in words and f"127.0.0.1:{port}".encode() in words:
            return int(entry.parent.name)
    return os.getpid()


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1_024, 1)
