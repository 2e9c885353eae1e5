"""What the model-API proxy costs a request, beside a plain one and LiteLLM's, and what it stands.

Client, proxy and model server are processes of their own on this machine; the model server
answers at once, so that what is left is the proxy's. `added` is the difference of the medians
to the server itself, in the same run, the ways taken in turn.

    python -m bench proxy
    BENCH_REQUESTS=10000 python -m bench proxy    # the memory of ten thousand
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import data
from bench.peers.peers import PeerUnavailableError, install
from bench.processes import free_port, resident_mb, started

__all__ = ["proxy"]

Row = dict[str, Any]

_PEERS = Path(__file__).resolve().parent / "peers"
_ROUNDS = 100
_STREAMS = 200
_REQUESTS = int(os.environ.get("BENCH_REQUESTS", "2000"))
_AT_ONCE = 20
_FLAT = 5.0
_PATIENCE = 60
_KEY = f"sk-{secrets.token_hex(32)}"
"""What LiteLLM is started with: it wants a key of its own. The others pass it on."""


class Timed(NamedTuple):
    """One request: seconds to the first byte and to the end, and what came."""

    first: float
    whole: float
    body: bytes


def proxy() -> list[Row]:
    """Milliseconds that a proxy adds, 200 streams at once, memory, and a server that is killed."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_proxy(Path(folder)))


async def _proxy(folder: Path) -> list[Row]:
    with ExitStack() as stack:
        upstream = free_port()
        stack.enter_context(
            started([sys.executable, _peer("model_upstream"), str(upstream)], upstream)
        )
        ours, pid = stack.enter_context(_ours(folder, upstream))
        plain = free_port()
        address = f"http://127.0.0.1:{upstream}"
        stack.enter_context(
            started([sys.executable, _peer("plain_proxy"), str(plain), address], plain)
        )
        few, many = _body(3), _body(226)
        ways: dict[str, tuple[int, bytes]] = {
            "the server itself, 3 tools": (upstream, few),
            "the server itself, 226 tools": (upstream, many),
            "a plain proxy, 3 tools": (plain, few),
            "a plain proxy, 226 tools": (plain, many),
            "toolfold, 3 tools (passed)": (ours, few),
            "toolfold, 226 tools (folded)": (ours, many),
        }
        try:
            other = stack.enter_context(_litellm(folder, upstream))
            ways["LiteLLM, 3 tools"] = (other, few)
            ways["LiteLLM, 226 tools"] = (other, many)
        except (PeerUnavailableError, SystemExit) as error:
            print(f"note: {error}", file=sys.stderr)
        rows = await _added(ways)
        rows += [await _streams(name, ways[name][0]) for name in _one_each(ways)]
        rows.append(await _memory(ours, pid))
    rows.append(await _killed(folder))
    return rows


def _one_each(ways: dict[str, tuple[int, bytes]]) -> list[str]:
    return [name for name in ways if ", 3 tools" in name]


async def _added(ways: dict[str, tuple[int, bytes]]) -> list[Row]:
    """Ask each way in turn, so that what else the machine does is shared by all."""
    times: dict[str, list[Timed]] = {name: [] for name in ways}
    for turn in range(_ROUNDS + 5):
        for name, (port, body) in ways.items():
            timed = await _ask(port, body)
            if turn >= 5:
                times[name].append(timed)
    rows: list[Row] = []
    for name, found in times.items():
        base = times[f"the server itself, {'226' if '226' in name else '3'} tools"]
        first, whole = (median(getattr(t, key) for t in found) for key in ("first", "whole"))
        base_first, base_whole = (median(getattr(t, k) for t in base) for k in ("first", "whole"))
        rows.append(
            {
                "what": name,
                "first ms": round(first * 1000, 2),
                "added": round((first - base_first) * 1000, 2),
                "whole ms": round(whole * 1000, 2),
                "added ": round((whole - base_whole) * 1000, 2),
            }
        )
    return rows


async def _streams(name: str, port: int) -> Row:
    """Hold 200 slow streams at once."""
    body = _body(3, user="slow")
    began = time.perf_counter()
    tasks = [asyncio.create_task(_ask(port, body)) for _ in range(_STREAMS)]
    await asyncio.wait(tasks)
    done = [task.result() for task in tasks if task.exception() is None]
    whole = sum(b"[DONE]" in timed.body and b"word39" in timed.body for timed in done)
    row: Row = {
        "what": f"{_STREAMS} streams at once, {name.partition(',')[0]}",
        "first ms": round(median(timed.first for timed in done) * 1000, 1) if done else None,
        "whole ms": round((time.perf_counter() - began) * 1000),
        "came whole": whole,
    }
    if name.startswith("toolfold"):
        row["held"] = "yes" if whole == _STREAMS else "no"
    return row


