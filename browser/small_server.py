"""A small MCP server over its pipes, with the tools of a file: `python small_server.py FILE`.

It needs nothing but Python. A tool called `die` ends the process; the others say their arguments
back, and one called `slow` takes its time.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def answer(method: str, params: dict[str, Any]) -> Any:
    """Return the result of a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        }
    if method == "tools/list":
        tools = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        plain = {"type": "object", "properties": {}}
        return {"tools": [{"inputSchema": plain, **tool} for tool in tools]}
    if method == "tools/call":
        if params["name"] == "die":
            sys.stderr.write("it was told to end\n")
            raise SystemExit(1)
        if params["name"] == "slow":
            time.sleep(5)
        text = json.dumps(params.get("arguments") or {})
        return {"content": [{"type": "text", "text": text}]}
    return {}


def main() -> None:
    """Answer requests, one a line, until the input ends."""
    sys.stderr.write(f"serving {sys.argv[1]}\n")
    sys.stderr.flush()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "server/discover":
            reply["error"] = {"code": -32601, "message": "no such method"}
        else:
            reply["result"] = answer(request["method"], request.get("params") or {})
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
