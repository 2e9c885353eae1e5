"""A client that parses nothing: JSON out, JSON in.

It shows what is really on the wire, which a client with models of its own cannot: they drop
what they do not know and fill in what is not there.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2

__all__ = ["Refused", "Wire", "over_http", "over_stdio"]

OLD = "2025-11-25"
NEW = "2026-07-28"
_META = "io.modelcontextprotocol/"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Refused(Exception):
    """The error of a JSON-RPC answer."""

    def __init__(self, error: Any) -> None:
        super().__init__(json.dumps(error))
        self.error = error


class Wire:
    """One connection, in one revision of the protocol."""

    def __init__(self, version: str, capabilities: Mapping[str, Any]) -> None:
        self._version = version
        self._capabilities = dict(capabilities)
        self._ids = itertools.count(1)
        self.notes: list[Any] = []
        """The notifications that came meanwhile."""

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Return the result exactly as it was sent.

        Raises:
            Refused: The answer is an error.
        """
        sent = dict(params or {})
        if self._version == NEW:
            sent["_meta"] = {
                f"{_META}protocolVersion": NEW,
                f"{_META}clientInfo": {"name": "wire", "version": "1"},
                f"{_META}clientCapabilities": self._capabilities,
            }
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": sent}
        for answer in self._exchange(message):
            if answer.get("id") == number and "method" not in answer:
                if "error" in answer:
                    raise Refused(answer["error"])
                return answer["result"]
            if "id" in answer and "method" in answer:
                error = {"code": -32601, "message": "Method not found"}
                self._tell({"jsonrpc": "2.0", "id": answer["id"], "error": error})
            elif "method" in answer:
                self.notes.append(answer)
        raise EOFError("the connection ended without an answer")

    def greet(self) -> None:
        """Begin, where the revision wants that."""
        if self._version == OLD:
            self.ask(
                "initialize",
                {
                    "protocolVersion": OLD,
                    "capabilities": self._capabilities,
                    "clientInfo": {"name": "wire", "version": "1"},
                },
            )
            self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _exchange(self, message: Any) -> Iterator[Any]:
        raise NotImplementedError

    def _tell(self, message: Any) -> None:
        raise NotImplementedError


class _Pipes(Wire):
    def __init__(
        self, version: str, capabilities: Mapping[str, Any], process: subprocess.Popen[str]
    ) -> None:
        super().__init__(version, capabilities)
        self._process = process

    def _exchange(self, message: Any) -> Iterator[Any]:
        self._tell(message)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)  # on standard output there is protocol alone

    def _tell(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


class _Http(Wire):
    def __init__(self, version: str, client: httpx2.Client, url: str) -> None:
        super().__init__(version, {})
        self._client = client
        self._url = url
        self._session: dict[str, str] = {}

    def _headers(self, message: Any) -> dict[str, str]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self._version,
            **self._session,
        }
        if self._version == NEW:
            headers["Mcp-Method"] = message["method"]
            if message["method"] in _NAMED:
                headers["Mcp-Name"] = message["params"][_NAMED[message["method"]]]
        return headers

    def _exchange(self, message: Any) -> Iterator[Any]:
        headers = self._headers(message)
        with self._client.stream("POST", self._url, json=message, headers=headers) as response:
            if "mcp-session-id" in response.headers:
                self._session = {"Mcp-Session-Id": response.headers["mcp-session-id"]}
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                yield json.loads(response.read())
                return
            for line in _lines(response.iter_bytes()):
                if line.startswith(b"data:") and line[5:].strip():
                    yield json.loads(line[5:])

    def _tell(self, message: Any) -> None:
        self._client.post(self._url, json=message, headers=self._headers(message))


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split at line feeds alone: Unicode has more line ends, and they are no ends of events."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


@contextmanager
def over_stdio(
    command: Sequence[str],
    version: str = OLD,
    env: Mapping[str, str] | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> Generator[Wire]:
    """Start a server and speak to it over its pipes."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
        encoding="utf-8",
    ) as process:
        wire = _Pipes(version, capabilities or {}, process)
        try:
            wire.greet()
            yield wire
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


@contextmanager
def over_http(
    url: str, version: str = OLD, headers: Mapping[str, str] | None = None
) -> Generator[Wire]:
    """Speak to a server over streamable HTTP."""
    with httpx2.Client(headers=dict(headers or {}), timeout=60) as client:
        wire = _Http(version, client, url)
        wire.greet()
        yield wire
