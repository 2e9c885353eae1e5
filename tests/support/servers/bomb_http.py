"""A server over HTTP, in a thread of the test, whose answers are larger than they look."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MEBIBYTE = 1024 * 1024
EMPTY = {"type": "object"}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bomb", "version": "1"},
}


def deep(levels: int) -> dict[str, Any]:
    """A schema that nests."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


class Handler(BaseHTTPRequestHandler):
    """Answers one connection; the tools are named for how they answer."""

    protocol_version = "HTTP/1.1"
    events = False

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number, method = request.get("id"), request.get("method")
        if number is None:
            self.say(202, b"")
            return
        name = request.get("params", {}).get("name")
        if method == "initialize":
            self.answer(number, HELLO)
        elif method == "tools/list":
            names = ("small", "packed", "twice", "damaged", "long")
            tools = [{"name": name, "inputSchema": EMPTY} for name in names]
            self.answer(number, {"tools": [*tools, {"name": "deep", "inputSchema": deep(300)}]})
        elif method == "tools/call" and name == "small":
            self.answer(number, text("small"), packed=True)
        elif method == "tools/call" and name == "packed":
            self.send_bomb(number)
        elif method == "tools/call" and name == "twice":
            self.say(200, zlib.compress(b"x"), encoding="gzip, gzip")
        elif method == "tools/call" and name == "damaged":
            self.say(200, b"this is not packed", encoding="gzip")
        elif method == "tools/call":
            self.send_long(number)
        else:
            error = {"code": -32601, "message": "no such method"}
            self.send({"jsonrpc": "2.0", "id": number, "error": error})

    def do_GET(self) -> None:
        self.say(405, b"")

    def do_DELETE(self) -> None:
        self.say(405, b"")

    def answer(self, number: Any, result: Any, *, packed: bool = False) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "result": result}, packed=packed)

    def send(self, message: Any, *, packed: bool = False) -> None:
        body = json.dumps(message).encode()
        if self.events:
            body = b"event: message\ndata: " + body + b"\n\n"
        if packed:
            self.say(200, gzipped([body]), encoding="gzip")
        else:
            self.say(200, body)

    def send_bomb(self, number: Any) -> None:
        head, tail = (each.encode() for each in json.dumps(text("|")).split("|"))
        begin = b'{"jsonrpc":"2.0","id":' + str(number).encode() + b',"result":' + head
        if self.events:
            begin = b"data: " + begin
        middle = [b"a" * MEBIBYTE] * 400
        self.say(200, gzipped([begin, *middle, tail + b"}\n\n"]), encoding="gzip")

    def send_long(self, number: Any) -> None:
        self.answer(number, text("a" * (70 * MEBIBYTE)))

    def say(self, status: int, body: bytes, *, encoding: str = "") -> None:
        self.send_response(status)
        kind = "text/event-stream" if self.events and status == 200 else "application/json"
        self.send_header("Content-Type", kind)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


class EventHandler(Handler):
    """Answers by streams of events."""

    events = True


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def gzipped(pieces: list[bytes]) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


@contextmanager
def bomb(*, events: bool) -> Iterator[str]:
    """Yield the address of a running server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), EventHandler if events else Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
