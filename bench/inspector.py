"""The inspector in a real browser, over 4,076 tools: first paint, the map, a search as one types.

The browser is driven by `bench.inspector_page`, in the environment that `make browser` makes:
Playwright is none of this project's own dependencies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bench import data
from toolfold.evaluation.measure import percentile

__all__ = ["inspector"]

_ROOT = Path(__file__).resolve().parents[1]
_OWN = _ROOT / ".browser" / "bin" / "python"
_GOALS = {"first paint": 100, "search": 50}


def inspector() -> list[dict[str, Any]]:
    """Milliseconds until the inspector's page paints, draws its map, and shows a search's hits."""
    python = sys.executable if find_spec("playwright") else str(_OWN)
    if not Path(python).is_file():
        print("note: skipped, no Playwright: run `make browser` once", file=sys.stderr)
        return []
    catalog = data.catalog("seal-4076")
    with tempfile.TemporaryDirectory(prefix="toolfold-bench-") as folder:
        file = Path(folder) / "tools.jsonl"
        file.write_text("".join(json.dumps(tool) + "\n" for tool in catalog.tools), "utf-8")
        with _inspecting(file) as link:
            page = Path(__file__).with_name("inspector_page.py")
            done = subprocess.run(
                [python, str(page), link],
                input=json.dumps(data.queries("short", 40)),
                capture_output=True,
                text=True,
                timeout=300,
            )
    if done.returncode == 3:
        print(f"note: skipped, {done.stderr.strip()}", file=sys.stderr)
        return []
    if done.returncode:
        raise SystemExit(f"the browser failed: {done.stderr.strip()[-500:]}")
    about = {"catalog": catalog.name, "tools": len(catalog.tools)}
    return [about | _row(what, times) for what, times in json.loads(done.stdout).items()]


def _row(what: str, times: list[float]) -> dict[str, Any]:
    return {
        "what": what,
        "times": len(times),
        "p50 ms": round(median(times), 1),
        "p95 ms": round(percentile(times, 95), 1),
        "least ms": round(min(times), 1),
        "goal ms": _GOALS.get(what, ""),
    }


@contextmanager
def _inspecting(file: Path) -> Generator[str]:
    command = [sys.executable, "-m", "toolfold", "inspect", str(file), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
