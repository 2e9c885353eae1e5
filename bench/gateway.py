"""What the gateway costs a call, beside FastMCP's proxy, and what it stands.

Client, gateway and server are processes of their own on this machine; the server is the
same for all, and so is the client. `load` is fifty clients at once: every call carries a
mark of its own and must come back with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.peers import PeerUnavailableError, clean_environment, install
from bench.processes import free_port, resident_mb, started

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
    port = free_port()
    with started([python, echo, "http", str(port)], port):
        url = f"http://127.0.0.1:{port}/mcp"
        upstreams: dict[str, Any] = {"pipes": [python, echo, "stdio"], "HTTP": url}
        rows.append({"what": "the server itself, HTTP", **await _timed(url, "echo")})
        for kind, upstream in upstreams.items():
            with _ours(folder, upstream, folded=False) as (url, _):
                row = {"what": f"toolfold, server over {kind}, tool by name"}
                rows.append({**row, **await _timed(url, "s__echo")})
            with _ours(folder, upstream) as (url, _):
                row = {"what": f"toolfold, server over {kind}, tool_call"}
                rows.append({**row, **await _timed(url, "tool_call", "s__echo")})
            rows.append(await _peer(upstream, kind))
        with _ours(folder, upstreams["pipes"]) as (url, pid):
            rows.append(await _load(url, pid))
    rows.append(_first_answer(folder))
    return rows


async def _peer(upstream: Any, kind: str) -> Row:
    what = f"FastMCP's proxy with BM25, server over {kind}, call_tool"
    try:
        python = install("fastmcp")
    except PeerUnavailableError as error:
        return {"what": what, "note": str(error)}
    command = [upstream] if isinstance(upstream, str) else upstream
    port = free_port()
    driver = str(_PEERS / "fastmcp_gateway.py")
    with started([str(python), driver, str(port), *command], port):
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


async def _load(url: str, pid: int) -> Row:
    """Fifty clients, ten thousand calls: none lost, none crossed, and what it costs in memory."""
    from mcp import Client

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
    before = resident_mb(pid)
    wrong = answered = 0
    seconds = await all_at_once()
    return {
        "what": f"toolfold, {_CLIENTS} clients, {_LOAD:,} calls",
        "answered": answered,
        "wrong": wrong,
        "calls_per_second": round(_LOAD / seconds),
        "MB_before": before,
        "MB_after": resident_mb(pid),
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
def _ours(folder: Path, upstream: Any, *, folded: bool = True) -> Generator[tuple[str, int]]:
    """Serve one server through `toolfold serve --http`; yield its address and its process."""
    server = {"url": upstream} if isinstance(upstream, str) else _command(upstream)
    config = _config(folder, {"s": server}, folded=folded)
    port = free_port()
    with started([*_SERVE, "--config", str(config), "--http", f"127.0.0.1:{port}"], port) as pid:
        yield f"http://127.0.0.1:{port}/mcp", pid


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
