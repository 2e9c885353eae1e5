"""Arguments through the gateway: judged as the schema means it, and mended before they are sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.gateways import client, gateway, run, said
from toolfold.sources.mcp.server import Server

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

EVIL = str(Path(__file__).parents[1] / "support" / "servers" / "evil.py")
TICKET = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "enum": ["OPEN", "CLOSED"]},
        "due": {"type": "string", "format": "date-time", "nullable": True},
        "match": {"type": "object", "additionalProperties": {"type": "string"}},
        "target": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/page"}]},
        "share": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "$defs": {
        "page": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "unused": {"type": "object", "description": "x" * 500},
    },
}
SIGNATURE = (
    'desk__ticket(state?: "OPEN"|"CLOSED", due?: date-time, match?: {*: string}, '
    "target?: integer|{id: string}, share?: 0..100)"
)


def desk(folder: Path) -> Server:
    listed = folder / "listed.json"
    records = [
        {"name": "ticket", "description": "Change a ticket.", "inputSchema": TICKET},
        {"name": "odd", "description": "Take a text.", "inputSchema": {"type": "string"}},
        {"name": "bare", "description": "Take anything.", "inputSchema": True},
    ]
    listed.write_text(json.dumps(records), "utf-8")
    env = {"TOOLS": str(listed), "OUT": str(folder / "ran.txt")}
    return Server("desk", "stdio", command=sys.executable, args=(EVIL,), env=env)


def ran(folder: Path) -> list[str]:
    lines = (folder / "ran.txt").read_text("utf-8").splitlines()
    return [line.removeprefix("run ") for line in lines if line.startswith("run ")]


def test_what_a_call_needs_to_be_right_holds_in_the_gateway(tmp_path: Path) -> None:
    async def main() -> None:
        settings = {"enabled": "on", "ranker": "bm25"}
        async with gateway(desk(tmp_path), settings=settings) as made, client(made) as c:

            async def call(name: str, arguments: Any) -> Any:
                given = {"name": f"desk__{name}", "arguments": arguments}
                return await c.call_tool("tool_call", given)

            nearly = {"state": "open", "due": None, "match": "", "target": '"{\\"id\\": \\"p\\"}"'}
            assert not (await call("ticket", nearly)).is_error
            assert not (await call("ticket", json.dumps(json.dumps({"share": "5"})))).is_error
            assert not (await call("odd", {"x": "1"})).is_error
            assert not (await call("bare", {"x": "1"})).is_error
            late = await call("ticket", {"due": "next week"})
            nowhere = await call("ticket", {"target": {"name": "p"}})
            found = await c.call_tool("tool_search", {"query": "change a ticket", "limit": 1})
            shown = await c.call_tool("tool_describe", {"name": "desk__ticket"})

        assert ran(tmp_path) == [
            'ticket {"state": "OPEN", "due": null, "match": {}, "target": {"id": "p"}}',
            'ticket {"share": 5}',
            'odd {"x": "1"}',
            'bare {"x": "1"}',
        ]
        assert said(late) == (
            'desk__ticket was not run. due: is not a date-time such as "2026-01-31T09:30:00Z". '
            f"Signature: {SIGNATURE}"
        )
        assert said(nowhere) == (
            "desk__ticket was not run. target: must be either an integer or an object with `id`. "
            f"Signature: {SIGNATURE}"
        )
        assert f"- {SIGNATURE} [desk]: Change a ticket." in said(found)
        assert list(json.loads(said(shown))["parameters"]["$defs"]) == ["page"]

    run(main)
