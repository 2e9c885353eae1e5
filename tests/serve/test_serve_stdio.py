"""`toolfold serve` as a process over its pipes: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.gateways import ODD
from support.machine import is_alive

SERVE = "from toolfold.cli.serve import command; command.main(prog_name='toolfold serve')"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
DISCOVER: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


class Served:
    """A running `toolfold serve`."""

    def __init__(self, folder: Path, servers: dict[str, list[str]], *options: str) -> None:
        config = folder / "mcp.json"
        entries = {
            name: {"command": sys.executable, "args": [ODD, "stdio", *flags]}
            for name, flags in servers.items()
        }
        serve = {"state_dir": str(folder / "state"), "audit": "off", "drain": 0.2}
        config.write_text(json.dumps({"mcpServers": entries, "serve": serve}), "utf-8")
        self.stderr = folder / "stderr"
        self.began = time.monotonic()
        with self.stderr.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE, "--config", str(config), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, number: int, method: str, **params: Any) -> Any:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while (answer := self.read()).get("id") != number:
            assert "method" in answer
        return answer["result"]

    def call(self, number: int, name: str, **arguments: Any) -> str:
        return self.ask(number, "tools/call", name=name, arguments=arguments)["content"][0]["text"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Any]:
    started: list[Served] = []

    def start(servers: dict[str, list[str]], *options: str) -> Served:
        started.append(Served(tmp_path, servers, *options))
        return started[-1]

    yield start
    for one in started:
        for pipe in (one.process.stdin, one.process.stdout):
            assert pipe is not None
            pipe.close()
        one.process.wait(10)


@pytest.mark.slow  # by the clock
@pytest.mark.parametrize("first", [HELLO, DISCOVER], ids=["initialize", "discover"])
def test_the_first_answer_comes_within_a_second_though_a_server_hangs(
    served: Any, first: Any
) -> None:
    one = served({"hangs": ["hang"], "good": []})
    one.send(first)
    early = one.read()

    assert time.monotonic() - one.began < 1
    assert early["id"] == 0

    # A line before it leaves the answer to the library, which says the very same.
    other = served({"good": []})
    other.send(b"{}", first)
    late = other.read()
    assert late.get("id") is None or late == early
    assert late == early or other.read() == early


@pytest.mark.parametrize("how", ["closed", "SIGTERM", "SIGINT"])
def test_it_ends_at_once_and_leaves_nothing_running(served: Any, how: str) -> None:
    one = served({"good": [], "old": ["old"], "hangs": ["hang"]})
    one.send(HELLO)
    assert one.read()["result"]["serverInfo"]["name"] == "toolfold"
    one.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    pids = [int(one.call(i, name)) for i, name in enumerate(["good__pid", "old__child"], 1)]
    one.send({
        "jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "good__slow", "arguments": {"x": "60"}},
    })  # fmt: skip
    began = time.monotonic()

    if how == "closed":
        one.process.stdin.close()
    else:
        one.process.send_signal(getattr(signal, how))

    assert one.process.wait(10) == 0
    assert time.monotonic() - began < 4
    assert not any(map(is_alive, pids))
    left = one.process.stdout.read().splitlines()
    assert [json.loads(line)["id"] for line in left] in ([], [9])


def test_standard_output_carries_protocol_alone(served: Any) -> None:
    one = served({"prints": ["rubbish"]}, "-v")
    one.send(HELLO)
    one.read()
    one.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert one.call(1, "prints__echo", x="a") == "a"
    assert len(one.ask(2, "tools/list")["tools"]) == 17
    one.process.stdin.close()
    assert one.process.stdout.read() == b""
    assert "server prints: ready, 17 tools" in one.stderr.read_text("utf-8")


def test_a_scope_on_the_command_line_holds_for_everybody(served: Any) -> None:
    one = served({"one": [], "two": []}, "--allow", "@one", "--deny", "*__[!p]*")
    one.send(HELLO)
    one.read()
    one.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    names = [tool["name"] for tool in one.ask(1, "tools/list")["tools"]]
    assert names == ["one__progress", "one__pid"]
    told = one.call(2, "two__pid")
    assert told == '"two__pid" is not available in this session. Did you mean one__pid?'
    assert one.ask(3, "prompts/list") == {"prompts": []}


def test_over_http_it_says_where_it_listens_and_ends_at_once(served: Any) -> None:
    one = served({"good": [], "hangs": ["hang"]}, "--http", "127.0.0.1:0")
    end = time.monotonic() + 20
    while not (found := re.search(r"listening on (http://\S+)", one.stderr.read_text("utf-8"))):
        assert time.monotonic() < end
        time.sleep(0.05)
    headers = {"accept": "application/json, text/event-stream", "mcp-method": "tools/call"}
    headers |= {"mcp-protocol-version": "2026-07-28", "mcp-name": "good__pid"}
    call = {"name": "good__pid", "arguments": {}, **DISCOVER["params"]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = httpx2.post(found[1], json=body, headers=headers, timeout=20).json()
    pid = int(answer["result"]["content"][0]["text"])

    assert is_alive(pid)
    one.process.terminate()
    assert one.process.wait(10) == 0
    assert not is_alive(pid)
    assert one.process.stdout.read() == b""
