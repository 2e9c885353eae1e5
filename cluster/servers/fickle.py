"""An MCP server whose list of tools is another every 200 ms: `python -S -E fickle.py`."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from typing import Any

_SENDING = threading.Lock()
_NUMBERS = itertools.count()


def send(message: dict[str, Any]) -> None:
    """Send a message to the client."""
    with _SENDING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def change() -> None:
    """Say again and again that the list is another."""
    pause = threading.Event()
    while not pause.wait(0.2):
        send({"method": "notifications/tools/list_changed"})


def result(method: str) -> dict[str, Any]:
    """Return what a request comes to."""
    if method == "initialize":
        about = {"name": "fickle", "version": "1"}
        able = {"tools": {"listChanged": True}}
        return {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": about}
    if method == "tools/list":
        tool = {"name": "now", "description": f"Number {next(_NUMBERS)}."}
        return {"tools": [{**tool, "inputSchema": {"type": "object"}}]}
    return {}


if __name__ == "__main__":
    threading.Thread(target=change, daemon=True).start()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            send({"id": request["id"], "result": result(request["method"])})
