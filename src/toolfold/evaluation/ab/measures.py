"""What a run cost and how the model went about it; and the means over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from toolfold import prompts
from toolfold.catalog import Catalog
from toolfold.evaluation.ab.prices import Prices
from toolfold.evaluation.ab.run_record import Run
from toolfold.evaluation.ab.scenario import Scenario, Turn
from toolfold.evaluation.ab.success import problems
from toolfold.evaluation.ab.transcript_reading import Made, discovered, made, real_call
from toolfold.runtime.messages import Message
from toolfold.tool import Json

__all__ = ["Measures", "Row", "measured", "rows"]


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one run."""

    scenario: str
    arm: str
    repeat: int
    model: str

    success: bool
    problems: tuple[str, ...]
    """Why it is no success."""

    error: str | None
    """What ended it early: the model's error, or the time."""

    tools_run: tuple[str, ...]
    """The tools that really ran, in order."""

    invented: tuple[str, ...]
    """Names that the model called and that exist nowhere."""

    core_via_bridge: int
    """Calls that sent a listed tool through the bridge."""

    needless_searches: int
    """Searches for what was listed or known, or where nothing was needed."""

    searches: int
    describes: int
    round_trips: int
    prompt_tokens: int
    """Tokens read, those from the cache included."""

    cached_tokens: int
    uncached_tokens: int
    completion_tokens: int

    cost: float | None
    """In the price table's currency; None where the model is not in it."""

    first_action_seconds: float | None
    """Until the first real tool began, or the answer came where none is needed; over several
    turns, the mean. None where a needed tool never began."""

    seconds: float
    """Wall time."""

    asked_again: int = 0
    """Replies that were empty and asked for once more."""

    @property
    def label(self) -> str:
        """What names the run."""
        return f"{self.scenario}__{self.arm}__{self.repeat}"

    def as_json(self) -> dict[str, Json]:
        """Return the measures as a JSON object."""
        value = asdict(self)
        for key in ("seconds", "first_action_seconds", "cost"):
            value[key] = None if value[key] is None else round(value[key], 6)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def measured(scenario: Scenario, run: Run, catalog: Catalog, prices: Prices) -> Measures:
    """Return the measures of a run.

    Args:
        scenario: What was asked for.
        run: What came of it.
        catalog: Every tool that there was.
        prices: What tokens cost.
    """
    calls = [item for turn in run.turns for item in made(turn.messages)]
    wrong = problems(scenario, run)
    usage = [turn.usage for turn in run.turns]
    prompt, cached = sum(u.prompt for u in usage), sum(u.cached for u in usage)
    completion = sum(u.completion for u in usage)
    return Measures(
        scenario=run.scenario,
        arm=run.arm,
        repeat=run.repeat,
        model=run.model,
        success=not wrong,
        problems=wrong,
        error=run.error,
        tools_run=tuple(item.tool for turn in run.turns for item in turn.executed),
        invented=_invented(calls, run, catalog),
        core_via_bridge=sum(_misrouted(item, run, catalog) for item in calls),
        needless_searches=_needless(scenario, run, catalog),
        searches=sum(item.call.name == prompts.TOOL_SEARCH for item in calls),
        describes=sum(item.call.name == prompts.TOOL_DESCRIBE for item in calls),
        round_trips=sum(turn.round_trips for turn in run.turns),
        prompt_tokens=prompt,
        cached_tokens=cached,
        uncached_tokens=prompt - cached,
        completion_tokens=completion,
        cost=prices.cost(run.model, prompt, cached, completion),
        first_action_seconds=_first_action(scenario, run),
        seconds=sum(turn.seconds for turn in run.turns),
        asked_again=sum(turn.asked_again for turn in run.turns),
    )


def _invented(calls: Sequence[Made], run: Run, catalog: Catalog) -> tuple[str, ...]:
    """Return the names that were called and are no tool's."""
    names: list[str] = []
    for item in calls:
        name = item.call.name
        if name in run.bridge:
            real = real_call(item.call)
            name = real[0] if real is not None else ""
        if name.strip() and catalog.find(name) is None:
            names.append(name)
    return tuple(names)


def _misrouted(item: Made, run: Run, catalog: Catalog) -> bool:
    """Whether a call sent a listed tool through the bridge."""
    if item.call.name != prompts.TOOL_CALL:
        return False
    real = real_call(item.call)
    tool = catalog.find(real[0]) if real is not None else None
    return tool is not None and tool.name in run.listed


