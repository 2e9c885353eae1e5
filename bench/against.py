"""This checkout against another one: fold, search, a call of an agent, a call of the gateway.

    BENCH_BEFORE=../older python -m bench against

Both are measured by the same script, each in a process of its own, in turns of a fraction of a
second: what the machine does meanwhile hits both. The other checkout's `.venv/bin/python` runs
it, else this one's with the other's source before it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["against"]

_ROOT = Path(__file__).resolve().parents[1]
_DRIVER = Path(__file__).resolve().parent / "peers" / "own_driver.py"
_OTHER = "BENCH_BEFORE"
_RUNS = 5
_TURNS = 12
"""How often the two take turns within a run; a run's figure is the median of its turns."""


def against() -> list[dict[str, Any]]:
    """This checkout against that of BENCH_BEFORE: median of five alternating runs."""
    other = os.environ.get(_OTHER)
    if not other:
        raise SystemExit(f"set {_OTHER} to the folder of another checkout")
    figures: dict[str, list[tuple[float, float]]] = {}
    for _ in range(_RUNS):
        with _Driver.of(Path(other).resolve()) as before, _Driver.of(_ROOT) as now:
            for name in now.measures:
                figures.setdefault(name, []).append(_run(before, now, name))
    return [_row(name, runs) for name, runs in figures.items()]


def _row(name: str, runs: list[tuple[float, float]]) -> dict[str, Any]:
    ratios = sorted(now / before for before, now in runs)
    return {
        "µs": name,
        "before": round(median(before for before, _ in runs), 1),
        "now": round(median(now for _, now in runs), 1),
        "ratio": f"{median(ratios):.3f}",
        "from": f"{ratios[0]:.3f}",
        "to": f"{ratios[-1]:.3f}",
    }


def _run(before: _Driver, now: _Driver, name: str) -> tuple[float, float]:
    taken: dict[_Driver, list[float]] = {before: [], now: []}
    for turn in range(_TURNS):
        # Who goes first changes, so that neither always finds the machine warm.
        for driver in (before, now) if turn % 2 else (now, before):
            taken[driver].append(driver.measure(name))
    return median(taken[before]), median(taken[now])


class _Driver:
    """A checkout's process, which measures when it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.measures: list[str] = json.loads(self._line())

    @classmethod
    @contextmanager
    def of(cls, tree: Path) -> Generator[_Driver]:
        own = tree / ".venv" / "bin" / "python"
        python = str(own if own.exists() else sys.executable)
        with tempfile.TemporaryDirectory() as folder:
            # A variable of ours that toolfold does not know would be an error.
            inherited = {key: value for key, value in os.environ.items() if key != _OTHER}
            environment = {
                **inherited,
                "PYTHONPATH": str(tree / "src"),
                "XDG_CACHE_HOME": folder,
                "HOME": folder,
            }
            process = subprocess.Popen(
                [python, str(_DRIVER)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            with process:
                yield cls(process)
                # An empty line ends it.
                process.communicate("\n", timeout=30)

    def measure(self, name: str) -> float:
        """Microseconds of one turn."""
        assert self._process.stdin
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a measured checkout's process ended; its words stand above")
        return line
