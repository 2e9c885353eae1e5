"""Clients and servers of different revisions of the protocol, with the gateway between them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from support.gateways import client, gateway, run, said
from toolfold.sources.mcp.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

BOTH = str(Path(__file__).parents[1] / "support" / "servers" / "both.py")


@contextmanager
def listening() -> Generator[str]:
    """A server of both families over HTTP; yields its address."""
    with subprocess.Popen([sys.executable, BOTH, "http"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.kill()


async def accept(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"v": params.message})


ASKED = "The server 'both' asks:"


def test_over_http_each_client_is_asked_in_the_way_of_its_own_revision() -> None:
    async def main() -> None:
        with listening() as url:
            async with gateway(Server("both", "http", url=url)) as made:
                async with client(made, "legacy", elicitation_callback=accept) as old:
                    answer = said(await old.call_tool("both__asks_midway", {}))
                    assert answer == f"midway {{'v': \"{ASKED} midway?\"}}"
                    assert said(await old.call_tool("both__revision", {})) == "2025-11-25"
                async with client(made, "auto", elicitation_callback=accept) as new:
                    answer = said(await new.call_tool("both__asks_between", {}))
                    assert answer == f"between {{'v': \"{ASKED} between?\"}}"
                    assert said(await new.call_tool("both__revision", {})) == "2026-07-28"

    run(main)


def test_a_client_that_cannot_be_asked_needs_no_second_line() -> None:
    async def main() -> None:
        with listening() as url:
            async with gateway(Server("both", "http", url=url)) as made:
                async with client(made, "legacy") as old:
                    assert said(await old.call_tool("both__revision", {})) == "2026-07-28"
                assert made.pool.upstreams["both"].older is None

    run(main)


@pytest.mark.parametrize(("mode", "tool"), [("legacy", "asks_midway"), ("auto", "asks_between")])
def test_over_stdio_a_server_speaks_the_revision_of_its_first_client(mode: str, tool: str) -> None:
    async def main() -> None:
        server = Server("both", "stdio", command=sys.executable, args=(BOTH,))
        async with gateway(server) as made, client(made, mode, elicitation_callback=accept) as c:
            answer = said(await c.call_tool(f"both__{tool}", {}))
            assert answer.startswith(tool.partition("_")[2] + " {'v'")
            assert made.pool.upstreams["both"].restarts == 0

    run(main)


REFUSING = """
import json, sys
versions, refused = json.loads(sys.argv[1]), False
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    print(method, file=sys.stderr)
    with open(sys.argv[2], "a") as heard:
        heard.write(f"{method}\\n")
    if "id" not in asked:
        continue
    out = {"jsonrpc": "2.0", "id": asked["id"]}
    if not refused:
        refused = True
        data = {"supported": versions, "requested": "2026-07-28"}
        out["error"] = {"code": -32022, "message": "Unsupported", "data": data}
    elif method == "server/discover":
        out["result"] = {
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        }
    elif method == "initialize":
        out["result"] = {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "refusing", "version": "1"},
        }
    else:
        out["result"] = {"resultType": "complete", "tools": []}
    print(json.dumps(out), flush=True)
"""


@pytest.mark.parametrize(
    ("versions", "asked"),
    [
        (["2026-07-28"], ["server/discover", "server/discover", "tools/list"]),
        (["2027-01-01", "2026-07-28"], ["server/discover", "server/discover", "tools/list"]),
        (
            ["2025-11-25"],
            ["server/discover", "initialize", "notifications/initialized", "tools/list"],
        ),
    ],
)
def test_a_refused_version_is_tried_again_with_one_that_the_server_names(
    tmp_path: Path, versions: list[str], asked: list[str]
) -> None:
    script = tmp_path / "refusing.py"
    script.write_text(REFUSING, "utf-8")
    heard = tmp_path / "heard.txt"
    args = (str(script), json.dumps(versions), str(heard))
    server = Server("refusing", "stdio", command=sys.executable, args=args)

    async def main() -> None:
        async with gateway(server) as made:
            assert made.pool.upstreams["refusing"].state == "ready"
        assert heard.read_text("utf-8").split()[: len(asked)] == asked

    run(main)
