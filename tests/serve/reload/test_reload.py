"""The configuration read again while the gateway runs: taken up whole, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.gateways import client, run, said, until
from support.reloaded import entry, reloaded
from toolfold.redact import Redactor
from toolfold.serve.control.messages import ControlError
from toolfold.serve.observe.audit import AuditLog


async def names(c: Any) -> set[str]:
    return {tool.name for tool in (await c.list_tools()).tools}


def test_servers_come_go_and_change_and_what_is_the_same_is_not_touched(tmp_path: Path) -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(type(message).__name__)

    async def main() -> None:
        first = {"stays": entry("stays"), "goes": entry("goes"), "other": entry("other")}
        async with reloaded(tmp_path, first) as place:
            await place.has("stays__echo", "goes__echo", "other__echo")
            async with client(place.gateway, message_handler=listen) as c:
                await names(c)
                stays = said(await c.call_tool("stays__pid", {}))
                other = said(await c.call_tool("other__pid", {}))
                place.write(
                    {
                        "stays": entry("stays"),
                        "new": entry("new"),
                        "other": entry("other", env={"WHO": "another:"}),
                    }
                )
                told = await place.ask("reload")

                assert told["servers"] == {
                    "added": ["new"], "removed": ["goes"], "changed": ["other"]
                }  # fmt: skip
                assert told["widened"] == [
                    "server 'new' is new",
                    "server 'other' is reached otherwise (env)",
                ]
                await place.has("new__echo")
                await until(lambda: "ToolListChangedNotification" in heard)
                assert {name.partition("__")[0] for name in await names(c)} == {
                    "stays", "new", "other"
                }  # fmt: skip
                assert said(await c.call_tool("other__echo", {"x": "hi"})) == "another:hi"
                assert said(await c.call_tool("other__pid", {})) != other
                assert said(await c.call_tool("stays__pid", {})) == stays
                assert (await c.call_tool("goes__echo", {"x": "hi"})).is_error

                again = await place.ask("reload")
                assert again["servers"] == {"added": [], "removed": [], "changed": []}
                assert said(await c.call_tool("stays__pid", {})) == stays

    run(main, 90)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ('{"mcpServers": {"one": {"comm', "mend the JSON"),
        ("", "names no servers"),
        ('{"mcpServers": {}, "serve": {}}', "names no servers"),
        ('{"mcpServers": {"one": {"command": "true"}}, "serve": {"drain": "long"}}', "serve.drain"),
        ('{"mcpServers": {"one": {"command": "true"}}, "serve": {"drian": 3}}', "drian"),
        ("x" * (17 * 1024 * 1024), "16 MiB"),
    ],
    ids=["half", "empty", "no servers", "value", "key", "large"],
)
def test_a_file_that_cannot_be_used_changes_nothing_and_that_is_said(
    tmp_path: Path, broken: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    from toolfold.cli.serve import _loaded  # pyright: ignore[reportPrivateUsage]

    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one")}) as place:
            # By the rules of a start: what it reads with is the command's own.
            place.reloading._load = lambda: _loaded(str(place.file), None, {})  # pyright: ignore[reportPrivateUsage]
            async with client(place.gateway) as c:
                before = said(await c.call_tool("one__pid", {}))
                place.file.write_text(broken, "utf-8")
                with pytest.raises(ControlError) as caught:
                    await place.ask("reload")
                assert caught.value.code == "broken"
                assert why in caught.value.message
                assert (await place.ask("status"))["config_problem"] is not None
                assert said(await c.call_tool("one__pid", {})) == before

                place.write({"one": entry("one")}, drain=3)
                assert (await place.ask("reload"))["settings"] == ["serve.drain"]
                status = await place.ask("status")
                assert status["config_problem"] is None
                assert status["reloaded"].endswith("Z")
                assert said(await c.call_tool("one__pid", {})) == before

    run(main, 90)
    assert "the configuration stays as it was" in caplog.text


@pytest.mark.parametrize("what", ["link", "pipe", "folder", "gone"])
def test_what_has_become_of_the_file_since_the_start_is_not_read(tmp_path: Path, what: str) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"mcpServers": {"evil": {"command": "evil"}}}', "utf-8")

    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one")}) as place:
            place.file.unlink()
            if what == "link":
                place.file.symlink_to(elsewhere)
            elif what == "pipe":
                os.mkfifo(place.file)
            elif what == "folder":
                place.file.mkdir()
            with pytest.raises(ControlError) as caught:
                await place.ask("reload")
            assert "is not read again" in caught.value.message
            assert list(place.gateway.pool.upstreams) == ["one"]

    run(main, 60)


def test_what_cannot_be_changed_while_running_is_named_and_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one")}) as place:
            before = place.gateway.config.serve
            whole = json.loads(place.file.read_text("utf-8"))
            (tmp_path / "shop.py").write_text("raise SystemExit('imported')\n", "utf-8")
            whole["serve"] |= {"state_dir": str(tmp_path / "other"), "trust": "all", "drain": 1}
            whole["functions"] = {"shop": "shop.py"}
            whole["tools"]["tool_search"]["bridge_prefix"] = "x"
            place.file.write_text(json.dumps(whole), "utf-8")

            told = await place.ask("reload")

            assert told["needs_restart"] == [
                "serve.trust",
                "serve.state_dir",
                "tools.tool_search.bridge_prefix",
                "functions",
            ]
            now = place.gateway.config
            assert (now.serve.state_dir, now.serve.trust) == (before.state_dir, before.trust)
            assert now.serve.drain == 1
            assert now.functions == ()
            assert now.settings.bridge_prefix == "tool"

    run(main, 60)
    assert "`serve.state_dir` was changed and counts from the next start on" in caplog.text


def test_how_to_fold_is_taken_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            reloaded(tmp_path, {"one": entry("one")}) as place,
            client(place.gateway) as c,
        ):
            assert "one__echo" in await names(c)
            whole = json.loads(place.file.read_text("utf-8"))
            whole["tools"]["tool_search"] |= {"enabled": "on"}
            place.file.write_text(json.dumps(whole), "utf-8")
            told = await place.ask("reload")
            assert told["settings"] == ["tools.tool_search.enabled"]
            assert await names(c) == {"tool_search", "tool_describe", "tool_call"}

    run(main, 60)


def test_two_reloads_at_once_come_to_one_change(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl", Redactor())

    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one")}, audit) as place:
            place.write({"one": entry("one"), "two": entry("two")})
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(place.ask("reload")) for _ in range(5)]
            told = [task.result() for task in tasks]
            assert [one["servers"]["added"] for one in told] == [["two"], [], [], [], []]
            await place.has("two__echo")
            assert len(place.gateway.pool.all) == 2

    run(main, 60)
    lines = [json.loads(line) for line in audit.path.read_text("utf-8").splitlines()]
    assert [line["verb"] for line in lines] == ["reload"] * 5
    assert "widened: server 'two' is new" in lines[0]["detail"]
    assert lines[1]["detail"].endswith("nothing is different")


def test_what_was_turned_off_by_hand_stays_off_over_a_reload(tmp_path: Path) -> None:
    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one"), "two": entry("two")}) as place:
            await place.ask("servers.disable", name="one")
            place.write({"one": entry("one"), "two": entry("two")}, drain=2)
            await place.ask("reload")
            assert list(place.gateway.pool.upstreams) == ["two"]
            place.write({"one": entry("one", disabled=True), "two": entry("two")})
            assert (await place.ask("reload"))["servers"]["removed"] == ["one"]
            with pytest.raises(ControlError) as caught:
                await place.ask("servers.enable", name="one")
            assert caught.value.code == "left_out"

    run(main, 60)
