"""Python functions beside servers in the gateway: what a client sees, calls and may."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as t
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from support.gateways import ERAS, ODD, Seen, client, gateway, odd, run, said, until
from toolfold import ConfigError, Scope
from toolfold.runtime import Registry
from toolfold.serve.gateway import Gateway
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.observe.metrics import Metrics
from toolfold.serve.observe.status_screen import Board
from toolfold.serve.principals import Principal
from toolfold.serve.trust.store import TrustStore
from toolfold.serve.trust.verdicts import Trust
from toolfold.sources.calls import Output, current_call
from toolfold.sources.source import Source

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

SERVE = "from toolfold.cli import main; main()"
OWN = """
import os
import time

from toolfold.runtime import Registry

print("this module prints when it is loaded")
registry = Registry()


@registry.tool(read_only=True)
def weigh(parcel: str, grams: int = 0) -> dict:
    "Weigh a parcel."
    print("this function prints")
    os.system("echo so does its child")
    return {"parcel": parcel, "grams": grams, "pid": os.getpid()}


@registry.tool(timeout=0.3)
def dawdle() -> str:
    "Take a very long while."
    time.sleep(30)
    return "done"


@registry.tool
async def explode(why: str) -> None:
    "Fail."
    raise ValueError(why)
"""


@dataclass
class Parcel:
    """A value that is an object in JSON."""

    name: str
    grams: int = 0


def functions() -> tuple[Registry, Source]:
    """A registry, and the source that serves it as `own`."""
    registry = Registry()

    @registry.tool(read_only=True)
    def weigh(parcel: str) -> Parcel:
        """Weigh a parcel."""
        return Parcel(parcel, len(parcel))

    @registry.tool(destructive=True)
    def burn(parcel: str) -> str:
        """Burn a parcel."""
        return f"{parcel} is ash"

    @registry.tool
    def send(parcel: str) -> str:
        """Send a parcel away."""
        return f"{parcel} is away"

    return registry, registry.prefixed("own")


def one(name: str, function: Any, **more: Any) -> Source:
    """A source `own` with one function."""
    registry = Registry()
    registry.tool(function, name=name, **more)
    return registry.prefixed("own")


def returns(value: Any) -> Callable[[], Any]:
    return lambda: value


def names(listed: t.ListToolsResult) -> list[str]:
    return [tool.name for tool in listed.tools]


# ---- as a process, with a real client


class Place:
    """A configuration with a module and a server, and what the gateway's process needs."""

    def __init__(self, folder: Path, **tool_search: Any) -> None:
        self.folder = folder
        self.config = folder / "both.json"
        self.errors = folder / "stderr"
        (folder / "own_tools.py").write_text(OWN, "utf-8")
        server = {"command": sys.executable, "args": [ODD, "stdio"], "allow": ["echo", "fail"]}
        whole = {
            "mcpServers": {"one": server},
            "functions": {"own": "./own_tools.py"},
            "serve": {"state_dir": str(folder / "state"), "audit": str(folder / "audit.jsonl")},
            "tools": {"tool_search": {"cache_dir": "off", **tool_search}},
        }
        self.config.write_text(json.dumps(whole), "utf-8")

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-c", SERVE, "serve", "--config", str(self.config), *options]


@asynccontextmanager
async def over_stdio(place: Place) -> AsyncIterator[Client]:
    program, *arguments = place.command()
    parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    with place.errors.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(parameters, errors), mode="legacy") as c:
            yield c


@asynccontextmanager
async def over_http(place: Place) -> AsyncIterator[Client]:
    with place.errors.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(  # noqa: ASYNC220
            place.command("--http", "127.0.0.1:0"), stdout=subprocess.DEVNULL, stderr=errors
        )
    try:
        found: list[str] = []

        def listens() -> bool:
            text = place.errors.read_text("utf-8")
            found.extend(re.findall(r"listening on (http://\S+)", text))
            return bool(found)

        await until(listens, 30)
        async with (
            httpx2.AsyncClient(timeout=httpx2.Timeout(30, read=None)) as http,
            Client(streamable_http_client(found[0], http_client=http), mode="auto") as c,
        ):
            yield c
    finally:
        process.terminate()
        process.wait(10)


