"""A web site on this machine, for the server that fetches pages."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Web", "open_web"]

_PAGE = (
    b"<html><head><title>A page</title></head><body><h1>A page</h1><p>Some text.</p></body></html>"
)
_PATIENCE = 30


class Web:
    """What the site has seen."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.waiting = threading.Event()
        """Somebody waits for the page that never comes."""
        self.left = threading.Event()
        """Whoever waited has hung up."""


@contextmanager
def open_web() -> Generator[Web]:
    """Serve `/page`, and `/slow`, which never comes."""
    web: Web

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/slow":
                self._wait()
            elif self.path == "/page":
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(_PAGE)))
                self.end_headers()
                self.wfile.write(_PAGE)
            else:
                self.send_error(404)

        def _wait(self) -> None:
            web.waiting.set()
            self.connection.settimeout(_PATIENCE)
            if not self.connection.recv(1):
                web.left.set()
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        web = Web(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield web
        finally:
            server.shutdown()
