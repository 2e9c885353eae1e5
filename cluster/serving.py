"""`toolfold serve --http` as a process, spoken to in bare requests."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

__all__ = ["Replica", "Session", "book", "soon"]

_SERVE = "from toolfold.cli.serve import command; command.main(prog_name='toolfold serve')"
SECONDS = 40.0


def soon(is_so: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not is_so():
        assert time.monotonic() < deadline
        pause.wait(0.05)


def book(path: Path) -> list[tuple[str, str, int]]:
    """Return what a server has written down."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(what, x, pid) for what, x, pid in map(json.loads, lines)]


class Replica:
    """One gateway of several. Open it with `with`.

    Args:
        folder: Where its files are.
        name: What it is called here.
        store: The address of the store that it shares.
        servers: Its `mcpServers`.
        more: What else stands under `serve`.
    """

    def __init__(
        self, folder: Path, name: str, store: str, servers: dict[str, Any], **more: Any
    ) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
        self.name = name
        self.errors = folder / f"{name}.log"
        self.config = folder / f"{name}.json"
        serve = {"store": store, "state_dir": str(folder / name), "audit": "off", **more}
        tools = {"tool_search": {"enabled": "off"}}
        written = {"mcpServers": servers, "serve": serve, "tools": tools}
        self.config.write_text(json.dumps(written), "utf-8")
        self.headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(10)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self.errors.open("a", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, "--config", str(self.config),
                 "--http", f"127.0.0.1:{self.port}"],
                stderr=errors,
            )  # fmt: skip
        soon(self._listens)

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.errors.read_text("utf-8")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def signal(self, number: int) -> None:
        """Send it a signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def post(
        self, message: dict[str, Any], headers: dict[str, str], seconds: float = SECONDS
    ) -> tuple[int, dict[str, str], list[Any]]:
        """Send one message, and return status, headers and messages of the answer."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            accept = {
                "accept": "application/json, text/event-stream",
                "content-type": "application/json",
            }
            body = json.dumps({"jsonrpc": "2.0", **message})
            line.request("POST", "/mcp", body, {**accept, **headers})
            response = line.getresponse()
            text = response.read().decode()
            found = re.findall(r"^data: ?(\{.*)$", text, re.M) or ([text] if text else [])
            answers = [json.loads(each) for each in found] if response.status == 200 else []
            return response.status, {k.lower(): v for k, v in response.getheaders()}, answers
        finally:
            line.close()

    def session(self, **headers: str) -> Session:
        """Open a session."""
        return Session(self, headers)

    def said(self, pattern: str) -> bool:
        """Whether its log says something."""
        return re.search(pattern, self.errors.read_text("utf-8")) is not None


class Session:
    """A client's session at one replica."""

    def __init__(self, replica: Replica, headers: dict[str, str]) -> None:
        self._replica = replica
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        message = {"id": 0, "method": "initialize", "params": hello}
        status, given, _ = replica.post(message, headers)
        assert status == 200, status
        own = {"mcp-session-id": given["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        self.headers = {**headers, **own}
        replica.post({"method": "notifications/initialized"}, self.headers)
        self._number = 0

    def ask(self, method: str, seconds: float = SECONDS, **params: Any) -> list[Any]:
        """Ask, and return all that came back, the result last."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        status, _, answers = self._replica.post(message, self.headers, seconds)
        assert status == 200, status
        return answers

    def result(self, method: str, **params: Any) -> Any:
        """Ask, and return the result."""
        return self.ask(method, **params)[-1]["result"]

    def call(self, name: str, **arguments: Any) -> str:
        """Call a tool, and return its text."""
        return self.result("tools/call", name=name, arguments=arguments)["content"][0]["text"]

    def tools(self) -> list[str]:
        """Return the names of the tools."""
        return [tool["name"] for tool in self.result("tools/list")["tools"]]
