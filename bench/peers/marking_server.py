"""A server that writes every run down: `python -S -E marking_server.py NAME FOLDER`.

Nothing but the standard library is imported, so it is there again soon after it was killed.
Its process id is in `FOLDER/NAME.pid`; each run appends its mark to `FOLDER/runs` before it is
answered, in one write, so that a run is on record whenever the process dies.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

NAME, FOLDER = sys.argv[1:3]
TOOL = {
    "name": "write",
    "description": f"Write a mark into {NAME}.",
    "inputSchema": {
        "type": "object",
        "properties": {"mark": {"type": "string"}, "seconds": {"type": "number"}},
        "required": ["mark"],
    },
    "annotations": {"destructiveHint": False},
}
RUNS = os.open(os.path.join(FOLDER, "runs"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
lock = threading.Lock()


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return what a request comes to."""
    if method == "initialize":
        about = {"name": NAME, "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = params["arguments"]
        os.write(RUNS, f"{arguments['mark']}\n".encode())
        time.sleep(arguments.get("seconds", 0))
        return {"content": [{"type": "text", "text": f"{NAME} {arguments['mark']}"}]}
    return {}


def answer(request: dict[str, Any]) -> None:
    """Answer one request."""
    came = result(request["method"], request.get("params") or {})
    line = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": came}).encode() + b"\n"
    with lock:
        os.write(1, line)


def main() -> None:
    """Say who is here, and answer each request in a thread of its own."""
    path = os.path.join(FOLDER, f"{NAME}.pid")
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.replace(f"{path}.new", path)
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        if "id" in request and "method" in request:
            threading.Thread(target=answer, args=(request,), daemon=True).start()


if __name__ == "__main__":
    main()
