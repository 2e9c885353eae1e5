"""This checkout against another one: fold, search, a call of an agent, a call of the gateway.

    TOOLFOLD_BEFORE=../older python -m bench against

Both are measured by the same script, each in processes of its own, in turns: what the machine
does meanwhile hits both. The other checkout's `.venv/bin/python` runs it, else this one's with
the other's source before it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["against"]

_ROOT = Path(__file__).resolve().parents[1]
_DRIVER = Path(__file__).resolve().parent / "peers" / "own_driver.py"
_ROUNDS = 5


def against() -> list[dict[str, Any]]:
    """This checkout against that of TOOLFOLD_BEFORE: median of five alternating runs."""
    other = os.environ.get("TOOLFOLD_BEFORE")
    if not other:
        raise SystemExit("set TOOLFOLD_BEFORE to the folder of another checkout")
    trees = {"before": Path(other).resolve(), "now": _ROOT}
    measured: dict[str, dict[str, list[float]]] = {}
    for round_ in range(_ROUNDS):
        # Who goes first changes, so that neither always finds the machine warm.
        order = list(trees.items()) if round_ % 2 else list(trees.items())[::-1]
        for name, tree in order:
            for what, value in _run(tree).items():
                measured.setdefault(what, {}).setdefault(name, []).append(value)
    rows: list[dict[str, Any]] = []
    for what, values in measured.items():
        before, now = median(values["before"]), median(values["now"])
        ratio = f"{now / before:.3f}"
        rows.append({"µs": what, "before": round(before, 1), "now": round(now, 1), "ratio": ratio})
    return rows


def _run(tree: Path) -> dict[str, float]:
    own = tree / ".venv" / "bin" / "python"
    python = str(own if own.exists() else sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree / "src"),
            "XDG_CACHE_HOME": folder,
            "HOME": folder,
        }
        done = subprocess.run(
            [python, str(_DRIVER)], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
