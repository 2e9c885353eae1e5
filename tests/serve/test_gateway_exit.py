"""How `toolfold serve` ends: nothing that it started, nor what that started, is left running."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.servers.place import HELLO, SECONDS, Place, command, prepared

READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


class Served:
    """A running `toolfold serve`, spoken to over its pipes."""

    def __init__(self, place: Place, *options: str) -> None:
        self.place = place
        self._number = 0
        with place.errors.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                command(place, *options),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **place.environment},
            )

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def greet(self) -> None:
        self.write(HELLO)
        self.answer(0)
        self.write(READY)

    def write(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> Any:
        assert self.process.stdout is not None
        while (line := json.loads(self.process.stdout.readline())).get("id") != number:
            pass
        return line["result"]

    def begin(self, name: str, x: str = "", n: int = 0) -> int:
        """Call a tool without waiting for what it answers."""
        self._number += 1
        params = {"name": name, "arguments": {"x": x, "n": n}}
        self.write({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params})
        return self._number

    def call(self, name: str, x: str = "", n: int = 0) -> str:
        return self.answer(self.begin(name, x, n))["content"][0]["text"]

    def end(self, how: str) -> float:
        """End it and return how many seconds it took."""
        began = time.monotonic()
        if how == "closed":
            assert self.process.stdin is not None
            self.process.stdin.close()
        else:
            self.process.send_signal(getattr(signal, how))
        self.process.wait(SECONDS)
        return time.monotonic() - began

    def wait_for(self, pattern: str) -> str:
        """Wait until the log has something."""
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.place.errors.read_text("utf-8"))):
            assert time.monotonic() < end, self.place.errors.read_text("utf-8")
            time.sleep(0.02)
        return found[0]


def gone(place: Place) -> None:
    """Nothing is left; the last of it may still be on its way out."""
    end = time.monotonic() + 2
    while (left := place.left()) and time.monotonic() < end:
        time.sleep(0.02)
    assert left == {}


def test_a_schema_of_40_levels_holds_up_neither_a_neighbour_nor_the_end(place: Place) -> None:
    place.add("bomb", "bomb").add("good")
    with Served(place) as served:
        served.greet()
        served.wait_for(r"server bomb: ready")
        served.wait_for(r"server good: ready")
        served.begin("bomb__boom", "x")

        assert served.call("good__echo", "y") == "good:y"
        served.begin("bomb__boom", "x")
        seconds = served.end("SIGTERM")

        assert seconds < 10
    gone(place)


HOWS = ["closed", "SIGTERM", "SIGINT", "SIGHUP"]


@pytest.mark.parametrize("how", HOWS)
def test_servers_that_will_not_end_are_ended_with_all_they_started(place: Place, how: str) -> None:
    place.add("good").add("stubborn", "stubborn").add("floods").add("exits", "exit")
    with Served(place) as served:
        served.greet()
        for server in ("good", "stubborn"):
            served.call(f"{server}__child")
        # One that was started again is no less ended than the first.
        pid = served.call("stubborn__pid")
        served.begin("stubborn__die")
        while (now := served.call("stubborn__pid")) == pid or not now.isdecimal():
            pass
        served.call("stubborn__child")
        served.begin("good__hang")
        served.begin("floods__flood", n=1_000_000)
        assert len(place.left()) >= 6

        seconds = served.end(how)

        assert served.process.returncode == 0
        assert seconds < 5
        gone(place)


@pytest.mark.parametrize("how", HOWS)
def test_it_ends_at_once_though_it_has_hardly_begun(place: Place, how: str) -> None:
    place.add("good").add("hangs", "hang", "stubborn")
    with Served(place) as served:
        end = time.monotonic() + SECONDS
        while len(place.left()) < 3:  # its servers are there before it can answer
            assert time.monotonic() < end
        served.end(how)
        gone(place)


def test_whoever_asks_twice_leaves_nothing_either(place: Place) -> None:
    place.add("stubborn", "stubborn").add("hangs", "hang", "stubborn")
    with Served(place) as served:
        served.greet()
        pid = served.call("stubborn__pid")
        served.begin("stubborn__die")
        while (now := served.call("stubborn__pid")) == pid or not now.isdecimal():
            pass
        served.process.send_signal(signal.SIGINT)
        time.sleep(0.05)  # two signals at once are one
        served.end("SIGINT")
        gone(place)


def test_killed_itself_it_leaves_nothing_either(place: Place) -> None:
    place.add("good").add("stubborn", "stubborn").add("hangs", "hang", "stubborn")
    with Served(place) as served:
        served.greet()
        served.call("stubborn__child")

        served.end("SIGKILL")

        assert served.process.returncode == -signal.SIGKILL
        gone(place)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "closed"])
def test_a_client_that_reads_no_more_does_not_keep_it(place: Place, how: str) -> None:
    place.add("good")
    with Served(place) as served:
        served.greet()
        for _ in range(4):
            served.begin("good__echo", "x" * 200_000)
        end = time.monotonic() + SECONDS
        while place.ran()["echo " + "x" * 200_000] < 4:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert served.end(how) < 5
        gone(place)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_over_http_too(place: Place, how: str) -> None:
    place.add("good").add("stubborn", "stubborn").add("hangs", "hang", "stubborn")
    with Served(place, "--http", "127.0.0.1:0") as served:
        served.wait_for(r"listening on \S+")
        served.wait_for("server stubborn: ready")
        assert len(place.left()) == 4

        assert served.end(how) < 5
        gone(place)
