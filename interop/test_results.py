"""What a tool answers is the same through the gateway as at the server itself, to the letter."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from calls import CALLS, LEFT_OUT, UNFIT, comparable
from gateways import Gateway, configured
from servers import World
from web import Web

from wire import NEW, OLD, Refused, Wire, over_http, over_stdio

Through: TypeAlias = Literal["direct", "bridge", "reveal"]

BEST = {"time": NEW, "git": NEW, "fetch": NEW}
"""The latest revision that each server speaks, where it is not the older one."""


@pytest.fixture
def world(web: Web, tmp_path: Path) -> World:
    return World(tmp_path / "world", web.url)


@contextmanager
def at_the_server(world: World, server: str) -> Generator[Wire]:
    entry = world.entries[server]
    command = [entry["command"], *entry["args"]]
    with over_stdio(command, BEST.get(server, OLD), entry.get("env")) as wire:
        yield wire


@contextmanager
def at_the_gateway(gateway: Gateway, over: str, version: str) -> Generator[Wire]:
    if over == "stdio":
        with over_stdio(gateway.command, version) as wire:
            yield wire
    else:
        with gateway.listening() as url, over_http(url, version) as wire:
            yield wire


def gateway_over(world: World, server: str, through: Through, folder: Path) -> Gateway:
    fold, mode = {
        "direct": ("off", "bridge"),
        "bridge": ("on", "bridge"),
        "reveal": ("on", "reveal"),
    }[through]
    return configured(folder, {server: world.entries[server]}, fold=fold, mode=mode)


def answered(wire: Wire, name: str, arguments: Any) -> str:
    """The answer as JSON, with keys in the order in which they came."""
    try:
        answer = {"result": wire.ask("tools/call", {"name": name, "arguments": arguments})}
    except Refused as refused:
        answer = {"error": refused.error}
    return comparable(json.dumps(answer, ensure_ascii=False))


def without(answer: str, key: str) -> str:
    found = json.loads(answer)
    found.get("result", {}).pop(key, None)
    return json.dumps(found, ensure_ascii=False)


@pytest.mark.parametrize("server", CALLS)
@pytest.mark.parametrize(
    ("through", "over", "version"),
    [
        ("direct", "stdio", OLD),
        ("direct", "http", NEW),
        ("bridge", "stdio", NEW),
        ("bridge", "http", OLD),
        ("reveal", "stdio", OLD),
    ],
)
def test_results_are_the_servers_own(
    server: str, through: Through, over: str, version: str, world: World, tmp_path: Path
) -> None:
    world.folder.mkdir()
    calls = CALLS[server](world)
    if through == "direct":
        calls += UNFIT.get(server, [])
    world.build()
    with at_the_server(world, server) as wire:
        wanted = [answered(wire, name, arguments) for name, arguments in calls]
    world.build()
    made = gateway_over(world, server, through, tmp_path / "gateway")
    with at_the_gateway(made, over, version) as wire:
        got: list[str] = []
        for name, arguments in calls:
            exposed = f"{server}__{name}"
            if through == "bridge":
                wrapped = {"name": exposed, "arguments": arguments}
                got.append(answered(wire, "tool_call", wrapped))
            else:
                got.append(answered(wire, exposed, arguments))

    # `resultType` belongs to the newer revision, with which the client began or did not.
    for call, one, other in zip(calls, wanted, got, strict=True):
        assert without(other, "resultType") == without(one, "resultType"), call
        assert ('"resultType": "complete"' in other) is (version == NEW), call


@pytest.mark.parametrize("server", CALLS)
def test_every_tool_is_compared_or_left_out_for_a_reason(
    server: str, world: World, tmp_path: Path
) -> None:
    world.folder.mkdir()
    world.build()
    made = gateway_over(world, server, "direct", tmp_path / "gateway")
    with at_the_gateway(made, "stdio", OLD) as wire:
        listed = {tool["name"] for tool in wire.ask("tools/list")["tools"]}

    compared = {name for name, _ in CALLS[server](world)} | set(LEFT_OUT.get(server, ()))
    assert listed == {f"{server}__{name}" for name in compared}


@pytest.mark.parametrize("server", CALLS)
def test_tools_are_listed_as_the_server_lists_them_but_for_their_names(
    server: str, world: World, tmp_path: Path
) -> None:
    world.folder.mkdir()
    world.build()
    with at_the_server(world, server) as wire:
        wanted = {tool["name"]: tool for tool in wire.ask("tools/list")["tools"]}
    made = gateway_over(world, server, "direct", tmp_path / "gateway")
    with at_the_gateway(made, "stdio", BEST.get(server, OLD)) as wire:
        got = {tool["name"]: tool for tool in wire.ask("tools/list")["tools"]}

    for name, tool in wanted.items():
        assert got[f"{server}__{name}"] == {**tool, "name": f"{server}__{name}"}
