"""The A/B as a page: what each arm saved and cost, how sure that is, and every run to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from toolfold.evaluation.ab.measures import ALL, Measures, Row, rows
from toolfold.evaluation.ab.run_record import Run, TurnRecord
from toolfold.evaluation.measure import Interval
from toolfold.evaluation.report.charts import ChartBar, bar_chart
from toolfold.evaluation.report.conversation import (
    ShownConversation,
    ShownConversations,
    ShownTurn,
    conversations_html,
)
from toolfold.evaluation.report.figures_in_words import between, per_cent
from toolfold.evaluation.report.intervals import resampled, share_interval
from toolfold.evaluation.report.markup import Markup, bounded, element, joined
from toolfold.evaluation.report.page import ReportPage, ReportSection, page_html
from toolfold.evaluation.report.tables import TableColumn, table
from toolfold.prompts import plural

__all__ = ["COLUMNS", "ArmSaving", "report_html", "saving"]


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _cost(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


COLUMNS: Sequence[tuple[str, str, Callable[[Row], str]]] = (
    ("ok", "Runs that did what they should, of all", lambda r: f"{r.succeeded}/{r.runs}"),
    ("trips", "Times the model was asked", lambda r: _count(r.round_trips)),
    ("search", "Searches", lambda r: _count(r.searches)),
    ("needless", "Searches with nothing to find", lambda r: _count(r.needless_searches)),
    ("describe", "Schemas asked for", lambda r: _count(r.describes)),
    ("invented", "Calls of names that exist nowhere", lambda r: _count(r.invented)),
    ("misrouted", "Listed tools sent through the bridge", lambda r: _count(r.core_via_bridge)),
    ("read", "Tokens read, the cached ones included", lambda r: _count(round(r.prompt_tokens))),
    ("cached", "Of these, from the provider's cache", lambda r: _count(round(r.cached_tokens))),
    ("written", "Tokens written", lambda r: _count(round(r.completion_tokens))),
    ("cost", "By the price table", lambda r: _cost(r.cost)),
    ("first s", "Seconds to the first useful action", lambda r: _seconds(r.first_action_seconds)),
    ("all s", "Seconds in all", lambda r: _seconds(r.seconds)),
)
"""The columns of the table: head, meaning, cell. Numbers are means over the runs."""

_CHARTS: Sequence[tuple[str, Callable[[Row], float | None], Callable[[float], str]]] = (
    ("Tokens read", lambda r: r.prompt_tokens, lambda v: f"{v:,.0f}"),
    ("Round trips", lambda r: r.round_trips, lambda v: f"{v:.1f}"),
    ("Seconds in all", lambda r: r.seconds, lambda v: f"{v:.2f}"),
    ("Cost", lambda r: r.cost, _cost),
)
_UNFOLDED = "unfolded"


@dataclass(frozen=True, slots=True)
class ArmSaving:
    """What one arm spares beside another, over the scenarios that both brought to an end."""

    arm: str
    base: str
    scenarios: int
    runs: int
    """Of the two arms together."""

    read: tuple[float, float]
    """Tokens read a run: the other arm's, and this one's."""

    trips: tuple[float, float]
    """Round trips a run, likewise."""

    saved: float
    """The share of the other arm's tokens that this one does not read."""

    interval: Interval | None
    """The 95 % interval of `saved`, by drawing scenarios anew, or the runs of the only one."""


def saving(measures: Sequence[Measures], base: str, arm: str) -> ArmSaving | None:
    """Return what an arm saves beside another; None where no scenario was ended in both."""
    own = [run for run in measures if run.arm in (base, arm) and run.error is None]
    by_scenario: dict[str, dict[str, list[Measures]]] = {}
    for run in own:
        by_scenario.setdefault(run.scenario, {}).setdefault(run.arm, []).append(run)
    both = [arms for arms in by_scenario.values() if len(arms) == len({base, arm})]
    pairs = [(_read(arms[base]), _read(arms[arm])) for arms in both]
    before = sum(one for one, _ in pairs)
    if not before:
        return None
    if len(both) == 1:
        runs = zip(both[0][base], both[0][arm], strict=False)
        drawn = [(float(one.prompt_tokens), float(other.prompt_tokens)) for one, other in runs]
    else:
        drawn = pairs
    trips = [
        tuple(fmean(r.round_trips for r in arms[name]) for name in (base, arm)) for arms in both
    ]
    return ArmSaving(
        arm=arm,
        base=base,
        scenarios=len(both),
        runs=sum(len(runs) for arms in both for runs in arms.values()),
        read=(before / len(both), sum(other for _, other in pairs) / len(both)),
        trips=(fmean(one for one, _ in trips), fmean(other for _, other in trips)),
        saved=_saved(before, sum(other for _, other in pairs)),
        interval=resampled(drawn, _saved),
    )


