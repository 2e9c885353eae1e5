"""`run: once` where nothing is shared: the same as `each`, with nothing more imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.place import HELLO, SERVE, WILD

pytestmark = pytest.mark.slow

TOLD = """
import atexit, sys
shared = ("psycopg", "toolfold.serve.replica.", "toolfold.shared")
atexit.register(lambda: print("loaded:", *sorted(
    name for name in sys.modules if name.startswith(shared)), file=sys.stderr))
"""


def test_without_a_shared_store_a_server_is_started_as_ever(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    entry = {
        "command": sys.executable,
        "args": ["-S", "-E", WILD],
        "env": {"WHO": "one:", "RUNS": str(tmp_path / "runs")},
        "run": "once",
    }
    serve = {"state_dir": str(tmp_path / "state"), "audit": "off"}
    config.write_text(json.dumps({"mcpServers": {"one": entry}, "serve": serve}), "utf-8")
    call = {"name": "one__write", "arguments": {"x": "a"}}
    messages = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(
        [sys.executable, "-c", TOLD + SERVE, "--config", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while (answer := json.loads(process.stdout.readline())).get("id") != 1:
            pass
        assert answer["result"]["content"][0]["text"] == "one:a"
        _, errors = process.communicate(timeout=20)
    assert b"loaded:\n" in errors.replace(b"\r\n", b"\n")
