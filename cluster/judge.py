"""What became of every call: the clients' accounts beside what the servers wrote down."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["Call", "Probe", "Verdict", "judged", "read_account", "side_by_side"]

UNSURE = ("not known whether", "may have had effects", "its result was lost")
"""What an error says of a call that ran, or may have run."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as its client saw it."""

    mark: str
    who: str
    server: str
    tool: str
    phase: str
    outcome: str
    """`answered`, `error`, or `lost`: neither came in time."""
    text: str
    """The answer's or the error's; of a lost one, what happened last."""
    tries: int
    seconds: float
    at: float
    """When it began, by the clock of this machine."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One look at what is outside a client's scope, or at what a session must remember."""

    mark: str
    who: str
    phase: str
    kind: str
    """`list`, `search`, `call`, `direct`, or `session` where one was forgotten."""
    fault: str
    """What was seen that must not be; empty where nothing was."""


@dataclass(slots=True)
class Verdict:
    """What a phase came to. All of its faults are none where it held."""

    phase: str
    calls: int = 0
    answered: int = 0
    refused: int = 0
    """Calls with an error that says, or means, that it did not run."""
    unsure: int = 0
    """Calls with an error that says that they ran, or that nobody knows."""
    retried: int = 0
    lost: list[str] = field(default_factory=list[str])
    """Calls with neither an answer nor an error."""
    crossed: list[str] = field(default_factory=list[str])
    """Calls with somebody else's answer, or one that no server gave."""
    twice: list[str] = field(default_factory=list[str])
    """Calls that ran more than once."""
    denied: list[str] = field(default_factory=list[str])
    """Calls that ran, and of which the client was told that they had not."""
    wider: list[str] = field(default_factory=list[str])
    """Tools outside a scope that were listed, found or run."""
    forgotten: list[str] = field(default_factory=list[str])
    """Sessions that a replica knew nothing of, or of which it forgot what was revealed."""
    p50: float = 0.0
    p99: float = 0.0
    longest: float = 0.0
    per_second: float = 0.0

    @property
    def faults(self) -> dict[str, list[str]]:
        """What must be empty."""
        names = ("lost", "crossed", "twice", "denied", "wider", "forgotten")
        return {name: getattr(self, name) for name in names}

    @property
    def holds(self) -> bool:
        """Whether there is no fault at all."""
        return not any(self.faults.values())

    def row(self) -> dict[str, Any]:
        """Return it as one row of a table: faults are counted."""
        counted = {name: len(found) for name, found in self.faults.items()}
        shares = {"p50 ms": self.p50 * 1_000, "p99 ms": self.p99 * 1_000}
        times = {name: round(value, 1) for name, value in shares.items()}
        heads = ("phase", "calls", "answered", "refused", "unsure", "retried")
        longest = {"longest s": round(self.longest, 1), "calls/s": round(self.per_second)}
        return {**{name: getattr(self, name) for name in heads}, **counted, **times, **longest}


def read_account(path: Path) -> tuple[list[Call], list[Probe]]:
    """Return what the clients wrote down."""
    calls: list[Call] = []
    probes: list[Probe] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "outcome" in record:
            calls.append(Call(**record))
        else:
            probes.append(Probe(**record))
    return calls, probes


def written(record: Call | Probe) -> str:
    """Return a record as `read_account` reads it."""
    return json.dumps(asdict(record)) + "\n"


def judged(calls: Sequence[Call], probes: Sequence[Probe], ledger: Path) -> list[Verdict]:
    """Return a verdict for each phase, in order, and one over all of them.

    Args:
        calls: What the clients say of their calls.
        probes: What they saw beside them.
        ledger: What the servers wrote down.
    """
    events = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["event"] == "run":
            runs[event["mark"]].append(event)
    phases = list(dict.fromkeys(call.phase for call in calls))
    verdicts = [
        _verdict(
            phase,
            [call for call in calls if call.phase == phase],
            [probe for probe in probes if probe.phase == phase],
            runs,
        )
        for phase in phases
    ]
    whole = _verdict("all", calls, probes, runs)
    known = {call.mark for call in calls} | {probe.mark for probe in probes}
    # Whatever ran without being asked for is nobody's phase.
    whole.crossed += [f"{mark}: ran, and nobody asked" for mark in runs if mark not in known]
    return [*verdicts, whole]


def side_by_side(ledger: Path, server: str) -> list[str]:
    """Return which processes of a server that runs once ran calls while another one did."""
    spans: dict[int, tuple[float, float]] = {}
    for line in ledger.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["server"] == server and event["event"] == "run":
            first, _ = spans.get(event["pid"], (event["at"], 0.0))
            spans[event["pid"]] = (first, event["at"])
    order = sorted((first, last, pid) for pid, (first, last) in spans.items())
    return [f"{one[2]} and {two[2]}" for one, two in pairwise(order) if two[0] < one[1]]


def _verdict(
    phase: str, calls: Sequence[Call], probes: Iterable[Probe], runs: dict[str, list[Any]]
) -> Verdict:
    made = Verdict(phase, calls=len(calls))
    for call in calls:
        _weigh(made, call, runs.get(call.mark, []))
    for probe in probes:
        kind = made.forgotten if probe.kind == "session" else made.wider
        if probe.fault:
            kind.append(f"{probe.mark}: {probe.kind}: {probe.fault}")
        elif probe.mark in runs:
            made.wider.append(f"{probe.mark}: {probe.kind}: it ran")
    if calls:
        taken = sorted(call.seconds for call in calls)
        made.p50, made.p99 = taken[len(taken) // 2], taken[int(0.99 * len(taken))]
        made.longest = taken[-1]
        made.per_second = len(calls) / _duration(calls)
    return made


def _weigh(made: Verdict, call: Call, runs: list[dict[str, Any]]) -> None:
    made.retried += call.tries > 1
    if len(runs) > 1:
        made.twice.append(f"{call.mark}: {len(runs)} times: {Counter(r['pid'] for r in runs)}")
    if any(run["who"] != call.who or run["tool"] != call.tool for run in runs):
        made.crossed.append(f"{call.mark}: ran as {runs}")
    if call.outcome == "lost":
        made.lost.append(f"{call.mark}: {call.text}, ran {len(runs)} times")
    elif call.outcome == "answered":
        made.answered += 1
        expected = f"{call.server} {call.tool} {call.who} {call.mark}"
        if call.text != expected or not runs:
            made.crossed.append(f"{call.mark}: {call.text[:200]}, ran {len(runs)} times")
    elif any(words in call.text for words in UNSURE):
        made.unsure += 1
    else:
        made.refused += 1
        if runs:
            made.denied.append(f"{call.mark}: {call.text[:200]}")


def _duration(calls: Sequence[Call]) -> float:
    """Return for how many seconds calls were made, phase by phase."""
    spans: dict[str, tuple[float, float]] = {}
    for call in calls:
        first, last = spans.get(call.phase, (call.at, call.at))
        spans[call.phase] = (min(first, call.at), max(last, call.at + call.seconds))
    return max(sum(last - first for first, last in spans.values()), 1e-9)
