"""An MCP server of 64 tools over standard input and output; what is called is written down.

python interop/office.py LOG
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["NAMES", "SCRIPT", "answer", "called"]

SCRIPT = str(Path(__file__).resolve())
_THINGS = (
    "invoice customer contract parcel warehouse_slot meeting_room badge printer "
    "vacation_request expense_claim purchase_order supplier ticket newsletter survey vehicle"
).split()
_DEEDS = {
    "create": "Create a new {} and return its number.",
    "find": "Find a {} by its number or by words that stand in it.",
    "update": "Change fields of a {} that exists already.",
    "archive": "Put a {} away that is needed no more; it can be found again later.",
}
NAMES = [f"{deed}_{thing}" for thing in _THINGS for deed in _DEEDS]


def answer(name: str, arguments: dict[str, Any]) -> str:
    """Return what a call comes to."""
    return f"{name} done for {arguments['number']} ✓"


def called(log: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that reached the server."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def _tool(name: str) -> dict[str, Any]:
    deed, _, thing = name.partition("_")
    plain = thing.replace("_", " ")
    properties = {
        "number": {"type": "integer", "description": f"The number of the {plain}."},
        "note": {"type": "string", "description": "What a colleague should know about it."},
        "urgent": {"type": "boolean", "description": "Whether it is to be done at once."},
    }
    return {
        "name": name,
        "description": _DEEDS[deed].format(plain),
        "inputSchema": {"type": "object", "properties": properties, "required": ["number"]},
    }


def _result(request: dict[str, Any], log: Path) -> dict[str, Any]:
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "office", "version": "1"},
            }
        case "tools/list":
            return {"tools": [_tool(name) for name in NAMES]}
        case "tools/call":
            name, arguments = params["name"], params.get("arguments") or {}
            with log.open("a") as file:
                file.write(json.dumps([name, arguments]) + "\n")
            return {"content": [{"type": "text", "text": answer(name, arguments)}]}
        case _:
            return {}


def main() -> None:
    """Serve until the input ends."""
    log = Path(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": _result(request, log)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