def _needless(scenario: Scenario, run: Run, catalog: Catalog) -> int:
    """Count the searches that had nothing to find."""
    count = 0
    before: list[Message] = []
    for turn, record in zip(scenario.turns, run.turns, strict=False):
        for place, message in enumerate(record.messages):
            searches = [
                call for call in getattr(message, "calls", ()) if call.name == prompts.TOOL_SEARCH
            ]
            if searches:
                read = [*before, *record.messages[:place]]
                known = {t.name for name in discovered(read) if (t := catalog.find(name))}
                needed = _sought(turn, known | set(run.listed))
                count += max(len(searches) - needed, 0)
        before.extend(record.messages)
    return count


def _sought(turn: Turn, known: set[str]) -> int:
    """Return for how many needs a search is right. What no tool serves must be searched for."""
    return sum(need.tool is None or need.tool not in known for need in turn.needs)


def _first_action(scenario: Scenario, run: Run) -> float | None:
    times: list[float] = []
    for turn, record in zip(scenario.turns, run.turns, strict=False):
        if turn.wanted and record.first_tool is None:
            return None
        first = record.first_tool if turn.wanted else record.seconds
        times.append(record.seconds if first is None else first)
    return fmean(times) if times else None


@dataclass(frozen=True, slots=True)
class Row:
    """The means of a scenario's runs in one arm."""

    scenario: str
    arm: str
    runs: int
    succeeded: int
    errors: int
    invented: float
    core_via_bridge: float
    needless_searches: float
    searches: float
    describes: float
    round_trips: float
    prompt_tokens: float
    cached_tokens: float
    uncached_tokens: float
    completion_tokens: float
    cost: float | None
    first_action_seconds: float | None
    seconds: float

    @property
    def success_rate(self) -> float:
        """The share of the runs that did what they should."""
        return self.succeeded / self.runs

    def as_json(self) -> dict[str, Json]:
        """Return the row as a JSON object."""
        value = asdict(self)
        return {k: round(v, 6) if isinstance(v, float) else v for k, v in value.items()}


ALL = "all"
"""The scenario of a row that holds the runs of all."""


def rows(runs: Sequence[Measures]) -> list[Row]:
    """Return the means, a row a scenario and arm, and last a row an arm over all scenarios."""
    made_rows: list[Row] = []
    groups = dict.fromkeys((run.scenario, run.arm) for run in runs)
    for scenario, arm in groups:
        own = [run for run in runs if (run.scenario, run.arm) == (scenario, arm)]
        made_rows.append(_row(scenario, arm, own))
    if len({scenario for scenario, _ in groups}) > 1:
        arms = dict.fromkeys(arm for _, arm in groups)
        made_rows += [_row(ALL, arm, [run for run in runs if run.arm == arm]) for arm in arms]
    return made_rows


def _row(scenario: str, arm: str, runs: Sequence[Measures]) -> Row:
    # A run that broke off has spent less than its share: its numbers would flatter the arm.
    whole = [run for run in runs if run.error is None] or list(runs)
    costs = [run.cost for run in whole if run.cost is not None]
    firsts = [r.first_action_seconds for r in whole if r.first_action_seconds is not None]
    return Row(
        scenario=scenario,
        arm=arm,
        runs=len(runs),
        succeeded=sum(run.success for run in runs),
        errors=sum(run.error is not None for run in runs),
        invented=fmean(len(run.invented) for run in whole),
        core_via_bridge=fmean(run.core_via_bridge for run in whole),
        needless_searches=fmean(run.needless_searches for run in whole),
        searches=fmean(run.searches for run in whole),
        describes=fmean(run.describes for run in whole),
        round_trips=fmean(run.round_trips for run in whole),
        prompt_tokens=fmean(run.prompt_tokens for run in whole),
        cached_tokens=fmean(run.cached_tokens for run in whole),
        uncached_tokens=fmean(run.uncached_tokens for run in whole),
        completion_tokens=fmean(run.completion_tokens for run in whole),
        cost=fmean(costs) if costs else None,
        first_action_seconds=fmean(firsts) if firsts else None,
        seconds=fmean(run.seconds for run in whole),
    )
