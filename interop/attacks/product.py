"""The product as a stranger meets it: commands, a gateway over pipes, a gateway over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Http", "Product", "Session", "text_of", "wait_for"]

STRANGER = Path(__file__).with_name("stranger.py")
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "attacker", "version": "0"},
}


@dataclass(frozen=True)
class Product:
    """One installation of toolfold.

    Args:
        python: The interpreter that has it.
        tree: A source tree to take it from, instead of what is installed.
    """

    python: str = sys.executable
    tree: Path | None = None

    @classmethod
    def at(cls, path: Path | None) -> Product:
        """Return the one at an interpreter or a source tree; without a path, this one."""
        if path is None:
            return cls()
        if path.is_dir():
            own = path / ".venv" / "bin" / "python"
            return cls(str(own) if own.exists() else sys.executable, path / "src")
        return cls(str(path))

    def environment(self, home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return an environment in which only `home` is known of the user."""
        path = {"PYTHONPATH": str(self.tree)} if self.tree else {}
        known = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        return {**known, **path, **(more or {})}

    def run(
        self,
        *words: str | Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        seconds: float = 40,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; one that takes too long has the exit code 124."""
        command = [self.python, "-m", "toolfold", *map(str, words)]
        try:
            return subprocess.run(
                command,
                cwd=cwd,
                env=self.environment(cwd, env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", "")

    @contextmanager
    def gateway(
        self, config: Path, *flags: str, env: Mapping[str, str] | None = None
    ) -> Iterator[Session]:
        """A gateway over its pipes, with a client that has said hello."""
        errors = config.parent / "gateway.log"
        with errors.open("ab") as log:
            process = subprocess.Popen(
                [self.python, "-m", "toolfold", "serve", "--config", str(config), *flags],
                cwd=config.parent,
                env=self.environment(config.parent, env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        session = Session(process, errors)
        try:
            session.open()
            yield session
        finally:
            _end(process)

    @contextmanager
    def listening(
        self, config: Path, *flags: str, env: Mapping[str, str] | None = None
    ) -> Iterator[Http]:
        """A gateway over HTTP."""
        port = _free_port()
        errors = config.parent / "gateway.log"
        address = f"127.0.0.1:{port}"
        command = [self.python, "-m", "toolfold", "serve"]
        with errors.open("ab") as log:
            process = subprocess.Popen(
                [*command, "--config", str(config), "--http", address, *flags],
                cwd=config.parent,
                env=self.environment(config.parent, env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            wait_for(lambda: _listens(port), 40)
            yield Http(port, process, errors)
        finally:
            _end(process)


@dataclass
class Session:
    """A client over pipes that keeps everything it hears."""

    process: subprocess.Popen[bytes]
    errors: Path
    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Requests and notifications that came."""
    answer: Callable[[dict[str, Any]], Any] = lambda request: {"action": "decline"}
    """What the person says to a question."""

    def __post_init__(self) -> None:
        self._waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def open(self) -> None:
        """Say hello."""
        self.ask("initialize", HELLO, 60)
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: dict[str, Any]) -> queue.Queue[dict[str, Any]]:
        """Ask something without waiting for the answer."""
        self._number += 1
        waiting = self._waiting[self._number] = queue.Queue()
        self.send({"id": self._number, "method": method, "params": params})
        return waiting

    def ask(self, method: str, params: dict[str, Any], seconds: float = 30) -> dict[str, Any]:
        """Ask something; an empty answer where none came in time."""
        try:
            return self.begin(method, params).get(timeout=seconds)
        except queue.Empty:
            return {}

    def call(self, name: str, arguments: dict[str, Any], seconds: float = 30) -> str:
        """Call a tool by its name; return all that was answered, as text."""
        asked = self.ask("tools/call", {"name": name, "arguments": arguments}, seconds)
        return text_of(asked)

    def through_bridge(self, name: str, arguments: dict[str, Any], seconds: float = 30) -> str:
        """Call a folded tool."""
        return self.call("tool_call", {"name": name, "arguments": arguments}, seconds)

    def listed(self) -> list[dict[str, Any]]:
        """Return the tools that the client is shown."""
        return self.ask("tools/list", {}).get("result", {}).get("tools", [])

    def until(self, server: str, seconds: float = 40) -> None:
        """Wait until the log says what became of a server's start."""
        _until_settled(self.log, server, seconds)

    def log(self) -> str:
        """Return what the gateway has logged."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.heard.append(message)
                if "id" in message:
                    self.send({"id": message["id"], "result": self.answer(message)})
            elif message.get("id") in self._waiting:
                self._waiting.pop(message["id"]).put(message)


@dataclass
class Http:
    """A gateway that listens."""

    port: int
    process: subprocess.Popen[bytes]
    errors: Path

    def post(
        self,
        method: str,
        params: dict[str, Any],
        *,
        token: str = "",
        session: str = "",
        seconds: float = 30,
    ) -> tuple[int, dict[str, str], str]:
        """Make one request; return status, headers and body."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-11-25",
            **({"authorization": f"Bearer {token}"} if token else {}),
            **({"mcp-session-id": session} if session else {}),
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("POST", "/mcp", body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
        finally:
            connection.close()

    def session(self, token: str = "", seconds: float = 30) -> str:
        """Open a session; return its id, or nothing where it was refused."""
        status, headers, _ = self.post("initialize", HELLO, token=token, seconds=seconds)
        return headers.get("mcp-session-id", "") if status == 200 else ""

    def call(self, name: str, arguments: dict[str, Any], token: str = "", session: str = "") -> str:
        """Call a tool; return all that was answered, as text."""
        session = session or self.session(token)
        params = {"name": name, "arguments": arguments}
        return _plain(self.post("tools/call", params, token=token, session=session)[2])

    def listed(self, token: str = "") -> str:
        """Return the list of tools that a token is shown, as text."""
        return _plain(self.post("tools/list", {}, token=token, session=self.session(token))[2])

    def log(self) -> str:
        """Return what the gateway has logged."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def until(self, server: str, seconds: float = 40) -> None:
        """Wait until the log says what became of a server's start."""
        _until_settled(self.log, server, seconds)


def text_of(message: dict[str, Any]) -> str:
    """Return an answer as one readable text."""
    result = message.get("result") or message.get("error") or {}
    if "content" in result:
        return "\n".join(str(part.get("text", part)) for part in result["content"])
    return json.dumps(result, ensure_ascii=False) if result else ""


def wait_for(holds: Callable[[], object], seconds: float = 20) -> bool:
    """Wait until something holds, and return whether it came to."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _until_settled(log: Callable[[], str], server: str, seconds: float) -> None:
    # The log cuts long names.
    line = re.compile(rf"server {re.escape(server[:24])}\S*: (ready|quarantined)")
    if not wait_for(lambda: line.search(log()), seconds):
        raise TimeoutError(f"{server} did not start: {log()[-300:]}")


def _plain(body: str) -> str:
    """Return what a body over HTTP says: the message of its events, or its JSON, as text."""
    lines = [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]
    texts: list[str] = []
    for line in lines:
        try:
            texts.append(text_of(json.loads(line)))
        except ValueError:
            texts.append(line)
    return "\n".join(text for text in texts if text)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
