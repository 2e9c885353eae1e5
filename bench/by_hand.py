"""MCP over HTTP by hand: every message that comes back is seen, and nothing is tried again."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import httpx2

__all__ = ["asked_once", "opened_session"]

_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


async def opened_session(
    http: httpx2.AsyncClient, url: str, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Open a session, and return the headers of its requests.

    Args:
        http: What asks.
        url: The gateway's address.
        more: Headers of every request, such as a token.
    """
    own = {**_HEADERS, **(more or {})}
    about = {"name": "bench", "version": "0"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    opened = await http.post(url, json=body, headers=own)
    opened.raise_for_status()
    headers = {**own, "mcp-session-id": opened.headers["mcp-session-id"]}
    await http.post(
        url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers
    )
    return headers


async def asked_once(
    http: httpx2.AsyncClient,
    url: str,
    headers: Mapping[str, str],
    number: int,
    method: str,
    params: Mapping[str, Any],
) -> list[Any]:
    """Make one request, once, and return every answer that came for it."""
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    try:
        answer = await http.post(url, json=body, headers=headers)
    except httpx2.HTTPError as error:
        print(f"note: {type(error).__name__}", file=sys.stderr)
        return []
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        texts = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    else:
        texts = [answer.text]
    messages = [json.loads(text) for text in texts if text.strip()]
    return [message for message in messages if message.get("id") == number]