def _read(runs: Sequence[Measures]) -> float:
    return fmean(run.prompt_tokens for run in runs)


def _saved(before: float, after: float) -> float:
    return 1 - after / before


def report_html(
    measures: Sequence[Measures],
    *,
    title: str,
    notes: Sequence[str] = (),
    command: str = "",
    made: str = "",
    transcript: Callable[[Measures], Run | None] = lambda _: None,
) -> str:
    """Return the page.

    Args:
        measures: The runs.
        title: Its heading.
        notes: What else to say, a paragraph each.
        command: What made it.
        made: When and with what.
        transcript: Gives what was said in a run, secrets taken out; None where it is not there.
    """
    headline, sure = _headline(measures)
    return page_html(
        ReportPage(
            title=title,
            headline=headline,
            sure=sure,
            notes=tuple(notes),
            command=command,
            made=made,
            sections=tuple(_sections(measures, transcript)) if measures else (),
        )
    )


def _headline(measures: Sequence[Measures]) -> tuple[str, tuple[str, ...]]:
    """Return what was found in a sentence, and how sure it is."""
    if not measures:
        return "No run was made.", ()
    arms = list(dict.fromkeys(run.arm for run in measures))
    ended = [run for run in measures if run.error is None]
    if not ended:
        return f"None of {plural(len(measures), 'run')} came to its end.", (str(measures[0].error),)
    base = _UNFOLDED if _UNFOLDED in arms else arms[0]
    others = [arm for arm in arms if arm != base]
    made = [found for arm in others if (found := saving(measures, base, arm))]
    done = _succeeded(measures, arms)
    if not made:
        return f"{done[:1].upper()}{done[1:]}.", (_how_many(measures, arms),)
    best, *rest = made
    told = (f"{_said(other)}." for other in rest)
    return f"{_said(best)}; {done}.", (_how_sure(best), *told, _how_many(measures, arms))


def _said(found: ArmSaving) -> str:
    fewer = "fewer" if found.saved >= 0 else "more"
    trips = found.trips[1] - found.trips[0]
    cost = (
        "for as many round trips"
        if abs(trips) < 0.05
        else f"for {abs(trips):.1f} round trips {'more' if trips > 0 else 'fewer'} a run"
    )
    before, after = found.read
    name = found.arm[:1].upper() + found.arm[1:]
    return (
        f"{name}, the model read {per_cent(abs(found.saved))} {fewer} tokens than {found.base} "
        f"({after:,.0f} a run instead of {before:,.0f}), {cost}"
    )


def _succeeded(measures: Sequence[Measures], arms: Sequence[str]) -> str:
    if all(run.success for run in measures):
        return f"{_all_of(len(measures))} did what it should"
    told: list[str] = []
    for arm in arms:
        own = [run for run in measures if run.arm == arm]
        told.append(f"{sum(run.success for run in own)} of {plural(len(own), 'run')} {arm}")
    return f"{', '.join(told)} did what they should"


def _all_of(count: int) -> str:
    return "the one run" if count == 1 else f"each of the {count:,} runs"


def _how_sure(found: ArmSaving) -> str:
    of = plural(found.scenarios, "scenario")
    if found.interval is None:
        return f"One scenario, one run an arm: there is no interval ({plural(found.runs, 'run')})."
    drawn = of if found.scenarios > 1 else f"the runs of {of}"
    return (
        f"The share of tokens saved: {between(found.interval)} (95 % interval, by drawing "
        f"{drawn} anew; {plural(found.runs, 'run')})."
    )


def _how_many(measures: Sequence[Measures], arms: Sequence[str]) -> str:
    told: list[str] = []
    for arm in arms:
        own = [run for run in measures if run.arm == arm]
        interval = share_interval(sum(run.success for run in own), len(own))
        told.append(f"{arm} {between(interval)}")
    early = sum(run.error is not None for run in measures)
    ended = f" {plural(early, 'run')} ended early." if early else ""
    return f"Rates of success (95 % intervals): {', '.join(told)}.{ended}"


