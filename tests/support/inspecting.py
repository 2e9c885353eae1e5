"""The inspector's application asked as a browser asks it, without a socket between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from support.running import wait
from toolfold import Settings
from toolfold.catalog import Catalog
from toolfold.config.serve_settings import ServeSettings
from toolfold.demo import demo_catalog
from toolfold.inspector.app import InspectorApp, guarded, new_token
from toolfold.inspector.inspected import Inspected

TOKEN = new_token()
OWN = "http://127.0.0.1:8790"


@dataclass
class Reply:
    status: int = 0
    headers: Mapping[str, str] = ()  # type: ignore[assignment]
    body: bytes = b""

    @property
    def value(self) -> Any:
        return json.loads(self.body)


def ask(
    path: str,
    over: Catalog | None = None,
    *,
    token: str | None = TOKEN,
    method: str = "GET",
    host: str = "127.0.0.1:8790",
    origin: str | None = None,
    site: str | None = None,
    recorded: Sequence[Path] = (),
    beside: Sequence[Catalog] = (),
    states: Sequence[Path] = (),
    body: bytes = b"",
    kind: str | None = None,
    **query: str | int | float,
) -> Reply:
    inspected = Inspected(over or demo_catalog(), Settings(), "the demo catalog")
    others = [Inspected(other, Settings(), "another") for other in beside]
    inner = InspectorApp(inspected, states, recorded, others)
    app = guarded(inner, "127.0.0.1", TOKEN, ServeSettings())
    headers = [(b"host", host.encode())]
    headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
    headers += [(b"origin", origin.encode())] if origin else []
    headers += [(b"sec-fetch-site", site.encode())] if site else []
    headers += [(b"content-type", kind.encode())] if kind else []
    reply = Reply()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {n.decode(): v.decode() for n, v in message["headers"]}
        else:
            reply.body += message.get("body", b"")

    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": urlencode(query).encode(),
        "headers": headers,
        "server": ("127.0.0.1", 8790),
        "client": ("127.0.0.1", 50000),
    }
    wait(app(scope, receive, send))
    return reply
