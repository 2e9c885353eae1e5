"""The least that a proxy can do on the same libraries: bytes up, bytes down.

python plain_proxy.py PORT UPSTREAM
"""

from __future__ import annotations

import sys
from typing import Any

import httpx2
import uvicorn

_OWN = {b"host", b"connection", b"transfer-encoding"}


class PlainProxy:
    """Passes a request on, and its answer back."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        limits = httpx2.Limits(max_connections=2_000, max_keepalive_connections=200)
        self._client = httpx2.AsyncClient(timeout=600, limits=limits)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        request = httpx2.Request(
            scope["method"],
            self._upstream + scope["path"],
            headers=[(k, v) for k, v in scope["headers"] if k.lower() not in _OWN],
            content=body,
        )
        response = await self._client.send(request, stream=True)
        try:
            headers = [(k, v) for k, v in response.headers.raw if k.lower() not in _OWN]
            start = {"type": "http.response.start", "status": response.status_code}
            await send({**start, "headers": headers})
            async for data in response.aiter_raw():
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()


if __name__ == "__main__":
    uvicorn.run(
        PlainProxy(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="error",
        lifespan="off",
    )  # fmt: skip
