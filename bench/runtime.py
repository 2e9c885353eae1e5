"""What a runtime adds to a call: the same scripted conversation, ours and the peers'.

Every runtime is a process with the same driver protocol (`peers/conversation.py`); the passes
of the processes alternate, so that a slow minute of the machine falls on all of them. A figure
is the median over conversations of a conversation's time over its calls; the model's part is a
few microseconds of script, and what a real client does to write a request is not in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from bench import data
from bench.peers.peers import PeerUnavailableError, clean_environment, install

__all__ = ["runtime"]

Row = dict[str, Any]

_DRIVERS = Path(__file__).resolve().parent / "peers"
_PEERS = ("pydantic_ai", "openai_agents")
_CALLS = 20
_ROUNDS = 12
_PASSES = 3
_DIRECT, _UNFOLDED = "the function itself", "toolfold, not folded"
_CASES = (
    ("async", "one a reply", False),
    ("sync", "one a reply", False),
    ("async", "all at once", True),
)


def runtime() -> list[Row]:
    """Microseconds that one tool call takes in a scripted conversation of 20, by runtime."""
    catalog = data.catalog("deploy-226")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="toolfold-bench-") as folder:
        tools = Path(folder) / "tools.jsonl"
        tools.write_text("".join(json.dumps(t) + "\n" for t in catalog.tools), encoding="utf-8")
        with _drivers(Path(folder)) as drivers:
            for count in (20, len(catalog.tools)):
                for kind, calls, together in _CASES:
                    wanted = {"tools": str(tools), "count": count, "kind": kind}
                    times = _times(drivers, {**wanted, "together": together})
                    about = {"tools": count, "function": kind, "calls": calls}
                    rows.extend({**about, **row} for row in _rows(times))
    return rows


def _rows(times: Mapping[str, Sequence[float]]) -> Iterator[Row]:
    micros = {name: median(seconds) / _CALLS * 1e6 for name, seconds in times.items()}
    for name, each in micros.items():
        row: Row = {"runtime": name, "µs a call": round(each, 2 if each < 10 else None)}
        if name != _DIRECT:
            row["added µs"] = round(each - micros[_DIRECT])
            row["x ours, not folded"] = f"{each / micros[_UNFOLDED]:.1f}"
        yield row


def _times(
    drivers: Mapping[str, subprocess.Popen[str]], wanted: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Return the seconds of all conversations, by runtime."""
    line = json.dumps({**wanted, "calls": _CALLS, "rounds": _ROUNDS}) + "\n"
    times: dict[str, list[float]] = {}
    for _ in range(_PASSES):
        for driver in drivers.values():
            for name, seconds in _ask(driver, line).items():
                times.setdefault(name, []).extend(seconds)
    return times


def _ask(driver: subprocess.Popen[str], line: str) -> dict[str, list[float]]:
    assert driver.stdin is not None and driver.stdout is not None
    try:
        driver.stdin.write(line)
        driver.stdin.flush()
    except BrokenPipeError:
        return {}
    answer = driver.stdout.readline()
    return json.loads(answer) if answer else {}


@contextmanager
def _drivers(folder: Path) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Start ours and every peer that can be had."""
    pythons = {"toolfold": Path(sys.executable)}
    for name in _PEERS:
        try:
            pythons[name] = install(name)
        except PeerUnavailableError as error:
            print(f"note: {error}", file=sys.stderr)
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for name, python in pythons.items():
            with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
                started[name] = subprocess.Popen(
                    (str(python), str(_DRIVERS / f"{name}_driver.py")),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    encoding="utf-8",
                    env=clean_environment(),
                )
        yield started
    finally:
        for name, driver in started.items():
            _end(name, driver, folder / f"{name}.log")


def _end(name: str, driver: subprocess.Popen[str], log: Path) -> None:
    if driver.stdin is not None:
        with suppress(BrokenPipeError):
            driver.stdin.close()
    try:
        driver.wait(timeout=10)
    except subprocess.TimeoutExpired:
        driver.kill()
        driver.wait()
    if driver.stdout is not None:
        driver.stdout.close()
    if driver.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        print(f"note: {name} failed: {(said or ['no message'])[-1]}", file=sys.stderr)