async def _memory(port: int, pid: int) -> Row:
    """Ask thousands of times, and see what the process holds."""
    readings: list[float] = []
    step = max(_REQUESTS // 10, 1)
    for place in range(10):
        left = iter(range(step))

        async def ask(left: Any = left, place: int = place) -> None:
            for number in left:
                # Every conversation is a new one, and every second one searches.
                user = "search" if number % 2 else "x"
                await _ask(port, _body(60, user=user, mark=f"{place}-{number}"))

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(ask())
        readings.append(resident_mb(pid))
    drift = round(readings[-1] - median(readings[2:5]), 1)
    return {
        "what": f"memory over {step * 10:,} requests",
        "MB": f"{readings[0]} … {readings[-1]}",
        "drift": drift,
        "held": "yes" if drift <= _FLAT else "no",
    }


async def _killed(folder: Path) -> Row:
    """Kill the server in the middle of fifty streams: every client is told."""
    upstream = free_port()
    with (
        started([sys.executable, _peer("model_upstream"), str(upstream)], upstream) as pid,
        _ours(folder, upstream) as (port, _),
    ):
        body = _body(226, user="slow")
        tasks = [asyncio.create_task(_ask(port, body)) for _ in range(50)]
        await asyncio.sleep(0.6)
        os.kill(pid, signal.SIGKILL)
        began = time.perf_counter()
        async with asyncio.timeout(30):
            done = [await task for task in tasks]
        seconds = time.perf_counter() - began
        after = await _ask(port, body)
    told = sum(b'"error"' in timed.body for timed in done)
    return {
        "what": "kill -9 of the server in 50 streams",
        "whole ms": round(seconds * 1000),
        "told": told,
        "held": "yes" if told == 50 and b"502" in after.body[:20] else "no",
    }


@contextmanager
def _ours(folder: Path, upstream: int) -> Generator[tuple[int, int]]:
    port = free_port()
    config = folder / f"{port}.yaml"
    config.write_text(
        f"proxy:\n  listen: 127.0.0.1:{port}\n  upstreams:\n    - name: up\n"
        f"      url: http://127.0.0.1:{upstream}\n"
        f"serve:\n  audit: off\n  state_dir: {folder}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "toolfold", "proxy", "--config", str(config)]
    with started(command, port) as pid:
        yield port, pid


@contextmanager
def _litellm(folder: Path, upstream: int) -> Generator[int]:
    python = install("litellm")
    port = free_port()
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n"
        f"      api_base: http://127.0.0.1:{upstream}/v1\n      api_key: none\n"
        f"general_settings:\n  master_key: {_KEY}\n",
        encoding="utf-8",
    )
    program = str(python.with_name("litellm"))
    # Without this it asks the network for prices first.
    local = ["env", "LITELLM_LOCAL_MODEL_COST_MAP=True"]
    place = ["--host", "127.0.0.1", "--port", str(port)]
    command = [*local, program, "--config", str(config), *place]
    with started(command, port):
        yield port


def _peer(name: str) -> str:
    return str(_PEERS / f"{name}.py")


def _body(tools: int, user: str = "x", mark: str = "") -> bytes:
    keys = ("name", "description", "parameters")
    known = list(data.catalog("deploy-226").tools)[:tools]
    offered = [{"type": "function", "function": {key: t[key] for key in keys}} for t in known]
    said = [{"role": "user", "content": f"mail somebody {mark}"}]
    body = {"model": "m", "messages": said, "tools": offered, "stream": True, "user": user}
    return json.dumps(body).encode()


async def _ask(port: int, body: bytes) -> Timed:
    """Ask on a connection of its own, and read the answer as it comes."""
    async with asyncio.timeout(_PATIENCE):
        return await _asked(port, body)


async def _asked(port: int, body: bytes) -> Timed:
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n"
        f"content-type: application/json\r\nauthorization: Bearer {_KEY}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    pieces: list[bytes] = []
    first = 0.0
    while piece := await reader.read(65536):
        pieces.append(piece)
        if not first and b"data: " in b"".join(pieces[-2:]):
            first = time.perf_counter() - began
    writer.close()
    return Timed(first, time.perf_counter() - began, b"".join(pieces))
