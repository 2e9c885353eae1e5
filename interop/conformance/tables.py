"""What the runs come to: tables for people, the same as JSON, and whether anything was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.suite import Check, Results

__all__ = ["Lost", "Run", "as_json", "as_markdown", "lost"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the suite."""

    subject: str
    """What was tried: `direct`, or how the gateway folds, or `client`."""

    revision: str
    results: Results

    def counts(self, scenario: str | None = None) -> tuple[int, int]:
        """Return how many checks passed, and how many were made or should have been."""
        own = [s for check, s in self.results.items() if scenario in (None, check.scenario)]
        made = [s for s in own if s not in ("INFO", "SKIPPED")]
        return made.count("SUCCESS"), len(made)


@dataclass(frozen=True, slots=True)
class Lost:
    """A check that passes directly and not through the gateway."""

    check: Check
    status: str
    reason: str | None
    """Why it may, where it is on the list of those."""


def lost(direct: Run, through: Run, named: Mapping[Check, str]) -> list[Lost]:
    """Return what passes directly and does not pass through the gateway, in order."""
    return [
        Lost(check, through.results.get(check, "not made"), named.get(check))
        for check, status in direct.results.items()
        if status == "SUCCESS" and through.results.get(check) != "SUCCESS"
    ]


def as_json(runs: Sequence[Run], named: Mapping[str, Mapping[Check, str]]) -> dict[str, Any]:
    """Return everything as data."""
    return {
        "runs": [
            {
                "subject": run.subject,
                "revision": run.revision,
                "passed": run.counts()[0],
                "made": run.counts()[1],
                "checks": [
                    {**check._asdict(), "status": status} for check, status in run.results.items()
                ],
            }
            for run in runs
        ],
        "named": {
            subject: [{**check._asdict(), "why": why} for check, why in own.items()]
            for subject, own in named.items()
        },
    }


_PAGE = Path(__file__).with_name("page.md")

_TITLES = {
    "off": "Nothing folded: `enabled: off`",
    "auto": "As it comes: `enabled: auto`",
    "on": "Everything folded: `enabled: on`",
}


def as_markdown(runs: Sequence[Run], named: Mapping[str, Mapping[Check, str]]) -> str:
    """Return the tables as Markdown."""
    by_subject: dict[str, dict[str, Run]] = {}
    for run in runs:
        by_subject.setdefault(run.subject, {})[run.revision] = run
    direct = by_subject.get("direct", {})
    parts: list[str] = [_PAGE.read_text("utf-8").strip()]
    for subject, own in by_subject.items():
        if subject in _TITLES and direct:
            parts.append(_table(_TITLES[subject], direct, own))
            parts.append(_differences(direct, own, named.get(subject, {})))
    if "client" in by_subject:
        parts.append(_client_table(by_subject["client"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(title: str, direct: Mapping[str, Run], through: Mapping[str, Run]) -> str:
    revisions = list(through)
    head = "".join(f" {r}, directly | through the gateway |" for r in revisions)
    lines = [f"## {title}", "", f"| scenario |{head}", f"|---|{'--:|--:|' * len(revisions)}"]
    scenarios = dict.fromkeys(check.scenario for run in direct.values() for check in run.results)
    for scenario in scenarios:
        cells = "".join(
            f" {_cell(direct[r], scenario)} | {_cell(through[r], scenario)} |" for r in revisions
        )
        lines.append(f"| `{scenario}` |{cells}")
    total = "".join(f" **{_cell(direct[r])}** | **{_cell(through[r])}** |" for r in revisions)
    return "\n".join([*lines, f"| **all** |{total}"])


def _cell(run: Run, scenario: str | None = None) -> str:
    passed, made = run.counts(scenario)
    return f"{passed} of {made}" if made else "–"


def _differences(
    direct: Mapping[str, Run], through: Mapping[str, Run], named: Mapping[Check, str]
) -> str:
    lines: list[str] = []
    for revision, run in through.items():
        for item in lost(direct[revision], run, named):
            why = item.reason or "**not expected**"
            check = f"`{item.check.scenario}`: `{item.check.id}` ({item.check.name})"
            lines.append(f"- {revision}, {check}: {item.status.lower()}; {why}.")
    if not lines:
        return "What passes directly passes through the gateway."
    return "\n".join(["What passes directly and not here:", "", *lines])


def _client_table(own: Mapping[str, Run]) -> str:
    revisions = list(own)
    lines = [
        "## The gateway as a client",
        "",
        f"| scenario |{''.join(f' {r} |' for r in revisions)}",
    ]
    lines.append(f"|---|{'--:|' * len(revisions)}")
    for scenario in dict.fromkeys(check.scenario for run in own.values() for check in run.results):
        cells = "".join(f" {_cell(own[r], scenario)} |" for r in revisions)
        lines.append(f"| `{scenario}` |{cells}")
    total = "".join(f" **{_cell(own[r])}** |" for r in revisions)
    lines.append(f"| **all** |{total}")
    failed = [
        f"- {revision}, `{check.scenario}`: `{check.id}` ({check.name}): {status.lower()}."
        for revision, run in own.items()
        for check, status in run.results.items()
        if status in ("FAILURE", "WARNING")
    ]
    return "\n".join([*lines, "", "What does not pass:", "", *failed] if failed else lines)
