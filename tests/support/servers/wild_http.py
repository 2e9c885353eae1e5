"""The wild server over streamable HTTP, on the bare sockets.

    python -S -E wild_http.py PORT [FLAG…]

`rubbish` answers calls with what is no JSON, `broken` with a status of 500. A session that
it did not open itself it does not know, and says so in plain words, or as the library of
TypeScript does: with `typescript` in its older way, with `typescript-new` in its newer one.
With `mute` it never answers a goodbye.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import wild

UNKNOWN = {
    "typescript": (
        400,
        b'{"jsonrpc":"2.0","error":{"code":-32000,'
        b'"message":"Bad Request: No valid session ID provided"}}',
    ),
    "typescript-new": (
        404,
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}',
    ),
    "": (404, b"not here"),
}
SESSION = uuid.uuid4().hex


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = request.get("method", "")
        known = self.headers.get("Mcp-Session-Id") == SESSION
        if method != "initialize" and not known:
            self.say(*UNKNOWN[next((f for f in UNKNOWN if f in wild.FLAGS), "")])
        elif "id" not in request:
            self.say(202, b"")
        elif method == "tools/call" and "broken" in wild.FLAGS:
            self.say(500, b"out of order")
        elif method == "tools/call" and "rubbish" in wild.FLAGS:
            self.say(200, wild.RUBBISH[1])
        else:
            message = {"jsonrpc": "2.0", "id": request["id"], **wild.outcome(request)}
            self.say(200, json.dumps(message).encode())

    def do_GET(self) -> None:
        self.say(405, b"")

    def do_DELETE(self) -> None:
        if "mute" in wild.FLAGS:
            time.sleep(60)
        self.say(405, b"")

    def say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", SESSION)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
