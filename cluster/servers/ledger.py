"""An MCP server that writes every run down: `python -S -E ledger.py NAME FILE [HOST:PORT]`.

Over its pipes, or over HTTP where it is given an address. Nothing but the standard library is
imported, so it is there soon after it was started. Each run is one line of FILE, appended in one
write before the run is answered, so that it is on record whenever the process dies. So are the
starts of the server itself: who ran beside whom can be told afterwards.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WRITERS = 10
"""How many tools there are, all alike: whoever may use one may not use the next."""


class Ledger:
    """What the server does, however it is asked."""

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._questions: dict[str, queue.Queue[dict[str, Any]]] = {}
        self.send: Callable[[dict[str, Any]], None] | None = None
        """Sends a request to the client; None where that cannot be done."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._write({"event": "start"})

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a message; None where it needs none."""
        if "method" not in request and request.get("id") in self._questions:
            self._questions[request["id"]].put(request)
            return None
        if "id" not in request or "method" not in request:
            return None
        head: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        result = self._result(request["method"], request.get("params") or {})
        if result is None:
            return {**head, "error": {"code": -32601, "message": "no such method"}}
        return {**head, "result": result}

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            about = {"name": self._name, "version": "1"}
            able: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            return {**able, "serverInfo": about}
        if method == "tools/list":
            asking = [] if self.send is None else [self._asking_tool()]
            return {"tools": [*(self._tool(number) for number in range(WRITERS)), *asking]}
        if method == "tools/call":
            return self._run(params["name"], params["arguments"])
        return {} if method == "ping" else None

    def _tool(self, number: int) -> dict[str, Any]:
        words = {"mark": {"type": "string"}, "who": {"type": "string"}}
        return {
            "name": f"write_{number}",
            "description": f"Write a mark on page {number} of the book {self._name}.",
            "inputSchema": {
                "type": "object",
                "properties": {**words, "seconds": {"type": "number"}},
                "required": ["mark", "who"],
            },
            "annotations": {"destructiveHint": False},
        }

    def _asking_tool(self) -> dict[str, Any]:
        about = "Ask whoever calls for their name, and write a mark for them."
        return {**self._tool(0), "name": "confirm", "description": about}

    def _asked(self, mark: str) -> str:
        """Ask the client who it is, and return what it says."""
        assert self.send is not None
        came: queue.Queue[dict[str, Any]] = queue.Queue()
        self._questions[f"ask-{mark}"] = came
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        question = {"message": f"Who wants {mark}?", "requestedSchema": schema}
        request = {"jsonrpc": "2.0", "id": f"ask-{mark}", "method": "elicitation/create"}
        self.send({**request, "params": question})
        answer: Any = came.get(timeout=60).get("result") or {}
        content: dict[str, Any] = answer.get("content") or {}
        return str(content.get("name", "nobody"))

    def _run(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        mark, who = arguments["mark"], arguments["who"]
        if tool == "confirm":
            who = self._asked(mark)
        self._write({"event": "run", "tool": tool, "mark": mark, "who": who})
        time.sleep(arguments.get("seconds", 0))
        return {"content": [{"type": "text", "text": f"{self._name} {tool} {who} {mark}"}]}

    def _write(self, event: dict[str, Any]) -> None:
        own = {"server": self._name, "pid": os.getpid(), "at": time.time()}
        os.write(self._file, json.dumps({**event, **own}).encode() + b"\n")


def over_pipes(ledger: Ledger) -> None:
    """Answer each request on standard input in a thread of its own, until it ends."""
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            os.write(1, json.dumps(message).encode() + b"\n")

    def answer(line: bytes) -> None:
        reply = ledger.answer(json.loads(line))
        if reply is not None:
            send(reply)

    ledger.send = send

    while line := sys.stdin.buffer.readline():
        threading.Thread(target=answer, args=(line,), daemon=True).start()


def over_http(ledger: Ledger, address: str) -> None:
    """Answer requests over streamable HTTP, without sessions and without streams."""

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = ledger.answer(request)
            self._send(202 if reply is None else 200, reply)

        def do_GET(self) -> None:
            self._send(405, None)

        do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _send(self, status: int, reply: dict[str, Any] | None) -> None:
            body = b"" if reply is None else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    host, _, port = address.rpartition(":")
    Server((host, int(port)), Door).serve_forever()


if __name__ == "__main__":
    book = Ledger(*sys.argv[1:3])
    if len(sys.argv) > 3:
        over_http(book, sys.argv[3])
    else:
        over_pipes(book)
