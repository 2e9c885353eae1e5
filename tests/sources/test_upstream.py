"""Servers that misbehave, and the gateway that goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from mcp.shared.exceptions import MCPError

from support.gateways import ODD, Seen, client, gateway, odd, run, said, until
from support.machine import is_alive
from toolfold.sources.mcp._clocks import TimeoutClock
from toolfold.sources.mcp.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


def test_a_server_killed_in_mid_call_is_reported_and_started_again() -> None:
    async def main() -> None:
        seen = Seen()
        async with (
            gateway(odd("one", "old"), odd("two"), observers=(seen,)) as made,
            client(made) as c,
        ):
            before = said(await c.call_tool("one__pid", {}))
            died = await c.call_tool("one__die", {})

            assert died.is_error
            assert said(died) == (
                "one__die failed: the server 'one' died over it. It may have had effects. The "
                "server is being started again: try once more in a few seconds, or go on "
                "without it."
            )
            assert said(await c.call_tool("two__echo", {"x": "on"})) == "two:on"
            await until(lambda: made.pool.upstreams["one"].state == "ready", 20)
            assert said(await c.call_tool("one__pid", {})) != before
            assert [call.outcome for call in seen.calls] == ["ok", "failed", "ok", "ok"]
            assert made.pool.upstreams["one"].restarts == 1

    run(main)


def test_a_call_that_may_be_repeated_is_repeated_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with gateway(odd("one", "old")) as made, client(made) as c:
            result = await c.call_tool("one__die_once", {"x": str(tmp_path / "died")})

            assert not result.is_error
            assert said(result).startswith("alive ")

    run(main)


def test_all_pending_calls_of_a_dead_server_end_and_none_of_another() -> None:
    async def main() -> None:
        async with gateway(odd("one", "old"), odd("two")) as made, client(made) as c:
            async with asyncio.TaskGroup() as group:
                slow = [group.create_task(c.call_tool("one__slow", {"x": "30"})) for _ in range(5)]
                other = group.create_task(c.call_tool("two__slow", {"x": "1"}))
                await until(lambda: len(made.pool.upstreams["one"].in_flight) == 5)
                killed = group.create_task(c.call_tool("one__die", {}))

            assert all(task.result().is_error for task in (*slow, killed))
            assert said(other.result()) == "slept"

    run(main)


def test_servers_that_hang_die_or_do_not_exist_leave_the_others_alone() -> None:
    async def main() -> None:
        missing = odd("missing")
        object.__setattr__(missing, "command", "no-such-program-here")
        servers = (
            odd("hangs", "hang", start_timeout=0.5),
            odd("dies", "die"),
            missing,
            odd("prints", "rubbish"),
            odd("good"),
        )
        async with gateway(*servers) as made, client(made) as c:
            await until(lambda: made.pool.upstreams["hangs"].error is not None, 10)
            names = {tool.name.partition("__")[0] for tool in (await c.list_tools()).tools}
            assert names == {"prints", "good"}
            assert said(await c.call_tool("prints__echo", {"x": "a"})) == "prints:a"
            errors = {u.name: u.error for u in made.pool.upstreams.values() if u.error}
            assert errors == {
                "hangs": "did not answer within 0.5 s",
                "dies": "ended with 3 before it was ready: I cannot go on",
                "missing": "'no-such-program-here' is not there",
            }
            assert made.pool.upstreams["prints"].rubbish == 150

    run(main)


def test_five_thousand_tools_in_pages_are_folded_and_found() -> None:
    async def main() -> None:
        async with gateway(odd("many", "many=5000"), odd("one")) as made, client(made) as c:
            tools = (await c.list_tools()).tools
            assert [tool.name for tool in tools] == ["tool_search", "tool_describe", "tool_call"]
            found = said(await c.call_tool("tool_search", {"query": "many__tool_4321"}))
            assert "- many__tool_4321(x?: string) [many]" in found
            call = {"name": "many__tool_4321", "arguments": {"x": "y"}}
            assert said(await c.call_tool("tool_call", call)) == "many:y"

    run(main)


def test_a_flood_of_notifications_does_not_slow_the_others() -> None:
    async def main() -> None:
        async with gateway(odd("one", "old"), odd("two")) as made, client(made) as c:
            flood = asyncio.create_task(c.call_tool("one__flood", {"x": "3000"}))
            for i in range(20):
                assert said(await c.call_tool("two__echo", {"x": str(i)})) == f"two:{i}"
            assert said(await flood) == "flooded"

    run(main)


@pytest.mark.parametrize("era", ["old", "plain"])
def test_a_tool_that_comes_later_is_served_and_told(era: str) -> None:
    async def main() -> None:
        told = asyncio.Event()

        async def listen(message: object) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                told.set()

        async with (
            gateway(odd("one", era)) as made,
            client(made, message_handler=listen) as c,
        ):
            assert "one__newer" not in [t.name for t in (await c.list_tools()).tools]
            await c.call_tool("one__grow", {"x": "newer"})
            await asyncio.wait_for(told.wait(), 5)
            assert "one__newer" in [t.name for t in (await c.list_tools()).tools]

    run(main)


def test_a_list_that_changes_all_the_time_is_read_now_and_then() -> None:
    async def main() -> None:
        fast = odd("fast", "changing", env={"TICK": "0.01"})
        async with gateway(fast, odd("one")) as made, client(made) as c:
            await c.list_tools()
            number = made.pool.stock.number
            for i in range(100):
                assert said(await c.call_tool("one__echo", {"x": str(i)})) == f"one:{i}"
                await asyncio.sleep(0.01)
            assert made.pool.stock.number - number < 6

    run(main)


def test_a_call_that_takes_too_long_is_given_up() -> None:
    async def main() -> None:
        async with gateway(odd("one", call_timeout=0.3)) as made, client(made) as c:
            result = await c.call_tool("one__slow", {"x": "30"})

            assert result.is_error
            assert said(result).startswith("one__slow did not end within 0.3 s and was given up.")

    run(main)


def test_what_a_server_started_ends_with_the_gateway() -> None:
    async def main() -> None:
        async with gateway(odd("one")) as made, client(made) as c:
            pids = [int(said(await c.call_tool(f"one__{name}", {}))) for name in ("pid", "child")]
            assert all(map(is_alive, pids))
        assert not any(map(is_alive, pids))

    run(main)


def test_a_server_sees_its_own_variables_and_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_TOKEN", "very secret")

    async def main() -> None:
        async with gateway(odd("one", env={"MINE": "yes"})) as made, client(made) as c:
            assert said(await c.call_tool("one__env", {"x": "MINE"})) == "yes"
            assert said(await c.call_tool("one__env", {"x": "SOMEBODYS_TOKEN"})) == "(unset)"
            assert said(await c.call_tool("one__env", {"x": "PATH"})) == os.environ["PATH"]

    run(main)


def test_an_error_of_the_protocol_passes_as_it_is() -> None:
    async def main() -> None:
        async with gateway(odd("one")) as made, client(made) as c:
            with pytest.raises(MCPError) as caught:
                await c.call_tool("one__fail", {"x": "because"})

            assert caught.value.error.model_dump() == {
                "code": -32050,
                "message": "because",
                "data": {"why": "because"},
            }

    run(main)


def test_a_server_can_be_held_to_the_older_revisions() -> None:
    async def main() -> None:
        async with gateway(odd("new"), odd("held", handshake=True)) as made:
            links = [made.pool.upstreams[name] for name in ("new", "held")]
            await until(lambda: all(one.connection is not None for one in links))
            assert [one.connection and one.connection.version for one in links] == [
                "2026-07-28",
                "2025-11-25",
            ]

    run(main)


def test_what_a_server_takes_to_start_again_between_two_rounds_is_not_the_calls_time(
    tmp_path: Path,
) -> None:
    # Its first start is quick; the next takes longer than a call may.
    mark = tmp_path / "started"
    slow = f"if [ -e {mark} ]; then sleep 4; fi; touch {mark}; exec {sys.executable} {ODD} stdio"
    server = Server("one", "stdio", command="sh", args=("-c", slow), call_timeout=2.0)

    async def main() -> None:
        async with gateway(server) as made:
            upstream = made.pool.upstreams["one"]

            async def answer(context: object, params: Any) -> t.ElicitResult:
                before = upstream.connection
                assert before is not None
                os.kill(int(said(await c.call_tool("one__pid", {}))), signal.SIGKILL)
                await until(lambda: upstream.connection is not before or before.is_closed)
                return t.ElicitResult(action="accept", content={"v": "late"})

            async with client(made) as other:  # from now on the server stays in its revision
                await other.call_tool("one__pid", {})
            async with client(made, elicitation_callback=answer) as c:
                answered = said(await c.call_tool("one__elicit", {"x": "q"}))
                assert answered == 'q->accept:{"v": "late"} st-q'
                assert upstream.restarts == 1

    run(main)


def test_a_clock_that_two_have_paused_runs_when_both_have_done() -> None:
    async def main() -> None:
        started = asyncio.Event()
        async with asyncio.timeout(0.05) as deadline:
            clock = TimeoutClock(deadline, 0.05)
            clock.pause()
            clock.pause()
            clock.go_on()
            assert deadline.when() is None
            await asyncio.sleep(0.1)
            clock.go_on()
            assert deadline.when() is not None
            started.set()
        assert started.is_set()

    run(main)
