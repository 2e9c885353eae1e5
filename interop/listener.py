"""Stands between a client and a server over HTTP, and writes down what they say to each other."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Listener", "Said"]

_OF_A_CONNECTION = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(slots=True)
class Said:
    """A request, and what came back."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    answered: Mapping[str, str] = field(default_factory=dict)
    """The headers of the answer, their names in lower case."""

    answer: bytes = b""


class Listener:
    """A server on a free port that passes everything on to another.

    Args:
        url: The other's address.
    """

    def __init__(self, url: str) -> None:
        self.said: list[Said] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, urlsplit(url).netloc))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def asked(self) -> list[Said]:
        """What asks for an answer of a model with tools."""
        return [one for one in self.said if one.method == "POST" and b'"tools"' in one.body]

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(listener: Listener, netloc: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            said = Said(self.command, self.path, dict(self.headers), self.rfile.read(length))
            listener.said.append(said)
            other = http.client.HTTPConnection(netloc, timeout=120)
            kept = {k: v for k, v in said.headers.items() if k.lower() not in _OF_A_CONNECTION}
            other.request(self.command, self.path, said.body or None, {**kept, "Host": netloc})
            response = other.getresponse()
            said.status = response.status
            said.answered = {key.lower(): value for key, value in response.getheaders()}
            self.send_response(response.status)
            for key, value in said.answered.items():
                if key not in _OF_A_CONNECTION:
                    self.send_header(key, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            while self.command != "HEAD" and (piece := response.read1(65536)):
                said.answer += piece
                self.wfile.write(piece)
            other.close()

        do_GET = do_HEAD = do_POST = _pass

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on standard error."""

    return Handler
