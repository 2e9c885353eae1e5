"""A server over HTTP that closes the streams of its calls and is to be asked for the rest.

An application of its own, so that a test says when it goes on. Its tools: `close` closes its
stream, `twice` the one on which it is asked again too; `break` breaks the connection instead;
`nameless` ends a stream without an event to come back to.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

__all__ = ["Polled"]

TOOLS = ("close", "twice", "break", "nameless")
_OPENING = "id: {}\nretry: 10\ndata:\n\n"


class Polled:
    """The application."""

    def __init__(self) -> None:
        self.finished = asyncio.Event()
        """Set when calls may be answered."""
        self.closings = asyncio.Event()
        """Set when a stream may be closed that was taken up again."""
        self.closings.set()
        self.runs = 0
        self.answered = 0
        self._calls: dict[str, dict[str, Any]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        if scope["method"] == "POST":
            await self._posted(json.loads(await _body(receive)), send)
        elif scope["method"] == "GET" and "last-event-id" in headers:
            await self._resumed(headers["last-event-id"], send)
        else:
            await _plain(send, 405)

    async def _posted(self, message: dict[str, Any], send: Any) -> None:
        if "id" not in message:
            await _plain(send, 202)
        elif message["method"] == "tools/call":
            await self._call(message, send)
        else:
            await _plain(send, 200, _answered(message))

    async def _call(self, message: dict[str, Any], send: Any) -> None:
        self.runs += 1
        name = message["params"]["name"]
        number = f"{self.runs}-0"
        self._calls[str(self.runs)] = message
        await _stream(send)
        await _event(send, "" if name == "nameless" else _OPENING.format(number))
        if name == "break":
            raise ConnectionError("broken on purpose")
        await send({"type": "http.response.body"})

    async def _resumed(self, last: str, send: Any) -> None:
        run, _, time = last.partition("-")
        message = self._calls[run]
        name = message["params"]["name"]
        await _stream(send)
        if name == "twice" and time == "0":
            await _event(send, _OPENING.format(f"{run}-1"))
            await self.closings.wait()
        else:
            await self.finished.wait()
            result = {"content": [{"type": "text", "text": name}]}
            answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
            await _event(send, f"id: {run}-2\ndata: {answer}\n\n")
            self.answered += 1
        await send({"type": "http.response.body"})


def _answered(message: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            info = {"name": "polled", "version": "1"}
            revision = message["params"]["protocolVersion"]
            answer["result"] = {
                "protocolVersion": revision,
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            schema = {"type": "object"}
            tools = [{"name": n, "description": f"{n}.", "inputSchema": schema} for n in TOOLS]
            answer["result"] = {"tools": tools}
        case "ping":
            answer["result"] = {}
        case _:
            answer["error"] = {"code": -32601, "message": "Method not found"}
    return answer


async def _body(receive: Any) -> bytes:
    whole = b""
    while True:
        part = await receive()
        whole += part.get("body", b"")
        if not part.get("more_body"):
            return whole


async def _plain(send: Any, status: int, answer: dict[str, Any] | None = None) -> None:
    headers = [(b"content-type", b"application/json"), (b"mcp-session-id", b"polled")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = b"" if answer is None else json.dumps(answer).encode()
    await send({"type": "http.response.body", "body": body})


async def _stream(send: Any) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _event(send: Any, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