def _sections(
    measures: Sequence[Measures], transcript: Callable[[Measures], Run | None]
) -> list[ReportSection]:
    made = rows(measures)
    whole = [row for row in made if row.scenario == ALL] or list(made)
    single = [row for row in made if row.scenario != ALL]
    sections = [
        ReportSection("The arms side by side", (_panels(whole),)),
        ReportSection("By scenario and arm", (_table(made),)),
    ]
    if len({row.scenario for row in single}) > 1:
        charts = element("div", [_chart(*chart, single) for chart in _CHARTS], class_="panels")
        sections.append(ReportSection("The scenarios side by side", (charts,)))
    said = _said_and_done(measures, transcript)
    sections.append(ReportSection("Runs", (_runs(measures, said.anchors),)))
    sections.append(ReportSection("What was said and done", (said.html,)))
    return sections


def _panels(whole: Sequence[Row]) -> Markup:
    bars = [
        ChartBar(
            row.arm,
            row.success_rate,
            f"{row.succeeded} of {row.runs}",
            share_interval(row.succeeded, row.runs),
            "" if row.scenario == ALL else row.scenario,
        )
        for row in whole
    ]
    success = bar_chart("Runs that did what they should, with 95 % intervals", bars, most=1.0)
    charts = [_chart(*chart, whole) for chart in _CHARTS]
    return element("div", charts, success, class_="panels")


def _chart(
    heading: str,
    value: Callable[[Row], float | None],
    written: Callable[[float], str],
    table_rows: Sequence[Row],
) -> Markup | None:
    values = [(row, value(row)) for row in table_rows]
    if all(found is None for _, found in values):
        return None
    bars = [
        ChartBar(
            row.arm,
            found,
            "–" if found is None else written(found),
            group="" if row.scenario == ALL else row.scenario,
        )
        for row, found in values
    ]
    return bar_chart(f"{heading}, a run", bars)


def _table(made: Sequence[Row]) -> Markup:
    columns = [
        TableColumn("scenario", is_number=False),
        TableColumn("arm", is_number=False),
        *(TableColumn(head, about) for head, about, _ in COLUMNS),
    ]
    cells = [[row.scenario, row.arm, *(cell(row) for _, _, cell in COLUMNS)] for row in made]
    return table("Means over the runs of a scenario in an arm", columns, cells, heads=2)


def _runs(measures: Sequence[Measures], anchors: Sequence[str | None]) -> Markup:
    heads = ("run", "result", "tools run", "invented", "what is wrong")
    columns = [TableColumn(head, is_number=False) for head in heads]
    cells = [_run(run, anchor) for run, anchor in zip(measures, anchors, strict=True)]
    return table("Every run, and what is wrong with it", columns, cells)


def _run(run: Measures, anchor: str | None) -> list[str]:
    return [
        run.label if anchor is None else element("a", bounded(run.label), href=f"#{anchor}"),
        _result(run),
        ", ".join(run.tools_run) or "none",
        ", ".join(run.invented) or "none",
        "; ".join(run.problems),
    ]


def _result(run: Measures) -> Markup:
    if run.success:
        return element("span", "success", class_="good")
    return element("strong", "error" if run.error else "failure", class_="bad")


def _said_and_done(
    measures: Sequence[Measures], transcript: Callable[[Measures], Run | None]
) -> ShownConversations:
    conversations = [
        ShownConversation(
            run.label,
            joined(_result(run), f", {run.prompt_tokens:,} tokens read, {run.seconds:.2f} s"),
            lambda run=run: _turns(transcript(run)),
            is_first=not run.success,
        )
        for run in measures
    ]
    return conversations_html(conversations, elsewhere="see the files under transcripts/")


def _turns(run: Run | None) -> list[ShownTurn]:
    if run is None:
        return []
    turns = [ShownTurn(turn.messages, _sums(turn)) for turn in run.turns]
    if run.error and turns:
        turns[-1] = ShownTurn(turns[-1].messages, turns[-1].sums, f"It ended early: {run.error}")
    return turns


def _sums(turn: TurnRecord) -> tuple[str, ...]:
    usage = turn.usage
    cached = f" ({usage.cached:,} from the cache)" if usage.cached else ""
    return (
        f"{turn.seconds:.2f} s",
        plural(turn.round_trips, "round trip"),
        f"{usage.prompt:,} tokens read{cached}, {usage.completion:,} written",
    )
