"""The configuration's file watched: read when it has come to rest, where that is switched on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.gateways import run, until
from support.reloaded import entry, reloaded, write
from toolfold.config.gateway_config import GatewayConfig, load_gateway
from toolfold.redact import Redactor
from toolfold.serve.control.gateway_control import GatewayControl
from toolfold.serve.gateway import Gateway
from toolfold.serve.reload import watching
from toolfold.serve.reload.config_file import ConfigFile
from toolfold.serve.reload.watching import watch

EVERY = 0.02


def watched(path: Path, talk: Callable[[list[str]], object]) -> None:
    """Watch a file while something is done to it; what was read is in a list."""

    async def main() -> None:
        read: list[str] = []

        def content() -> str:
            return path.read_text("utf-8") if path.is_file() else "-"

        async def changed() -> None:
            read.append(content())

        task = asyncio.create_task(watch(ConfigFile(path), changed, EVERY))
        await asyncio.sleep(5 * EVERY)
        await talk(read)  # pyright: ignore[reportGeneralTypeIssues]
        task.cancel()

    run(main)


@pytest.mark.parametrize("how", ["in place", "by rename", "gone and back"])
def test_a_change_is_seen_however_an_editor_writes(tmp_path: Path, how: str) -> None:
    path = tmp_path / "c.json"
    path.write_text("one", "utf-8")

    async def talk(read: list[str]) -> None:
        if how == "in place":
            path.write_text("two", "utf-8")
        elif how == "by rename":
            (tmp_path / ".c.json.swp").write_text("two", "utf-8")
            (tmp_path / ".c.json.swp").replace(path)
        else:
            path.unlink()
            await asyncio.sleep(EVERY / 2)
            path.write_text("two", "utf-8")
        await until(lambda: "two" in read)
        assert read[-1] == "two"

    watched(path, talk)


def test_a_file_that_is_being_written_is_not_read_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("start", "utf-8")

    async def talk(read: list[str]) -> None:
        with path.open("w", encoding="utf-8") as file:
            for number in range(30):
                file.write(f"{number} ")
                file.flush()
                await asyncio.sleep(EVERY / 2)
        await until(lambda: bool(read))
        assert read == [" ".join(map(str, range(30))) + " "]

    watched(path, talk)


def test_who_touches_it_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("same", "utf-8")

    async def talk(read: list[str]) -> None:
        for number in range(3):
            os.utime(path, ns=(number, number))
            await asyncio.sleep(5 * EVERY)
        path.write_text("other", "utf-8")
        await until(lambda: bool(read))
        assert read == ["other"]

    watched(path, talk)


@pytest.mark.parametrize("switched_on", [False, True])
def test_an_agent_that_writes_the_file_changes_nothing_unless_it_is_watched(
    tmp_path: Path,
    switched_on: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(watching, "LOOK_EVERY", EVERY)
    servers = {"one": entry("one")}
    token = {"name": "agent", "sha256": "ab" * 32, "allow": ["one__echo"]}

    async def main() -> None:
        async with reloaded(tmp_path, servers, tokens=[token], watch=switched_on) as place:
            await asyncio.sleep(5 * EVERY)
            wider = {**token, "allow": ["one__echo", "@two"]}
            place.write({**servers, "two": entry("two")}, tokens=[wider], watch=switched_on)
            if switched_on:
                await place.has("two__echo")
            else:
                await asyncio.sleep(20 * EVERY)
                assert list(place.gateway.pool.upstreams) == ["one"]
                assert place.gateway.config.serve.tokens[0].allow == ("one__echo",)

    run(main)
    said = "the configuration permits more than before: "
    assert (f"{said}server 'two' is new" in caplog.text) == switched_on
    assert (f"{said}token 'agent' is allowed '@two'" in caplog.text) == switched_on


def test_a_watched_file_that_grows_beyond_bounds_or_becomes_a_link_keeps_the_last_good_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_EVERY", EVERY)
    evil = tmp_path / "evil.json"
    evil.write_text(json.dumps({"mcpServers": {"evil": {"command": "evil"}}}), "utf-8")

    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one")}, watch=True) as place:
            await asyncio.sleep(5 * EVERY)
            with place.file.open("wb") as file:
                file.truncate(100 * 1024 * 1024)
            await until(lambda: "16 MiB" in (place.reloading.problem or ""))
            place.file.unlink()
            place.file.symlink_to(evil)
            await until(lambda: "become a link" in (place.reloading.problem or ""))
            assert list(place.gateway.pool.upstreams) == ["one"]

            place.file.unlink()
            place.write({"one": entry("one"), "two": entry("two")}, watch=True)
            await place.has("two__echo")
            assert place.reloading.problem is None

    run(main)


def test_what_is_written_while_the_gateway_starts_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_EVERY", EVERY)
    file = tmp_path / "toolfold.json"
    write(file, {"one": entry("one")}, watch=True)

    def load() -> GatewayConfig:
        return load_gateway(file, strict=False)

    async def main() -> None:
        async with Gateway(load()) as made:
            write(file, {"one": entry("one"), "two": entry("two")}, watch=True)
            async with GatewayControl("http", redactor=Redactor()).opened(made, load):
                await until(lambda: list(made.pool.upstreams) == ["one", "two"])

    run(main)
