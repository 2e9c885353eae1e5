"""An MCP server over stdio that must not run twice, and writes down whether it did.

`python -S -E single_server.py FILE`: every line of the file is one thing that happened, with the
process that it happened in.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

BOOK = Path(sys.argv[1])
OUT = threading.Lock()
GROWN: list[str] = []
GIVEN_UP: set[Any] = set()


def note(what: str, x: str = "") -> None:
    with BOOK.open("a", encoding="utf-8") as file:
        file.write(json.dumps([what, x, os.getpid()]) + "\n")


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def say(message: dict[str, Any]) -> None:
    with OUT:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tool(name: str) -> dict[str, Any]:
    properties = {"x": {"type": "string"}, "seconds": {"type": "number"}}
    return {
        "name": name,
        "description": f"To {name} something.",
        "inputSchema": {"type": "object", "properties": properties},
    }


def call(number: Any, params: dict[str, Any]) -> None:
    name, given = params["name"], params.get("arguments", {})
    x = given.get("x", "")
    note("call", x)
    if name == "grow":
        GROWN.append(x)
        say({"method": "notifications/tools/list_changed"})
    if name == "huge":
        x = "x" * (17 * 1024 * 1024)
    end = time.monotonic() + given.get("seconds", 0)
    token = params.get("_meta", {}).get("progressToken")
    while time.monotonic() < end:
        time.sleep(0.05)
        if number in GIVEN_UP:
            note("given up", x)
            return
        if token is not None:
            told = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
            say({"method": "notifications/progress", "params": told})
            token = None
    note("done", x[:100])
    say({"id": number, "result": {"content": [{"type": "text", "text": x}]}})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        can = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "completions": {}}
        info = {"name": "single", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [tool(name) for name in ("write", "slow", "grow", "huge", *GROWN)]}
    if method == "resources/list":
        return {"resources": [{"uri": "book://one", "name": "one"}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"read by {os.getpid()}"}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}
    if method == "prompts/get":
        text = {"type": "text", "text": f"Greet {params['arguments']['who']}."}
        return {"messages": [{"role": "user", "content": text}]}
    if method == "completion/complete":
        return {"completion": {"values": ["Ann", "Bob"]}}
    return {"resourceTemplates": []} if method == "resources/templates/list" else None


def main() -> None:
    if BOOK.exists():
        for line in BOOK.read_text(encoding="utf-8").splitlines():
            what, _, pid = json.loads(line)
            if what == "start" and lives(pid):
                note("overlap", str(pid))
    note("start")
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        params = message.get("params", {})
        if method == "notifications/cancelled":
            GIVEN_UP.add(params["requestId"])
        elif number is None or method is None:
            continue
        elif method == "tools/call":
            threading.Thread(target=call, args=(number, params), daemon=True).start()
        else:
            result = answer(method, params)
            missing = {"code": -32601, "message": "Method not found"}
            say({"id": number, **({"result": result} if result else {"error": missing})})


main()
