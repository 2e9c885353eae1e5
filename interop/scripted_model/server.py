"""The server: one address, every dialect, everything it hears written down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from itertools import count
from urllib.parse import urlsplit

from local_server import LocalServer

from scripted_model.anthropic_messages import AnthropicMessages
from scripted_model.exchange import Asked, Dialect, Hang, Json, Play, Refuse
from scripted_model.gemini import Gemini
from scripted_model.openai_chat import OpenAIChat
from scripted_model.openai_responses import OpenAIResponses

__all__ = ["DIALECTS", "Heard", "ScriptedModel"]

DIALECTS: tuple[Dialect, ...] = (AnthropicMessages(), OpenAIResponses(), OpenAIChat(), Gemini())


@dataclass(frozen=True, slots=True)
class Heard:
    """A request of any kind."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class ScriptedModel(LocalServer):
    """A model server on a free port of this machine.

    Args:
        play: What the model says.
    """

    def __init__(self, play: Play) -> None:
        super().__init__()
        self._play = play
        self._numbers = count(1)
        self._lock = threading.Lock()
        self.asked: list[Asked] = []
        """The requests for a reply, in order, those without tools among them."""

        self.heard: list[Heard] = []
        """All requests."""

        self.hangs = threading.Event()
        """Set when a reply hangs, all that comes of it sent."""

        self.left = threading.Event()
        """Set when a client leaves a reply that hangs."""

    @property
    def turns(self) -> list[Asked]:
        """The requests of the conversation: those that offer tools."""
        return [asked for asked in self.asked if asked.tools]

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a request."""
        heard = Heard(request.command, request.path, dict(request.headers), body)
        status, headers, content = self.reply(heard)
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if isinstance(content, bytes):
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            if request.command != "HEAD":
                request.wfile.write(content)
            return
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for piece in content:
            request.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if _HANGS in headers:
            self.hangs.set()
            with suppress(OSError):
                request.connection.recv(1)
            self.left.set()
            request.close_connection = True
            return
        request.wfile.write(b"0\r\n\r\n")

    def reply(self, heard: Heard) -> tuple[int, Mapping[str, str], bytes | Iterator[bytes]]:
        """Return the status, the headers and the body, or its pieces, of an answer."""
        with self._lock:
            self.heard.append(heard)
        path = urlsplit(heard.path).path
        dialect = next((one for one in DIALECTS if one.takes(path)), None)
        if dialect is None or heard.method != "POST":
            return self._aside(heard.method, path)
        asked = dialect.read(path, heard.headers, heard.body)
        with self._lock:
            self.asked.append(asked)
            number = next(self._numbers)
            reply = self._play(asked)
        if isinstance(reply, Refuse):
            return reply.status, {**_JSON, **reply.headers}, _bytes(reply.content)
        if isinstance(reply, Hang):
            pieces = list(dialect.streamed(asked, reply.parts, number))
            return 200, {**_STREAM, _HANGS: "1"}, iter(pieces[: len(pieces) // 2])
        if asked.is_streamed:
            return 200, _STREAM, dialect.streamed(asked, reply, number)
        return 200, _JSON, _bytes(dialect.whole(asked, reply, number))

    def _aside(self, method: str, path: str) -> tuple[int, Mapping[str, str], bytes]:
        for dialect in DIALECTS:
            answer = dialect.answer(method, path)
            if answer is not None:
                return 200, _JSON, _bytes(answer)
        return 404, _JSON, _bytes({"error": {"type": "not_found_error", "message": path}})


_JSON = {"Content-Type": "application/json"}
_STREAM = {"Content-Type": "text/event-stream"}
_HANGS = "X-Hangs"


def _bytes(content: Json) -> bytes:
    return json.dumps(content).encode()
