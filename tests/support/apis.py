"""HTTP APIs in this process: what they were asked, and sources that ask them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from support.running import wait
from toolfold.sources.calls import CallContext, Output, PendingCall
from toolfold.sources.openapi import HttpApi, OpenAPISource
from toolfold.tool import Tool

BASE = "http://api.test/v1"

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


@dataclass
class Asked:
    """One request, as it came."""

    method: str
    target: str
    """Path and query, as they were written."""

    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answers:
    """An application that notes what it is asked, and answers as it was told to."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b"{}"
    by_target: dict[str, tuple[int, Mapping[str, str], bytes]] = field(
        default_factory=dict[str, tuple[int, Mapping[str, str], bytes]]
    )
    asked: list[Asked] = field(default_factory=list[Asked])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        query = scope["query_string"].decode()
        target = scope["raw_path"].decode() + (f"?{query}" if query else "")
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        self.asked.append(Asked(scope["method"], target, headers, body))
        status, given, content = self.by_target.get(target, (self.status, self.headers, self.body))
        pairs = [(k.encode(), v.encode()) for k, v in given.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": content})


def document(paths: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a document of OpenAPI 3.1, or of another version, with these paths."""
    return {"openapi": "3.1.0", "info": {"title": "Test", "version": "1"}, "paths": paths, **more}


def operation(*parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return an operation with these parameters."""
    return {"operationId": "go", "parameters": list(parameters), "responses": {}, **more}


def source_of(
    given: Mapping[str, Any] | str | bytes, answers: Answers | None = None, **api: Any
) -> OpenAPISource:
    """Return the source of a document, which asks an application in this process."""
    transport = httpx2.ASGITransport(app=answers or Answers())
    api.setdefault("base_url", BASE)
    return OpenAPISource(HttpApi("api", **api), document=given, transport=transport)


def called(source: OpenAPISource, name: str = "api__go", /, **arguments: Any) -> Output:
    """Return what a call comes to."""
    tool = next(tool for tool in source.tools() if tool.name == name)
    return wait(_called(source, tool, arguments), 10)


async def _called(source: OpenAPISource, tool: Tool, arguments: Mapping[str, Any]) -> Output:
    context = CallContext(PendingCall(tool, arguments), lambda *_: None)
    async with source:
        return await source.call(tool, arguments, context)


def sent(given: Mapping[str, Any], arguments: Mapping[str, Any], **api: Any) -> Asked:
    """Return the one request that a call of the operation `go` comes to."""
    answers = Answers()
    called(source_of(given, answers, **api), **arguments)
    (asked,) = answers.asked
    return asked
