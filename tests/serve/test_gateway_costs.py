"""What one server costs the others: no more than a bound, whatever it sends."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from support.gateways import client, gateway, odd, run, said, until
from support.servers.bomb_http import MEBIBYTE, bomb
from support.servers.place import WILD
from toolfold.sources.mcp.server import Server

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

OFF = {"enabled": "off"}


def peak() -> int:
    """The most memory that this process has had, in bytes, since it was last asked."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", "utf-8")


async def fails(c: Client, tool: str) -> bool:
    """Whether a call ends as an error, of the tool or of the protocol."""
    try:
        return bool((await c.call_tool(tool, {})).is_error)
    except MCPError:
        return True


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux' /proc"
)


@needs_proc
@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
def test_a_packed_answer_is_bounded_by_what_it_unpacks_to(events: bool) -> None:
    async def main() -> None:
        with bomb(events=events) as url:
            server = Server("far", "http", url=url)
            async with gateway(server, settings=OFF) as made, client(made) as c:
                assert said(await c.call_tool("far__small", {})) == "small"
                forget_peak()
                before = peak()

                assert await fails(c, "far__packed")
                assert peak() - before < 330 * MEBIBYTE
                assert said(await c.call_tool("far__small", {})) == "small"

    run(main)


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize("tool", ["long", "twice", "damaged"])
def test_an_answer_that_cannot_be_taken_fails_that_one_call(events: bool, tool: str) -> None:
    async def main() -> None:
        with bomb(events=events) as url:
            server = Server("far", "http", url=url)
            async with gateway(server, settings=OFF) as made, client(made) as c:
                assert await fails(c, f"far__{tool}")
                assert said(await c.call_tool("far__small", {})) == "small"

    run(main)


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
def test_a_tool_that_nests_too_deep_is_left_out_and_named_over_http(
    events: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with bomb(events=events) as url, caplog.at_level(logging.WARNING):
            async with gateway(Server("far", "http", url=url), settings=OFF) as made:
                names = [tool.name for tool in made.pool.stock.tools]
                expected = ["small", "packed", "twice", "damaged", "long"]
                assert names == [f"far__{name}" for name in expected]

    run(main)
    assert "server far: 'deep' nests too deep, and is left out" in caplog.text


@pytest.mark.parametrize("levels", [60, 150, 400, 20_000])
def test_a_tool_that_nests_too_deep_is_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, levels: int
) -> None:
    path = tmp_path / "tools.json"
    marked = json.dumps(
        [
            {"name": "before", "inputSchema": {"type": "object"}},
            {"name": "deep", "inputSchema": {"const": "HERE"}},
            {"name": "after", "inputSchema": {"type": "object"}},
        ]
    )
    path.write_text(marked.replace('"HERE"', '{"a":' * levels + "1" + "}" * levels), "utf-8")
    source = f"TEXT = open({str(path)!r}).read()\n" + DEEP_SERVER

    async def main() -> None:
        server = Server("bad", "stdio", command=sys.executable, args=("-S", "-E", "-c", source))
        async with gateway(server, settings=OFF) as made:
            names = [tool.bare_name for tool in made.pool.stock.tools]
            kept = ["before", "deep", "after"] if levels <= 150 else ["before", "after"]
            assert names == kept

    with caplog.at_level(logging.WARNING):
        run(main)
    said_so = "server bad: 'deep' nests too deep, and is left out" in caplog.text
    assert said_so == (levels > 150)


DEEP_SERVER = """
import json, sys
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
         "serverInfo": {"name": "deep", "version": "1"}}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        rest = '"result":' + json.dumps(HELLO)
    elif request["method"] == "tools/list":
        rest = '"result":{"tools":' + TEXT + "}"
    else:
        rest = '"error":{"code":-32601,"message":"no such method"}'
    print('{"jsonrpc":"2.0","id":' + json.dumps(request["id"]) + "," + rest + "}", flush=True)
"""


def test_sixteen_unknown_names_do_not_hold_the_event_loop() -> None:
    async def longest_gap(task: asyncio.Task[Any]) -> float:
        longest, last = 0.0, time.perf_counter()
        while not task.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        return longest

    async def main() -> None:
        wild = Server("big", "stdio", command=sys.executable, args=("-S", "-E", WILD, "many=3000"))
        async with gateway(wild, settings={"enabled": "on"}) as made, client(made) as c:
            assert "tool_7" in said(await c.call_tool("tool_search", {"query": "tool_7"}))
            names = [f"big__obtain_{'the_very_' * 4}thing_{n}zz" for n in range(16)]
            began = time.perf_counter()
            asked = asyncio.create_task(c.call_tool("tool_describe", {"name": names}))
            gap = await longest_gap(asked)
            taken = time.perf_counter() - began
            assert said(await asked).count("is not available") == 16
        assert gap < 0.5, gap
        assert taken < 5, taken

    run(main)


NOISE = """
import threading
noise = ("noise " * 10 + "\\n") * 200
def shout(stream):
    while True:
        stream.write(noise)
def begin():
    for stream in (sys.stdout, sys.stderr):
        threading.Thread(target=shout, args=(stream,)).start()
threading.Timer(0.5, begin).start()
"""


def test_a_server_that_prints_without_end_does_not_starve_the_others() -> None:
    async def calls(c: Client, seconds: float) -> int:
        end, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            await c.call_tool("ok__echo", {"x": "y"})
            count += 1
        return count

    async def main() -> None:
        source = f"import sys\nTEXT = '[]'\n{NOISE}{DEEP_SERVER}"
        noisy = Server("noisy", "stdio", command=sys.executable, args=("-S", "-E", "-c", source))
        async with gateway(odd("ok", "old"), noisy, settings=OFF) as made, client(made) as c:
            quiet = await calls(c, 0.4)
            await until(lambda: made.pool.upstreams["noisy"].lifecycle.words.rubbish > 1_000, 20)
            loud = await calls(c, 1.0)
        assert loud > quiet / 4, (loud, quiet)

    run(main)
