"""`toolfold serve` as a process, spoken to on its bare pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import Any

from support.servers.place import HELLO, SECONDS, Place, command

READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


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
