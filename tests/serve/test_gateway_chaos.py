"""`toolfold serve` as a process, over servers that misbehave in every way at once.

The client is the official one; the servers are processes on bare pipes and sockets. In each
case the gateway and the other servers go on, no call gets another's answer, and nothing is
left running at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import mcp_types as t
import pytest
from mcp.shared.exceptions import MCPError

from support.gateways import run, said, until
from support.servers.place import (
    HELLO,
    SECONDS,
    Place,
    again_until,
    calling,
    command,
    echoes,
    prepared,
    serving,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


# ---- servers that are not there, or hang


def test_initialize_does_not_wait_for_servers_that_are_dead(place: Place) -> None:
    place.add("hangs", "hang").add("exits", "exit").add("lists", "hang-list").add("good")
    place.add("missing", command="no-such-program-here")
    began = time.monotonic()
    with subprocess.Popen(
        command(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **place.environment},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        seconds = time.monotonic() - began
        process.stdin.close()
        assert process.wait(SECONDS) == 0

    assert answer["result"]["serverInfo"]["name"] == "toolfold"
    # `python -m bench gateway` says how long it takes on a quiet machine; servers have 30 s.
    assert seconds < 10
    assert place.left() == {}


def test_the_others_serve_while_some_hang_exit_print_rubbish_or_are_missing(place: Place) -> None:
    place.add("hangs", "hang", timeout=1).add("lists", "hang-list", timeout=1)
    place.add("exits", "exit").add("missing", command="no-such-program-here")
    place.add("prints", "rubbish").add("odd", "odd-tools").add("good")

    async def main() -> None:
        async with serving(place) as c:
            listed = {tool.name for tool in (await c.list_tools()).tools}
            assert {name.partition("__")[0] for name in listed} == {"prints", "odd", "good"}
            assert {"odd__no_schema", "odd__large", "odd__long"} <= listed
            async with asyncio.TaskGroup() as group:
                for server in ("prints", "odd", "good"):
                    group.create_task(echoes(c, server, 15))
            assert place.gateway

    run(main)


def test_a_server_that_hangs_in_a_call_holds_up_nothing_else(place: Place) -> None:
    place.add("hangs", call_timeout=2).add("good")

    async def main() -> None:
        async with serving(place) as c:
            await c.list_tools()
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                hung = [group.create_task(c.call_tool("hangs__hang", {})) for _ in range(10)]
                await echoes(c, "hangs", 10)
                await echoes(c, "good", 10)
                assert not any(task.done() for task in hung) or time.monotonic() - began > 2
            for task in hung:
                assert task.result().is_error
                assert said(task.result()).startswith("hangs__hang did not end within 2")

    run(main)


def test_a_server_that_reads_no_more_is_given_up_and_the_others_serve(place: Place) -> None:
    place.add("deaf", "deaf", call_timeout=1).add("good")

    async def main() -> None:
        async with serving(place) as c:
            await c.list_tools()
            large = asyncio.create_task(c.call_tool("deaf__write", {"x": "l" * 1_000_000}))
            await echoes(c, "good", 20)
            assert (await large).is_error

    run(main)


def test_a_server_that_closed_its_input_is_noticed_and_started_again(place: Place) -> None:
    place.add("mute", "mute", call_timeout=30).add("good")

    async def main() -> None:
        async with serving(place) as c:
            call = calling(c)
            assert await call("mute__write", "a") == "mute:a"
            began = time.monotonic()
            # It may not have been closed yet; what is written then is not read.
            lost = await again_until(lambda: call("mute__write", "b"), lambda s: "failed" in s)
            assert "the server 'mute'" in lost
            assert time.monotonic() - began < 10
            await again_until(lambda: call("mute__write", "c"), lambda s: s == "mute:c")
            await echoes(c, "good", 3)

    run(main)


# ---- servers that die


def test_a_server_killed_in_mid_call_fails_its_calls_alone_and_comes_back(place: Place) -> None:
    place.add("one").add("two")

    async def main() -> None:
        async with serving(place) as c:
            before = int(await calling(c)("one__pid"))
            async with asyncio.TaskGroup() as group:
                hung = [
                    group.create_task(c.call_tool("one__hang", {"x": str(i)})) for i in range(8)
                ]
                await until(lambda: sum(place.ran().values()) == 9, SECONDS)
                other = group.create_task(echoes(c, "two", 40))
                os.kill(before, signal.SIGKILL)
                killed = time.monotonic()
                await asyncio.wait(hung)
                seconds = time.monotonic() - killed
            assert len(other.result()) == 40
            assert {said(task.result()) for task in hung} == {
                "one__hang failed: the server 'one' died over it. It may have had effects. The "
                "server is being started again: try once more in a few seconds, or go on without "
                "it."
            }
            assert seconds < 5
            after = await again_until(lambda: calling(c)("one__pid"), str.isdecimal)
            assert int(after) != before
            await echoes(c, "one", 3)
            assert all(count == 1 for mark, count in place.ran().items() if "hang" in mark)

    run(main)


def test_what_may_be_repeated_runs_twice_at_most_and_what_may_not_runs_once(place: Place) -> None:
    place.add("one").add("two")

    async def main() -> None:
        async with serving(place) as c:
            call = calling(c)

            async def settled() -> None:
                await again_until(lambda: call("one__pid"), str.isdecimal)

            assert await call("one__read", "r1", 1) == "one:r1"
            await settled()
            assert await call("one__put", "p1", 1) == "one:p1"
            await settled()
            twice = await call("one__read", "r2", 2)
            assert twice.startswith("one__read failed: the server 'one' died over it twice.")
            await settled()
            lost = await call("one__write", "w1", 1)
            assert lost.startswith("one__write failed: the server 'one' died over it. It may have")
            await settled()
            assert await call("two__write", "w2") == "two:w2"
            ran = place.ran()
            del ran["pid "]
            assert ran == {"read r1": 2, "put p1": 2, "read r2": 2, "write w1": 1, "write w2": 1}

    run(main)


@pytest.mark.parametrize(
    ("code", "text"),
    [(-32000, "Quota exceeded"), (-32000, "Connection closed"), (-32600, "Session expired")],
)
def test_a_servers_own_error_is_not_taken_for_its_death(place: Place, code: int, text: str) -> None:
    place.add("one")

    async def main() -> None:
        async with serving(place) as c:
            before = await calling(c)("one__pid")
            with pytest.raises(MCPError) as caught:
                await c.call_tool("one__refuse", {"x": text, "n": code})
            assert (caught.value.code, caught.value.message) == (code, text)
            assert place.ran()[f"refuse {text}"] == 1
            assert await calling(c)("one__pid") == before

    run(main)


# ---- servers that say too much, or the wrong thing


def test_answers_nobody_asked_for_reach_nobody(place: Place) -> None:
    place.add("twice", "twice").add("wrong", "wrong", call_timeout=1).add("good")

    async def main() -> None:
        async with serving(place) as c:
            await c.list_tools()
            async with asyncio.TaskGroup() as group:
                group.create_task(echoes(c, "twice", 40))
                group.create_task(echoes(c, "good", 40))
                lost = group.create_task(c.call_tool("wrong__echo", {"x": "a"}))
            assert said(lost.result()).startswith("wrong__echo did not end within 1")
            # Its own list was answered twice as well.
            assert len((await c.list_tools()).tools) == 33

    run(main)


def test_five_thousand_tools_in_fifty_pages_are_folded_and_found(place: Place) -> None:
    place.add("many", "many=5000").add("good")

    async def main() -> None:
        async with serving(place) as c:
            tools = (await c.list_tools()).tools
            assert [tool.name for tool in tools] == ["tool_search", "tool_describe", "tool_call"]
            assert "5,011 tools of good (11), many (5,000)" in (tools[0].description or "")
            for number in (0, 99, 100, 4999):
                name = f"many__tool_{number}"
                found = said(await c.call_tool("tool_search", {"query": name, "limit": 1}))
                assert f"\n- {name}(" in found
                call = {"name": name, "arguments": {"x": str(number)}}
                assert said(await c.call_tool("tool_call", call)) == f"many:{number}"
            await echoes(c, "good", 5)

    run(main)


def test_a_flood_of_notifications_drowns_nobody(place: Place) -> None:
    place.add("floods").add("good")
    heard: Counter[str] = Counter()

    async def listen(message: object) -> None:
        heard[type(message).__name__] += 1

    async def main() -> None:
        async with serving(place, message_handler=listen) as c:
            await c.list_tools()
            before = resident(place.gateway)
            flood = asyncio.create_task(c.call_tool("floods__flood", {"n": 20_000}))
            seconds = await echoes(c, "good", 30)
            assert said(await flood) == "floods:"
            assert max(seconds) < 5
            assert resident(place.gateway) - before < 64
            await echoes(c, "floods", 3)
            # Its list was the same each time it was read again, so nobody heard of a change.
            assert heard["ToolListChangedNotification"] == 0

    run(main)


def resident(pid: int) -> float:
    """The memory of a process, in mebibytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_a_list_that_changes_all_the_time_is_followed_and_holds_up_nobody(place: Place) -> None:
    place.add("changes", "changing=0.2").add("good")
    told: list[float] = []

    async def listen(message: object) -> None:
        if isinstance(message, t.ToolListChangedNotification):
            told.append(time.monotonic())

    async def main() -> None:
        async with serving(place, message_handler=listen) as c:

            async def current() -> str:
                names = [tool.name for tool in (await c.list_tools()).tools]
                assert len(names) == 23
                return next(name for name in names if "now_" in name)

            seen = {await current()}
            for _ in range(2):
                count = len(told)
                async with asyncio.TaskGroup() as group:
                    group.create_task(echoes(c, "good", 10, 0.01))
                    group.create_task(echoes(c, "changes", 10, 0.01))
                await until(lambda count=count: len(told) > count, SECONDS)
                seen.add(await current())
            assert len(seen) == 3
            # Read once a second at most, though it changes five times.
            assert len(told) <= told[-1] - told[0] + 2

    run(main)
