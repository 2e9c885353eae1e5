"""What a request over HTTP holds, as far as a replica must know before it passes it on."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from mcp.server.streamable_http import GET_STREAM_KEY

from toolfold._json_values import NotJsonError, compact_bytes, parse_strict
from toolfold.serve.http.customs import AsgiScope, Send
from toolfold.serve.http.rate_limit import Message, Receive
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.replica.wire_ids import event_place
from toolfold.tool import Json, is_object

__all__ = ["answer", "body_of", "listens", "message_of", "opening_of", "session_in"]

LARGEST_OPENING = 64 * 1024
"""How many bytes the request may have that opens a session which others can go on with."""


async def body_of(receive: Receive) -> tuple[bytes, Receive]:
    """Read the body of a request, and return it with a `receive` that gives it again."""
    messages: list[Any] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            break
    body = b"".join(m.get("body", b"") for m in messages if m["type"] == "http.request")
    messages.reverse()

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return body, again


def opening_of(body: bytes) -> bytes | None:
    """Return the parameters of a request that opens a session, as JSON; None of any other.

    None also where they are too large, or nest too deeply, to be kept for others.
    """
    message = message_of(body) if len(body) <= LARGEST_OPENING else None
    if message is None or message.get("method") != "initialize":
        return None
    with suppress(NotJsonError):
        return compact_bytes(message.get("params"))
    return None


def message_of(body: bytes) -> dict[str, Json] | None:
    """Return the message that a body holds; None where it holds none."""
    try:
        message = parse_strict(body)
    except ValueError:
        return None
    return message if is_object(message) else None


def listens(scope: AsgiScope) -> bool:
    """Whether a client listens for what belongs to none of its requests."""
    last = headers_of(scope, b"last-event-id")
    place = event_place(last[0]) if last else None
    return not last or (place is not None and place.stream == GET_STREAM_KEY)


def session_in(message: Message) -> str | None:
    """Return the session that an answer names, in the words of ASGI."""
    own = [v for k, v in message.get("headers", ()) if k.lower() == b"mcp-session-id"]
    return own[0].decode("latin-1") if own else None


async def answer(
    send: Send, status: int, body: bytes, *, retry: bool = False, session: str | None = None
) -> None:
    """Answer a request in short."""
    headers = [(b"content-length", str(len(body)).encode())]
    if body:
        headers.append((b"content-type", b"text/plain; charset=utf-8"))
    if retry:
        headers.append((b"retry-after", b"1"))
    if session is not None:
        headers.append((b"mcp-session-id", session.encode("latin-1")))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
