"""Requests that a replica makes to itself, in a client's place and with its answer to nobody.

A session that was opened elsewhere is opened here by the client's own words once more: the
protocol's library sees what it would have seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from toolfold._json_values import compact_bytes
from toolfold.serve.http.customs import AsgiScope, Send
from toolfold.serve.http.rate_limit import Message, Receive
from toolfold.tool import Json

__all__ = ["posted"]

_HEADERS = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
)


def posted(
    scope: AsgiScope, message: Mapping[str, Json], session: str | None = None
) -> tuple[AsgiScope, Receive, Send]:
    """Return a request that posts a message, in the words of ASGI.

    Args:
        scope: The client's own request: who asks is the same.
        message: What is posted.
        session: The session that it belongs to, where there is one.
    """
    named = () if session is None else ((b"mcp-session-id", session.encode("latin-1")),)
    own: AsgiScope = {**scope, "method": "POST", "headers": [*_HEADERS, *named]}
    given: list[Message] = [{"type": "http.request", "body": compact_bytes(message)}]

    async def receive() -> Message:
        if given:
            return given.pop()
        await asyncio.Event().wait()  # nobody leaves before the answer is there
        raise AssertionError

    async def send(message: Message) -> None:
        """The answer is for nobody."""

    return own, receive, send
