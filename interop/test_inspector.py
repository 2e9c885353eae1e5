"""The MCP Inspector's connected command line: it can be asked, and has roots and completions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients import Target, Way, text
from gateways import Gateway, configured
from servers import PARTS, everything_entry
from test_questions import reached, texts
from ways import EVERY_WAY

_COMMAND = str(PARTS / "node_modules" / ".bin" / "mcpdo")
INSPECTOR_WAYS = [way for way in EVERY_WAY if way.client == "inspector"]


class Connection:
    """A connection that a process of the Inspector's own keeps open between commands."""

    def __init__(self, home: Path) -> None:
        # Its sockets are in the home folder, and their paths must be short.
        self._env = {**os.environ, "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"}

    def do(self, *given: str) -> Any:
        """Run a command and return what it prints."""
        done = subprocess.run(
            [_COMMAND, "--format", "json", "--connection", "gateway", *given],
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip().startswith("{") else done.stdout

    def through(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool through the bridge."""
        wrapped = {"name": name, "arguments": arguments or {}}
        return self.do("tools/call", "tool_call", json.dumps(wrapped))


@contextmanager
def connection(home: Path, way: Way, target: Target) -> Generator[Connection]:
    made = Connection(home)
    era = {"old": "legacy", "new": "modern"}[way.era]
    try:
        opened = made.do("connect", "--era", era, "--", *(target.command or [target.url]))
        assert opened["protocolEra"] == era
        yield made
    finally:
        made.do("daemon", "stop")


@pytest.fixture
def everything(tmp_path: Path) -> Gateway:
    return configured(tmp_path / "gateway", {"everything": everything_entry()})


@pytest.mark.parametrize("way", INSPECTOR_WAYS, ids=str)
def test_the_inspector_is_asked_and_answers(way: Way, everything: Gateway, tmp_path: Path) -> None:
    name = "everything__trigger-elicitation-request"
    with reached(everything, way) as target, connection(tmp_path, way, target) as inspector:
        asked = inspector.through(name)["elicitationPending"]
        accepted = inspector.do("elicitation/respond", asked["elicitationId"], '{"name": "Ada"}')
        again = inspector.through(name)["elicitationPending"]
        declined = inspector.do("elicitation/respond", again["elicitationId"], "--decline")

    assert asked["message"] == (
        "The server 'everything' asks: Please provide inputs for the following fields:"
    )
    assert asked["requestedSchema"]["properties"]["integer"]["maximum"] == 100
    assert "- Name: Ada" in texts(accepted)
    assert "User declined" in texts(declined)


@pytest.mark.parametrize("way", INSPECTOR_WAYS, ids=str)
def test_the_inspector_searches_completes_and_gives_its_roots(
    way: Way, everything: Gateway, tmp_path: Path
) -> None:
    with reached(everything, way) as target, connection(tmp_path, way, target) as inspector:
        found = inspector.do("tools/call", "tool_search", '{"query": "add two numbers"}')
        inspector.do("roots/set", "--roots-json", '[{"uri": "file:///home/ada"}]')
        roots = inspector.through("everything__get-roots-list")
        values = inspector.do(
            "prompts/complete", "--complete-ref-type", "ref/prompt",
            "--complete-ref", "everything__completable-prompt",
            "--complete-arg-name", "department", "--complete-arg-value", "S",
        )  # fmt: skip

    assert "everything__get-sum(a: number, b: number)" in text(found)
    assert "URI: file:///home/ada" in text(roots)
    assert values["values"] == ["Sales", "Support"]
