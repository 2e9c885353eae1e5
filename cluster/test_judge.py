"""The judge finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.judge import Call, Probe, Verdict, judged, read_account, side_by_side, written

FINE = Call("c1-0", "c1", "ledger", "write_1", "calm", "answered",
            "ledger write_1 c1 c1-0", 1, 0.1, 5.0)  # fmt: skip
RUN = {"event": "run", "server": "ledger", "tool": "write_1", "mark": "c1-0", "who": "c1",
       "pid": 7, "at": 5.05}  # fmt: skip


def verdict(
    folder: Path, *events: dict[str, Any], call: Call = FINE, probes: tuple[Probe, ...] = ()
) -> Verdict:
    ledger, account = folder / "ledger", folder / "account"
    ledger.write_text("".join(json.dumps(event) + "\n" for event in events))
    account.write_text("".join(map(written, (call, *probes))))
    calls, seen = read_account(account)
    return judged(calls, seen, ledger)[-1]


def faults(of: Verdict) -> list[str]:
    return [name for name, found in of.faults.items() if found]


def test_a_call_that_ran_once_and_was_answered_is_fine(tmp_path: Path) -> None:
    of = verdict(tmp_path, RUN)

    assert of.holds
    assert (of.calls, of.answered, of.p50) == (1, 1, 0.1)


@pytest.mark.parametrize(
    ("call", "runs", "expected"),
    [
        (FINE, 2, ["twice"]),
        (FINE, 0, ["crossed"]),
        (replace(FINE, text="ledger write_1 c2 c2-0"), 1, ["crossed"]),
        (replace(FINE, outcome="lost", text=""), 1, ["lost"]),
        (replace(FINE, outcome="lost", text=""), 0, ["lost"]),
        (replace(FINE, outcome="error", text="no such tool"), 1, ["denied"]),
        (replace(FINE, outcome="error", text="no such tool"), 0, []),
        (replace(FINE, outcome="error", text="it is not known whether it ran"), 1, []),
        (replace(FINE, outcome="error", text="it is not known whether it ran"), 2, ["twice"]),
        (replace(FINE, who="c2", text="ledger write_1 c2 c1-0"), 1, ["crossed"]),
    ],
)
def test_what_is_wrong_with_a_call_is_named(
    tmp_path: Path, call: Call, runs: int, expected: list[str]
) -> None:
    assert faults(verdict(tmp_path, *[RUN] * runs, call=call)) == expected


@pytest.mark.parametrize("kind", ["list", "search", "call", "direct"])
def test_a_probe_that_saw_something_or_ran_is_a_wider_scope(tmp_path: Path, kind: str) -> None:
    fine = Probe("p1", "c1", "calm", kind, "")
    ran = {**RUN, "mark": "p1", "tool": "write_2"}

    assert faults(verdict(tmp_path, RUN, probes=(fine,))) == []
    assert faults(verdict(tmp_path, RUN, probes=(replace(fine, fault="seen"),))) == ["wider"]
    assert faults(verdict(tmp_path, RUN, ran, probes=(fine,))) == ["wider"]


def test_a_session_that_nobody_knows_any_more_is_forgotten(tmp_path: Path) -> None:
    probe = Probe("p1", "c1", "calm", "session", "404")

    assert faults(verdict(tmp_path, RUN, probes=(probe,))) == ["forgotten"]


def test_a_run_that_nobody_asked_for_is_found(tmp_path: Path) -> None:
    assert faults(verdict(tmp_path, RUN, {**RUN, "mark": "whose"})) == ["crossed"]


def test_processes_of_a_server_that_ran_side_by_side_are_found(tmp_path: Path) -> None:
    def events(*runs: tuple[int, float]) -> Path:
        path = tmp_path / "ledger"
        path.write_text("".join(json.dumps({**RUN, "pid": p, "at": at}) + "\n" for p, at in runs))
        return path

    assert side_by_side(events((1, 0), (1, 2), (2, 3), (2, 4)), "ledger") == []
    assert side_by_side(events((1, 0), (2, 1), (1, 2), (2, 3)), "ledger") == ["1 and 2"]
    assert side_by_side(events((1, 0), (2, 1), (1, 2), (2, 3)), "stock") == []
