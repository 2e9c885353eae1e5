"""A model server that says the same thing to everybody, at once or slowly.

    python model_upstream.py PORT

OpenAI's chat completions, streamed or not. A request whose `user` is `slow` gets an event every
20 ms; one with a tool `tool_search` whose conversation holds no result searches first.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

WORDS = 40


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    """Return one event of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    value = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def events(body: dict[str, Any]) -> list[bytes]:
    """Return the events of an answer."""
    if wants_search(body):
        call = {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "tool_search", "arguments": '{"query": "send an email"}'},
        }
        return [chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls")]
    words = [chunk({"content": f"word{place} "}) for place in range(WORDS)]
    return [chunk({"role": "assistant", "content": ""}), *words, chunk({}, "stop")]


def wants_search(body: dict[str, Any]) -> bool:
    """Whether the model searches before it answers."""
    if body.get("user") != "search":
        return False
    return not any(message.get("role") == "tool" for message in body["messages"])


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").lower().split("\r\n")
            length = next((int(x[15:]) for x in lines if x.startswith("content-length:")), 0)
            raw = await reader.readexactly(length)
            body = json.loads(raw) if raw else {}
            await (stream if body.get("stream") else whole)(writer, body)
            if "connection: close" in lines:
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def stream(writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    """Send an answer event by event."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    for event in [*events(body), b"data: [DONE]\n\n"]:
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await writer.drain()
        if body.get("user") == "slow":
            await asyncio.sleep(0.02)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def whole(writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    """Send an answer at once."""
    message = {"role": "assistant", "content": " ".join(f"word{i}" for i in range(WORDS))}
    value = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 40, "total_tokens": 41},
    }
    sent = json.dumps(value).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(sent)}\r\n"
    writer.write(head.encode() + b"\r\n" + sent)
    await writer.drain()


async def main() -> None:
    """Listen until the process ends."""
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
