"""MCP over HTTP, spoken by hand: every message that comes back is seen, nothing is tried again."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import httpx2

__all__ = ["MODERN", "OLDER", "Fate", "Reply", "Speaker"]

OLDER, MODERN = "2025-11-25", "2026-07-28"
"""The revision with sessions, and the one without."""


class Fate(Enum):
    """What is known of a request, as far as HTTP tells."""

    ANSWERED = "answered"
    """Its answer came."""

    NOT_TAKEN = "not taken"
    """It reached no replica, or was refused before anything was done."""

    NO_SESSION = "no session"
    """Whoever got it knows nothing of its session."""

    UNKNOWN = "unknown"
    """It was sent, and no answer came."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request."""

    fate: Fate
    message: dict[str, Any]
    """The JSON-RPC message; empty where none came."""

    said: str
    """What went wrong, in a few words."""

    @property
    def result(self) -> dict[str, Any]:
        """The result; empty where there is none."""
        return self.message.get("result") or {}

    @property
    def text(self) -> str:
        """The text of a tool's result, or of the error."""
        content = self.result.get("content")
        if content:
            return content[0].get("text", "")
        return json.dumps(self.message.get("error") or self.result)

    @property
    def is_error(self) -> bool:
        """Whether it is an error, of the protocol or of the tool."""
        return "error" in self.message or bool(self.result.get("isError"))


class Speaker:
    """One client: a token, and a session of its own where its revision has sessions.

    Args:
        http: What carries its requests.
        url: Where they go.
        token: Who it is.
        revision: The revision of MCP that it speaks.
        name: What it calls its conversation, in the revision without sessions.
    """

    def __init__(
        self, http: httpx2.AsyncClient, url: str, token: str, revision: str, name: str
    ) -> None:
        self._http = http
        self._url = url
        self._revision = revision
        self._headers = {
            "accept": "application/json, text/event-stream",
            "authorization": f"Bearer {token}",
            "mcp-protocol-version": revision,
        }
        if revision == MODERN:
            self._headers["toolfold-conversation"] = name

    @property
    def session(self) -> str:
        """The id of the session; empty where there is none."""
        return self._headers.get("mcp-session-id", "")

    def join(self, session: str) -> None:
        """Speak in a session that somebody opened."""
        self._headers["mcp-session-id"] = session

    async def open(self) -> Reply:
        """Open a session, where there are sessions."""
        if self._revision == MODERN:
            return Reply(Fate.ANSWERED, {}, "")
        self._headers.pop("mcp-session-id", None)
        about = {"name": "load", "version": "1"}
        hello = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": about}
        reply = await self.ask("initialize", hello, 0)
        if reply.fate is Fate.ANSWERED and self.session:
            await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
        return reply

    async def ask(self, method: str, params: dict[str, Any], number: int | str) -> Reply:
        """Make one request, once."""
        headers: dict[str, str] = {}
        if self._revision == MODERN:
            space = "io.modelcontextprotocol/"
            own: dict[str, Any] = {
                f"{space}protocolVersion": MODERN,
                f"{space}clientCapabilities": {},
            }
            headers = {"mcp-method": method}
            if "name" in params:
                headers["mcp-name"] = params["name"]
                headers["idempotency-key"] = f"{self._headers['toolfold-conversation']} {number}"
            params = {**params, "_meta": own}
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return await self._post(body, headers)

    async def call(self, tool: str, arguments: dict[str, Any], number: int | str) -> Reply:
        """Call a tool, once."""
        return await self.ask("tools/call", {"name": tool, "arguments": arguments}, number)

    async def _post(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        try:
            answer = await self._http.post(
                self._url, json=body, headers={**self._headers, **headers}
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return Reply(Fate.NOT_TAKEN, {}, type(error).__name__)
        except httpx2.HTTPError as error:
            return Reply(Fate.UNKNOWN, {}, type(error).__name__)
        if session := answer.headers.get("mcp-session-id"):
            self._headers.setdefault("mcp-session-id", session)
        return _read(answer, body.get("id"))


def _read(answer: httpx2.Response, number: int | str | None) -> Reply:
    said = f"{answer.status_code} {answer.text[:200]}"
    if answer.status_code in (429, 503):
        return Reply(Fate.NOT_TAKEN, {}, said)
    if answer.status_code == 404:
        return Reply(Fate.NO_SESSION, {}, said)
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        texts = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    else:
        texts = [answer.text]
    answers = _answers(texts)
    if number is None:
        return Reply(Fate.ANSWERED, {}, said)
    if not answers:
        return Reply(Fate.UNKNOWN, {}, said)
    # An error of the transport may come without an id; an answer to somebody else may not.
    if len(answers) > 1 or answers[0].get("id") not in (number, None):
        foreign = {"result": {"content": [{"type": "text", "text": f"foreign: {answers}"}]}}
        return Reply(Fate.ANSWERED, foreign, said)
    return Reply(Fate.ANSWERED, answers[0], said)


def _answers(texts: list[str]) -> list[dict[str, Any]]:
    """Return the messages that are answers; those of a text that broke off are none."""
    found: list[dict[str, Any]] = []
    for text in texts:
        with suppress(ValueError):
            message: Any = json.loads(text) if text.strip() else None
            if isinstance(message, dict) and ("result" in message or "error" in message):
                found.append(cast("dict[str, Any]", message))
    return found
