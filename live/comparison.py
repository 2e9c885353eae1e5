"""`toolfold ab` against the real server: one scenario, once.

The command is run as a user runs it. That it comes to its end with a report is what is
checked; whether the model solved the scenario is told, and proves nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from live.report import Report, short
from live.server import MODEL, Server

__all__ = ["compare"]

_SCENARIO = "obvious_single"
_SECONDS = 120


def compare(server: Server, report: Report) -> None:
    """Hold one scenario with folded and unfolded tools."""
    with tempfile.TemporaryDirectory(prefix="toolfold-live-") as folder:
        command = (
            *(sys.executable, "-m", "toolfold", "ab", "--model", MODEL),
            *("--base-url", server.base_url, "--scenario", _SCENARIO, "--repeat", "1"),
            *("--profile", "small", "--timeout", "30", "--out", folder, "--json"),
        )
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            report.check("`toolfold ab` comes to its end", False, f"not within {_SECONDS} s")
            return
        page = (Path(folder) / "report.html").exists()
    runs = _runs(ran.stdout)
    report.check(
        "`toolfold ab` comes to its end: a run in each arm, and a page",
        page and [run["arm"] for run in runs] == ["folded", "unfolded"],
        "" if runs else short(ran.stderr[-200:]),
    )
    report.note(f"`toolfold ab`, scenario {_SCENARIO}:")
    for run in runs:
        told = (
            f"{'solved' if run['success'] else 'not solved'}, {run['round_trips']} round trips, "
            f"about {run['prompt_tokens']:,} tokens sent"
        )
        why = run["error"] or "; ".join(run["problems"])
        report.note(f"    {run['arm']}: {told}" + (f" ({short(why, 120)})" if why else ""))


def _runs(printed: str) -> list[dict[str, Any]]:
    try:
        return list(json.loads(printed)["runs"])
    except (ValueError, KeyError):
        return []
