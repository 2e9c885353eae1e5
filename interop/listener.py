"""Stands between a client and a server over HTTP, and writes down what they say to each other."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from local_server import LocalServer

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
    answered: Mapping[str, str] = field(default_factory=dict[str, str])
    """The headers of the answer, their names in lower case."""

    answer: bytes = b""


class Listener(LocalServer):
    """Passes everything on to another server.

    Args:
        url: The other's address.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.said: list[Said] = []
        self._netloc = urlsplit(url).netloc

    @property
    def asked(self) -> list[Said]:
        """What asks for an answer of a model with tools."""
        return [one for one in self.said if one.method == "POST" and b'"tools"' in one.body]

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        """Pass a request on, and its answer back."""
        said = Said(request.command, request.path, dict(request.headers), body)
        self.said.append(said)
        other = http.client.HTTPConnection(self._netloc, timeout=120)
        kept = {k: v for k, v in said.headers.items() if k.lower() not in _OF_A_CONNECTION}
        headers = {**kept, "Host": self._netloc}
        other.request(said.method, said.path, said.body or None, headers)
        response = other.getresponse()
        said.status = response.status
        said.answered = {key.lower(): value for key, value in response.getheaders()}
        request.send_response(response.status)
        for key, value in said.answered.items():
            if key not in _OF_A_CONNECTION:
                request.send_header(key, value)
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        while said.method != "HEAD" and (piece := response.read1(65536)):
            said.answer += piece
            request.wfile.write(piece)
        other.close()