async def held(c: Client, place: Place) -> None:
    """One session with a function and a server side by side."""
    assert names(await c.list_tools()) == ["tool_search", "tool_describe", "tool_call"]
    found = said(await c.call_tool("tool_search", {"query": "weigh a parcel"}))
    assert "own__weigh" in found
    assert "one__echo" in said(await c.call_tool("tool_search", {"query": "say a text back"}))
    assert "grams" in said(await c.call_tool("tool_describe", {"name": "own__weigh"}))

    async def call(name: str, **arguments: Any) -> t.CallToolResult:
        return await c.call_tool("tool_call", {"name": name, "arguments": arguments})

    assert said(await call("one__echo", x="a")) == "a"
    weighed = await call("own__weigh", parcel="a", grams="7")  # repaired as for servers
    assert weighed.structured_content == json.loads(said(weighed))
    assert (weighed.structured_content["parcel"], weighed.structured_content["grams"]) == ("a", 7)
    wrong = await call("own__weigh")
    assert wrong.is_error
    assert "parcel" in said(wrong)
    failed = await call("own__explode", why="it is wet")
    assert failed.is_error
    assert "it is wet" in said(failed)
    late = await call("own__dawdle")
    assert late.is_error
    assert said(late).startswith("own__dawdle did not end within 0.3 s")
    assert said(await call("one__echo", x="b")) == "b"
    lines = (place.folder / "audit.jsonl").read_text("utf-8").splitlines()
    calls = [(line["tool"], line["outcome"]) for line in map(json.loads, lines) if "tool" in line]
    assert calls == [
        ("one__echo", "ok"),
        ("own__weigh", "ok"),
        ("own__weigh", "refused"),
        ("own__explode", "failed"),
        ("own__dawdle", "timeout"),
        ("one__echo", "ok"),
    ]


@pytest.mark.parametrize("transport", [over_stdio, over_http])
def test_a_function_and_a_server_are_served_side_by_side(tmp_path: Path, transport: Any) -> None:
    async def main() -> None:
        place = Place(tmp_path, enabled="on")
        async with transport(place) as c:
            await held(c, place)

    run(main, 100)


def test_what_modules_and_functions_print_goes_to_standard_error(tmp_path: Path) -> None:
    async def main() -> None:
        place = Place(tmp_path)
        async with over_stdio(place) as c:
            assert not (await c.call_tool("own__weigh", {"parcel": "a"})).is_error
            await until(lambda: "this function prints" in place.errors.read_text("utf-8"))
        errors = place.errors.read_text("utf-8")
        assert "this module prints when it is loaded" in errors
        assert "so does its child" in errors
        assert "functions own: 3 tools" in errors

    run(main, 100)


