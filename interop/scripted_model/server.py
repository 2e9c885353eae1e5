"""The server: one address, every dialect, everything it hears written down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

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


class ScriptedModel:
    """A model server on a free port of this machine.

    Args:
        play: What the model says.
    """

    def __init__(self, play: Play) -> None:
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

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def turns(self) -> list[Asked]:
        """The requests of the conversation: those that offer tools."""
        return [asked for asked in self.asked if asked.tools]

    def __enter__(self) -> ScriptedModel:
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


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            heard = Heard(self.command, self.path, dict(self.headers), self.rfile.read(length))
            status, headers, body = model.reply(heard)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if isinstance(body, bytes):
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in body:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            if _HANGS in headers:
                model.hangs.set()
                with suppress(OSError):
                    self.connection.recv(1)
                model.left.set()
                self.close_connection = True
                return
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_HEAD = do_POST = _serve

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on standard error."""

    return Handler
