"""Whether a run did what its scenario asks: judged by what really ran, not by what was said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from toolfold._json_values import compact
from toolfold.evaluation.ab.run_record import Run, TurnRecord
from toolfold.evaluation.ab.scenario import Scenario, Turn
from toolfold.evaluation.ab.stage import Executed
from toolfold.tool import Json

__all__ = ["problems"]


def problems(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """Return what is wrong with a run, as clauses; nothing where it did what it should."""
    found: list[str] = []
    if run.error:
        found.append(run.error)
    elif len(run.turns) < len(scenario.turns):
        found.append(f"{len(run.turns)} of {len(scenario.turns)} turns were held")
    several = len(scenario.turns) > 1
    for place, (turn, record) in enumerate(zip(scenario.turns, run.turns, strict=False), 1):
        ran = {item.tool for past in run.turns[:place] for item in past.executed if _worked(item)}
        lead = f"turn {place}: " if several else ""
        found += [f"{lead}{problem}" for problem in _of_turn(turn, record, ran)]
    return tuple(found)


def _of_turn(turn: Turn, record: TurnRecord, ran: set[str]) -> Iterator[str]:
    if record.stop not in ("end", "error"):
        yield f"the turn was ended: {record.stop}"
    yield from _not_run(turn, record.executed)
    yield from _wrongly_run(turn, record.executed)
    for pattern in turn.says:
        if not _matches(pattern, record.text):
            yield f"the answer does not say /{_short(pattern)}/"
    for pattern in turn.never_says:
        if found := _matches(pattern, record.text):
            yield f"the answer says {found[0]!r}"
    for pattern, tool in turn.claims.items():
        if tool not in ran and _matches(pattern, record.text):
            yield f"the answer claims what {tool} never did"


def _not_run(turn: Turn, executed: Sequence[Executed]) -> Iterator[str]:
    """Yield the needs that were not met: not run, run with wrong arguments, or run too early."""
    used: set[int] = set()
    last = -1
    for need in turn.needs:
        if need.tool is None:
            continue
        checks = turn.checks.get(need.tool, {})
        own = [i for i, item in enumerate(executed) if item.tool == need.tool and i not in used]
        right = [i for i in own if _worked(executed[i]) and _fits(checks, executed[i].arguments)]
        if not own:
            yield f"{need.tool} did not run"
        elif not right:
            yield f"{need.tool} ran, but not as it should"
        else:
            late = next((i for i in right if i > last), None)
            if need.waits and late is None:
                yield f"{need.tool} ran too early"
            place = right[0] if late is None else late
            used.add(place)
            last = max(last, place)


def _wrongly_run(turn: Turn, executed: Sequence[Executed]) -> Iterator[str]:
    """Yield what ran and must not have, or ran more often than it should."""
    wanted = list(turn.wanted)
    for item in executed:
        if item.tool in wanted and _worked(item):
            wanted.remove(item.tool)
        elif any(fnmatchcase(item.tool, pattern) for pattern in turn.never_runs):
            yield f"{item.tool} ran"
        elif item.changes and _worked(item):
            if item.tool in turn.wanted:
                yield f"{item.tool} ran once too often"
            elif not any(fnmatchcase(item.tool, pattern) for pattern in turn.may_run):
                yield f"{item.tool} ran, and nobody asked for it"


def _worked(item: Executed) -> bool:
    return not item.is_error


def _fits(checks: Mapping[str, str], arguments: Mapping[str, Json]) -> bool:
    return all(
        name in arguments and _matches(pattern, _text(arguments[name]))
        for name, pattern in checks.items()
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _matches(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE)


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 60 else f"{pattern[:59]}…"
