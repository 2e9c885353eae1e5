"""The balancers: each request to the next replica that is ready, and to no second one."""

from __future__ import annotations

import http.client
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cluster import balancer, hosts
from cluster.hosts import Host, Network

ROOT = Path(__file__).resolve().parent.parent

REPLICA = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
host, name, flag, taken = sys.argv[1:]
class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/readyz":
            self.said(503 if os.path.exists(flag) else 200, b"")
        else:
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for part in (b"one", b"two"):
                self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(part), part))
                time.sleep(1)
            self.wfile.write(b"0\\r\\n\\r\\n")
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with open(taken, "a") as file:
            file.write(body.decode() + chr(10))
        if body == b"die":
            self.close_connection = True
            return
        self.said(200, name.encode())
    def said(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
ThreadingHTTPServer((host, 7000), Door).serve_forever()
"""

Ask = Callable[..., tuple[int, str]]


@pytest.fixture(params=["haproxy", "our own"])
def ask(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ask]:
    """Two replicas, `a` and `b`, behind a balancer; a way to ask it."""
    if reason := hosts.why_not():
        pytest.skip(reason)
    if request.param == "haproxy" and shutil.which("haproxy") is None:
        pytest.skip("haproxy is not installed")
    if request.param == "our own":
        monkeypatch.setattr(balancer.shutil, "which", lambda name: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    with Network("clients", "front", "a", "b") as network:
        addresses: list[str] = []
        for name in "ab":
            host = network[name]
            own = [host.address, name, str(tmp_path / f"{name}.out"), str(tmp_path / "taken")]
            host.start([sys.executable, "-S", "-E", "-c", REPLICA, *own])
            addresses.append(f"{host.address}:7000")
        front = network["front"]
        front.start(balancer.command(f"{front.address}:80", addresses, tmp_path), cwd=ROOT)

        def asked(method: str = "POST", body: str = "x") -> tuple[int, str]:
            return network["clients"].run(lambda: _asked(front, method, body))

        _until(lambda: {asked()[1] for _ in range(4)} == {"a", "b"})
        (tmp_path / "taken").write_text("")
        yield asked


def _asked(front: Host, method: str, body: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(front.address, 80, timeout=10)
    try:
        connection.request(method, "/mcp", body if method == "POST" else None)
        answer = connection.getresponse()
        if method == "GET":
            began = time.monotonic()
            first = answer.read1(100).decode()
            return int(time.monotonic() - began < 0.8), first + answer.read().decode()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def _until(holds: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.05)


def test_requests_go_to_one_replica_and_then_the_other(ask: Ask) -> None:
    assert sorted(ask()[1] for _ in range(6)) == ["a"] * 3 + ["b"] * 3


def test_a_replica_that_is_not_ready_is_passed_over(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a.out").touch()
    _until(lambda: {ask() for _ in range(4)} == {(200, "b")})
    (tmp_path / "a.out").unlink()
    _until(lambda: {ask()[1] for _ in range(4)} == {"a", "b"})


def test_a_request_that_a_replica_took_is_not_made_again(ask: Ask, tmp_path: Path) -> None:
    status, _ = ask(body="die")

    assert status in (0, 502)
    assert (tmp_path / "taken").read_text() == "die\n"


def test_with_nobody_ready_the_answer_is_503(ask: Ask, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.out").touch()
    _until(lambda: ask()[0] == 503)
    before = (tmp_path / "taken").read_text()

    assert ask()[0] == 503
    assert (tmp_path / "taken").read_text() == before
    with suppress(FileNotFoundError):
        (tmp_path / "a.out").unlink()


def test_a_stream_is_passed_on_as_it_comes(ask: Ask) -> None:
    came_early, whole = ask("GET")

    assert came_early
    assert whole.replace("\r\n", "") == "onetwo"