@pytest.mark.parametrize("options", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_a_module_that_cannot_be_loaded_stops_the_gateway_with_the_fix(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    place = Place(tmp_path)
    (tmp_path / "own_tools.py").write_text("\nimport no_such_thing\n", "utf-8")

    ran = subprocess.run(
        place.command(*options), stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )

    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.decode().endswith(
        "own_tools.py`, line 2: ModuleNotFoundError: No module named 'no_such_thing'"
        f"{os.linesep}{os.linesep}hint: mend the file{os.linesep}"
    )


# ---- what a client gets


@pytest.mark.parametrize("mode", ERAS)
def test_an_object_is_a_structured_result_and_anything_else_a_text(mode: str) -> None:
    values: dict[str, Any] = {
        "text": "a",
        "nothing": None,
        "number": 7,
        "rows": [{"a": 1}],
        "object": {"a": {"b": [1.5, None]}},
        "made": Parcel("a"),
        "own": Output("in words", value={"a": 1}),
        "odd": {"half": "\ud83d"},
    }
    registry = Registry()
    for name, value in values.items():
        registry.tool(returns(value), name=name)

    async def main() -> None:
        got: dict[str, Any] = {}
        async with gateway(sources=[registry.prefixed("own")]) as made, client(made, mode) as c:
            for name in values:
                result = await c.call_tool(f"own__{name}", {})
                assert not result.is_error
                got[name] = (said(result), result.structured_content)
        assert got == {
            "text": ("a", None),
            "nothing": ("Done. It returned nothing.", None),
            "number": ("7", None),
            "rows": ('[{"a":1}]', None),
            "object": ('{"a":{"b":[1.5,null]}}', {"a": {"b": [1.5, None]}}),
            "made": ('{"name":"a","grams":0}', {"name": "a", "grams": 0}),
            "own": ("in words", {"a": 1}),
            "odd": ('{"half": "?"}', {"half": "?"}),
        }

    run(main)


def test_a_long_result_and_a_long_description_pass_whole() -> None:
    def long() -> str:
        return "x" * 100_000

    long.__doc__ = "Say much. " + "And more. " * 1_000

    async def main() -> None:
        async with gateway(sources=[one("long", long)]) as made, client(made) as c:
            (tool,) = (await c.list_tools()).tools
            assert len(tool.description or "") > 9_000
            assert said(await c.call_tool("own__long", {})) == "x" * 100_000

    run(main)


def test_a_plain_function_does_not_hold_up_the_others() -> None:
    entered, go = threading.Event(), threading.Event()

    def waits() -> bool:
        entered.set()
        return go.wait(20)

    async def main() -> None:
        async with (
            gateway(odd("one"), sources=[one("waits", waits)]) as made,
            client(made) as c,
        ):
            waiting = asyncio.create_task(c.call_tool("own__waits", {}))
            await until(entered.is_set)
            assert made.pool.in_flight == 1
            assert said(await c.call_tool("one__echo", {"x": "a"})) == "one:a"
            assert not waiting.done()
            go.set()
            assert said(await waiting) == "true"
            assert made.pool.in_flight == 0

    run(main)


def test_so_many_calls_of_a_module_run_at_once_and_the_others_wait() -> None:
    running: list[int] = []
    most: list[int] = []
    go = threading.Event()

    def works() -> bool:
        running.append(1)
        most.append(len(running))
        go.wait(20)
        running.pop()
        return True

    async def main() -> None:
        async with (
            gateway(sources=[one("works", works)], serve={"max_parallel": 2}) as made,
            client(made) as c,
        ):
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    group.create_task(c.call_tool("own__works", {}))
                await until(lambda: len(running) == 2)
                go.set()
            assert (len(most), max(most)) == (5, 2)

    run(main)


def test_core_functions_are_never_folded() -> None:
    registry, source = functions()
    registry.tool(lambda: "now", name="clock", core=True)

    async def main() -> None:
        async with (
            gateway(odd("one"), sources=[source], settings={"enabled": "on"}) as made,
            client(made) as c,
        ):
            listed = names(await c.list_tools())
            assert "own__clock" in listed
            assert "own__weigh" not in listed

    run(main)


def test_a_function_that_registers_another_tells_the_clients() -> None:
    registry, source = functions()

    def learn() -> str:
        registry.tool(lambda: "learnt", name="skill")
        return "ok"

    registry.tool(learn)

    async def main() -> None:
        told: list[str] = []

        async def hear(message: Any) -> None:
            told.append(getattr(message, "method", type(message).__name__))

        async with gateway(sources=[source]) as made, client(made, message_handler=hear) as c:
            await c.list_tools()
            assert said(await c.call_tool("own__learn", {})) == "ok"
            await until(lambda: "notifications/tools/list_changed" in told)
            assert said(await c.call_tool("own__skill", {})) == "learnt"
            registry.remove("skill")
            gone = await c.call_tool("own__skill", {})
            assert gone.is_error
            assert "is not available in this session" in said(gone)

    run(main)


def test_a_registry_is_served_as_it_is_and_the_settings_words_are_over_its_own() -> None:
    registry, _ = functions()

    async def main() -> None:
        hints = {"send": {"readOnlyHint": True}}
        async with (
            gateway(sources=[registry], settings={"annotations": hints}) as made,
            client(made) as c,
        ):
            listed = {tool.name: tool for tool in (await c.list_tools()).tools}
            assert listed["send"].annotations is not None
            assert listed["send"].annotations.read_only_hint is True
            assert said(await c.call_tool("send", {"parcel": "a"})) == "a is away"

    run(main)


def test_two_of_one_name_are_refused() -> None:
    async def main() -> None:
        _, source = functions()
        async with gateway() as made:
            config = made.config
        with pytest.raises(ConfigError, match="two sources are named 'own'"):
            Gateway(config, sources=[source, functions()[1]])
        with pytest.raises(ConfigError, match="a server and functions are both named 'own'"):
            async with gateway(odd("own"), sources=[source]):
                pass

    run(main)


def test_where_there_are_only_functions_what_is_folded_is_told_all_the_same() -> None:
    async def main() -> None:
        _, source = functions()
        board, metrics = Board(), Metrics()
        async with gateway(sources=[source], observers=(board, metrics)):
            await until(lambda: board.fold)
        assert board.lines(80) == ["toolfold", "tools 3 · calls 0 · searches 0"]
        assert "toolfold_tools 3" in metrics.text()

    run(main)


# ---- who may what


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        (Principal("a", Scope(allow=("own__*",))), ["own__weigh", "own__burn", "own__send"]),
        (Principal("b", Scope(allow=("@own",), deny=("*burn",))), ["own__weigh", "own__send"]),
        (Principal("c", Scope(allow=("@one",))), ["one__echo"]),
        (Principal("d", Scope(deny=("@own",))), ["one__echo"]),
        (Principal("e", read_only=True), ["one__echo", "own__weigh"]),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_scopes_and_read_only_hold_for_functions(who: Principal, seen: list[str]) -> None:
    async def main() -> None:
        _, source = functions()
        async with (
            gateway(odd("one", allow=("echo",)), sources=[source]) as made,
            client(made, who=who) as c,
        ):
            assert names(await c.list_tools()) == seen
            for name in ("one__echo", "own__weigh", "own__burn"):
                if name not in seen:
                    told = said(await c.call_tool(name, {}))
                    assert told.startswith(f'"{name}" is not available in this session.')

    run(main)


def test_a_function_denied_by_its_own_name_is_denied_however_it_is_served() -> None:
    async def main() -> None:
        who = Principal("a", Scope(deny=("own__größe",)))
        source = one("größe", lambda: 1)
        async with gateway(sources=[source]) as made, client(made, who=who) as c:
            assert names(await c.list_tools()) == []

    run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_destructive_functions_are_asked_about(mode: str) -> None:
    async def main() -> None:
        asked: list[str] = []
        answers = iter(["accept", "decline"])

        async def answer(context: object, params: Any) -> t.ElicitResult:
            asked.append(params.message)
            return t.ElicitResult(action=next(answers), content={})  # type: ignore[arg-type]

        _, source = functions()
        hints = {"own__send": {"destructiveHint": False}}
        async with (
            gateway(
                sources=[source], serve={"destructive": "ask"}, settings={"annotations": hints}
            ) as made,
            client(made, mode, elicitation_callback=answer) as c,
        ):
            assert said(await c.call_tool("own__burn", {"parcel": "a"})) == "a is ash"
            no = await c.call_tool("own__burn", {"parcel": "b"})
            assert said(no).startswith("own__burn was not run. The user said no.")
            assert said(await c.call_tool("own__send", {"parcel": "c"})) == "c is away"
            assert not (await c.call_tool("own__weigh", {"parcel": "d"})).is_error
        assert asked == [
            f'Run own__burn? It may destroy something. Arguments: {{"parcel":"{name}"}}'
            for name in "ab"
        ]

    run(main)


def test_functions_need_nobodys_trust(tmp_path: Path) -> None:
    async def main() -> None:
        _, source = functions()
        trust = Trust(TrustStore(tmp_path), "all")
        async with gateway(odd("one"), sources=[source], trust=trust) as made, client(made) as c:
            assert names(await c.list_tools()) == ["own__weigh", "own__burn", "own__send"]

    run(main)


def test_audit_and_metrics_hold_the_calls_of_functions(tmp_path: Path) -> None:
    def fails() -> None:
        raise ValueError("it is wet")

    async def main() -> None:
        registry, source = functions()
        registry.tool(fails)
        registry.tool(lambda: Output("no", is_error=True), name="errs")
        audit, metrics, seen = AuditLog(tmp_path / "audit.jsonl"), Metrics(), Seen()
        async with (
            gateway(
                sources=[source],
                serve={"destructive": "refuse"},
                settings={"annotations": {"own__[ef]*": {"destructiveHint": False}}},
                observers=(audit, metrics, seen),
            ) as made,
            client(made) as c,
        ):
            await c.call_tool("own__weigh", {"parcel": "a"})
            await c.call_tool("own__burn", {"parcel": "a"})
            await c.call_tool("own__fails", {})
            await c.call_tool("own__errs", {})
        audit.close()
        text = (tmp_path / "audit.jsonl").read_text("utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        got = [(line["server"], line["tool"], line["outcome"], line["error"]) for line in lines]
        assert got == [
            ("own", "own__weigh", "ok", None),
            ("own", "own__burn", "refused", seen.calls[1].error),
            ("own", "own__fails", "failed", "it is wet"),
            ("own", "own__errs", "tool_error", None),
        ]
        assert lines[0]["request_size"] == len('{"parcel":"a"}')
        assert lines[0]["result_size"] == len('{"name":"a","grams":1}')
        counted = 'toolfold_calls_total{server="own",tool="own__fails",outcome="failed"} 1'
        assert counted in metrics.text()

    run(main)


def test_a_client_that_gives_up_is_told_to_the_function_and_to_the_observers() -> None:
    from toolfold.runtime import current_call

    entered, left = threading.Event(), threading.Event()

    def waits() -> None:
        entered.set()
        end = time.monotonic() + 20
        while not current_call().cancelled and time.monotonic() < end:
            left.wait(0.01)
        left.set()

    async def main() -> None:
        seen = Seen()
        async with (
            gateway(sources=[one("waits", waits)], observers=(seen,)) as made,
            client(made) as c,
        ):
            waiting = asyncio.create_task(c.call_tool("own__waits", {}))
            await until(entered.is_set)
            waiting.cancel()
            await until(left.is_set)
            await until(lambda: seen.calls)
            assert [call.outcome for call in seen.calls] == ["cancelled"]

    run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_hears_how_far_a_function_is(mode: str) -> None:
    registry = Registry()

    @registry.tool
    def copy() -> str:  # pyright: ignore[reportUnusedFunction]
        "Copy everything, in a thread."
        for i in range(1, 4):
            current_call().progress(f"part {i}", i / 4)
        current_call().progress("and a last word")
        return "done"

    @registry.tool
    async def count() -> str:  # pyright: ignore[reportUnusedFunction]
        "Count without an end that anybody knows."
        for word in ("one", "two"):
            current_call().progress(word)
        return "done"

    async def main() -> None:
        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        async with (
            gateway(sources=[registry.prefixed("own")]) as made,
            client(made, mode) as c,
        ):
            assert said(await c.call_tool("own__copy", {}, progress_callback=hear)) == "done"
            assert heard[:3] == [(i / 4, 1.0, f"part {i}") for i in range(1, 4)]
            assert heard[3][1:] == (1.0, "and a last word")
            assert heard[3][0] > heard[2][0]
            heard.clear()
            await c.call_tool("own__count", {}, progress_callback=hear)
            assert heard == [(1.0, None, "one"), (2.0, None, "two")]
            # Who does not ask is not told.
            assert said(await c.call_tool("own__count", {})) == "done"
            assert len(heard) == 2

    run(main)
