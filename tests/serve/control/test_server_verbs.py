"""Servers of a running gateway, changed by its user: clients see it, and no call is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.controlled import Controlled
from support.gateways import client, gateway, odd, run, said, until
from toolfold.redact import Redactor
from toolfold.serve.control.gateway_control import GatewayControl
from toolfold.serve.control.messages import ControlError
from toolfold.serve.observe.audit import AuditLog
from toolfold.sources.mcp.server import Server

ECHOES = ("echo", "slow", "pid")


def small(name: str, **more: Any) -> Server:
    return odd(name, allow=ECHOES, **more)


async def names(c: Any) -> set[str]:
    return {tool.name for tool in (await c.list_tools()).tools}


def test_a_disabled_servers_tools_are_gone_for_every_client_and_come_back() -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(type(getattr(message, "root", message)).__name__)

    async def main() -> None:
        async with (
            gateway(small("one"), small("two"), settings={"enabled": "off"}) as made,
            client(made, message_handler=listen) as c,
        ):
            control = Controlled(made)
            before = await names(c)
            assert {"one__echo", "two__echo"} <= before

            assert await control.ask("servers.disable", name="one") == {
                "name": "one",
                "state": "disabled",
                "changed": True,
            }
            await until(lambda: any("ToolListChanged" in kind for kind in heard))
            assert await names(c) == {name for name in before if name.startswith("two__")}
            gone = await c.call_tool("one__echo", {"x": "hi"})
            assert gone.is_error
            again = await control.ask("servers.disable", name="one")
            assert again["changed"] is False
            assert said(await c.call_tool("two__echo", {"x": "hi"})) == "two:hi"

            heard.clear()
            await control.ask("servers.enable", name="one")
            await until(lambda: "one__echo" in made.pool.stock.sources, 30)
            await until(lambda: any("ToolListChanged" in kind for kind in heard))
            assert await names(c) == before
            assert said(await c.call_tool("one__echo", {"x": "hi"})) == "one:hi"

    run(main)


@pytest.mark.parametrize("verb", ["servers.disable", "servers.restart"])
def test_a_call_under_way_ends_before_its_server_does(verb: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        server = small("one", env={"MARK": str(mark)})
        async with gateway(server, serve={"drain": 20}) as made, client(made) as c:
            control = Controlled(made)
            call = asyncio.create_task(c.call_tool("one__slow", {"x": "1"}))
            await until(mark.exists)
            old = made.pool.upstreams["one"].connection
            await control.ask(verb, name="one")

            assert said(await call) == "slept"
            assert old is not None
            await until(lambda: old.is_closed, 20)
            assert made.pool.in_flight == 0

    run(main)


def test_a_call_that_does_not_end_in_time_is_told_and_the_server_ends_all_the_same(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        server = small("one", env={"MARK": str(mark)})
        async with gateway(server, serve={"drain": 0.2}) as made, client(made) as c:
            call = asyncio.create_task(c.call_tool("one__slow", {"x": "30"}))
            await until(mark.exists)
            await Controlled(made).ask("servers.disable", name="one")

            told = await call
            assert told.is_error
            assert "was stopped before it ended. It may have had effects" in said(told)

    run(main)


def test_a_restarted_server_is_another_process_and_calls_meanwhile_wait_for_it() -> None:
    async def main() -> None:
        async with gateway(small("one"), small("two")) as made, client(made) as c:
            control = Controlled(made)
            first = said(await c.call_tool("one__pid", {}))
            neighbour = said(await c.call_tool("two__pid", {}))

            assert (await control.ask("servers.restart", name="one"))["state"] == "starting"
            assert (await control.ask("servers.restart", name="one"))["state"] == "starting"
            second = said(await c.call_tool("one__pid", {}))

            assert second != first
            assert said(await c.call_tool("two__pid", {})) == neighbour
            [one, two] = (await control.ask("servers.list"))["servers"]
            assert (one["restarts"], two["restarts"]) == (1, 0)

    run(main)


def test_on_and_off_in_quick_turns_leave_one_process_of_the_name(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    script = f'echo $$ >> "{starts}"; exec "$@"'
    usual = small("one")
    server = Server(
        "one", "stdio", command="sh",
        args=("-c", script, "sh", usual.command, *usual.args), env=usual.env, allow=ECHOES,
    )  # fmt: skip

    def alive(pid: str) -> bool:
        return Path(f"/proc/{pid}").exists()

    async def main() -> None:
        async with gateway(server) as made, client(made) as c:
            control = Controlled(made)
            for _ in range(4):
                await control.ask("servers.disable", name="one")
                await control.ask("servers.enable", name="one")
            await until(lambda: "one__echo" in made.pool.stock.sources, 40)
            assert said(await c.call_tool("one__echo", {"x": "hi"})) == "one:hi"
            await until(lambda: sum(map(alive, starts.read_text("utf-8").split())) == 1)
            assert len(made.pool.all) == 1

    run(main)


def test_a_failed_server_is_tried_at_once_when_it_is_restarted(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    usual = small("one")
    script = '[ -e "$0" ] || exit 3; exec "$@"'
    server = Server(
        "one", "stdio", command="sh",
        args=("-c", script, str(ready), usual.command, *usual.args), env=usual.env,
    )  # fmt: skip

    async def main() -> None:
        async with gateway(server) as made:
            control = Controlled(made)
            source = made.pool.upstreams["one"]
            await until(lambda: source.state == "failed" and source.lifecycle.retry_in > 3, 40)
            ready.touch()
            await control.ask("servers.restart", name="one")
            await until(lambda: source.state == "ready", 20)

    run(main, 90)


def test_a_servers_last_lines_are_told_without_its_secrets_and_within_bounds() -> None:
    secret = "q7Rt2LmX9vB4nK8sW1zH5cJ3"
    script = (
        "import os, sys\n"
        "for i in range(400): print('line', i, file=sys.stderr)\n"
        "print('x' * 990 + os.environ['API_TOKEN'], file=sys.stderr)\n"
        "print('my token is', os.environ['API_TOKEN'], file=sys.stderr, flush=True)\n"
        "sys.stdin.read()\n"
    )
    import sys

    server = Server(
        "one", "stdio", command=sys.executable, args=("-c", script),
        env={"API_TOKEN": secret}, start_timeout=60,
    )  # fmt: skip

    async def main() -> None:
        async with gateway_starting(server) as made:
            control = Controlled(made)
            words = made.pool.upstreams["one"].lifecycle.words
            await until(lambda: words.lines and "my token" in words.lines[-1].text, 20)

            last = await control.ask("servers.logs", name="one", lines=3)
            assert last["lines"][0]["text"] == "line 399"
            assert last["lines"][2]["text"] == "my token is [redacted]"
            assert secret[:8] not in json.dumps(last)
            assert len((await control.ask("servers.logs", name="one", lines=9999))["lines"]) == 200
            assert (await control.ask("servers.logs", name="one", lines=0))["lines"] == []

    run(main)


def gateway_starting(server: Server) -> Any:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.config.serve_settings import ServeSettings
    from toolfold.serve.gateway import Gateway
    from toolfold.settings import Settings

    return Gateway(GatewayConfig((server,), ServeSettings(audit="off"), Settings(cache_dir="off")))


@pytest.mark.parametrize(
    ("verb", "arguments", "code"),
    [
        ("servers.restart", {}, "bad_request"),
        ("servers.restart", {"name": 3}, "bad_request"),
        ("servers.restart", {"name": "x" * 5000}, "bad_request"),
        ("servers.restart", {"name": "on"}, "unknown_server"),
        ("servers.disable", {"name": "file"}, "left_out"),
        ("servers.logs", {"name": "one", "lines": -1}, "bad_request"),
        ("servers.logs", {"name": "one", "lines": True}, "bad_request"),
        ("servers.logs", {"name": "one", "lines": "many"}, "bad_request"),
        ("activity", {"since": "yesterday"}, "bad_request"),
        ("trust.approve", {"server": "one", "tool": "t", "fingerprint": "f"}, "off"),
    ],
)
def test_a_verb_says_what_is_wrong_with_its_arguments(
    verb: str, arguments: dict[str, Any], code: str
) -> None:
    from dataclasses import replace

    async def main() -> None:
        made = gateway_starting(Server("one", "stdio", command="true"))
        made.config = replace(made.config, disabled=("file",))
        with pytest.raises(ControlError) as caught:
            await Controlled(made).ask(verb, **arguments)
        assert caught.value.code == code

    run(main)


def test_a_change_is_logged_and_in_the_audit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl", Redactor())

    async def main() -> None:
        async with gateway(small("one")) as made:
            control = Controlled(made, GatewayControl("stdio", audit=audit))
            await control.ask("servers.disable", name="one")
            with pytest.raises(ControlError) as caught:
                await control.ask("servers.restart", name="one")
            assert caught.value.code == "disabled"

    with caplog.at_level("INFO"):
        run(main)
    [line] = [json.loads(line) for line in audit.path.read_text("utf-8").splitlines()]
    assert line["at"].endswith("Z")
    del line["at"]
    assert line == {
        "principal": "local",
        "verb": "servers.disable",
        "target": "one",
        "outcome": "ok",
        "detail": "",
    }
    assert "servers.disable one by local" in caplog.text


def test_activity_tells_calls_under_way_calls_that_ended_and_searches_in_vain(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        control = GatewayControl("stdio")
        async with (
            gateway(
                odd("one", env={"MARK": str(mark)}),
                settings={"enabled": "on"},
                observers=control.observers,
            ) as made,
            client(made) as c,
        ):
            asked = Controlled(made, control)
            await c.call_tool("tool_search", {"query": "zzqx password=hunter2hunter2"})
            await c.call_tool("tool_call", {"name": "one__echo", "arguments": {"x": "hush"}})
            call = asyncio.create_task(
                c.call_tool("tool_call", {"name": "one__slow", "arguments": {"x": "1"}})
            )
            await until(mark.exists)

            seen = await asked.ask("activity")
            assert [(one["tool"], one["via"]) for one in seen["under_way"]] == [
                ("one__slow", "tool_call")
            ]
            assert [(one["tool"], one["outcome"]) for one in seen["calls"]] == [("one__echo", "ok")]
            assert [one["query"] for one in seen["empty_searches"]] == ["zzqx password=[redacted]"]
            assert "hush" not in json.dumps(seen)
            await call

            later = await asked.ask("activity", since=seen["number"])
            assert later["under_way"] == []
            assert [one["tool"] for one in later["calls"]] == ["one__slow"]
            assert later["empty_searches"] == []
            status = await asked.ask("status")
            assert status["folded"]["tokens_saved"] > 0

    run(main)
