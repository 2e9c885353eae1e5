"""A replay as a page: what each strategy would have cost, and how it went about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from toolfold.evaluation.ab.transcript_reading import turns_of
from toolfold.evaluation.growth import Growth
from toolfold.evaluation.measure import Interval
from toolfold.evaluation.replay import Replayed, totals
from toolfold.evaluation.report.charts import ChartAxis, ChartBar, bar_chart, line_chart
from toolfold.evaluation.report.conversation import (
    ShownConversation,
    ShownTurn,
    conversations_html,
)
from toolfold.evaluation.report.figures_in_words import between, per_cent
from toolfold.evaluation.report.intervals import resampled
from toolfold.evaluation.report.markup import Markup, element, text
from toolfold.evaluation.report.page import ReportPage, ReportSection, page_html
from toolfold.evaluation.report.tables import TableColumn, table
from toolfold.prompts import plural

__all__ = ["replay_html"]

_UNFOLDED = "unfolded"
_NOTES = (
    "No model was asked: one that follows the record found its way through the tools that it saw, "
    "so these figures are what a competent model would pay, the same every time.",
    "Tokens are characters over four; `new` are those that the request before did not have in "
    "common.",
)
_COLUMNS = (
    TableColumn("conversation", is_number=False),
    TableColumn("strategy", is_number=False),
    TableColumn("met", "Needs that the right tool served, of all"),
    TableColumn("trips", "Times the model was asked"),
    TableColumn("read", "Tokens read, all requests together"),
    TableColumn("new", "Of these, tokens that the request before did not have in common"),
    TableColumn("written", "Tokens written"),
    TableColumn("largest", "Tokens of the largest prompt"),
)
_CHARTS: tuple[tuple[str, Callable[[Replayed], int]], ...] = (
    ("Tokens read", lambda r: r.usage.prompt),
    ("New tokens", lambda r: r.usage.prompt - r.usage.cached),
    ("Round trips", lambda r: r.round_trips),
    ("Largest prompt, tokens", lambda r: max(r.prompts, default=0)),
)


def replay_html(
    results: Sequence[Replayed],
    *,
    growth: Growth | None = None,
    command: str = "",
    made: str = "",
) -> str:
    """Return the page.

    Args:
        results: What was replayed.
        growth: How a long conversation's prompt grows, where that was asked for.
        command: What made it.
        made: When and with what.
    """
    headline, sure = _headline(results, growth)
    return page_html(
        ReportPage(
            title="toolfold replay: recorded conversations under other strategies",
            headline=headline,
            sure=sure,
            notes=_NOTES,
            command=command,
            made=made,
            sections=tuple(_sections(results, growth)),
        )
    )


class _Saved(NamedTuple):
    strategy: str
    share: float
    read: tuple[int, int]
    trips: int
    interval: Interval | None


def _headline(results: Sequence[Replayed], growth: Growth | None) -> tuple[str, tuple[str, ...]]:
    if not results:
        return (_grown(growth) if growth else "Nothing was replayed."), ()
    names = list(dict.fromkeys(result.strategy for result in results))
    base = _UNFOLDED if _UNFOLDED in names else names[0]
    traces = len({result.trace for result in results})
    turns = sum(result.turns for result in results if result.strategy == base)
    over = f"{plural(traces, 'conversation')} of {plural(turns, 'turn')}"
    saved = [_saved(results, base, name) for name in names if name != base]
    needs = _needs(results, names)
    if not saved:
        whole = totals(results)[0]
        trips = plural(whole.round_trips, "round trip")
        said = f"{over} read {whole.usage.prompt:,} tokens in {trips} under {base}"
        return f"{said}; {needs}.", ()
    first, *others = saved
    told = (f"{_said(other, base)}." for other in others)
    return f"Over {over}: {_said(first, base)}; {needs}.", (_how_sure(first, traces), *told)


def _saved(results: Sequence[Replayed], base: str, name: str) -> _Saved:
    before = {r.trace: r for r in results if r.strategy == base}
    after = {r.trace: r for r in results if r.strategy == name}
    pairs = [(before[trace].usage.prompt, after[trace].usage.prompt) for trace in before]
    read = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    trips = sum(after[trace].round_trips - before[trace].round_trips for trace in before)
    share = 1 - read[1] / read[0] if read[0] else 0.0
    return _Saved(name, share, read, trips, resampled(pairs, lambda one, other: 1 - other / one))


def _said(saved: _Saved, base: str) -> str:
    fewer = "fewer" if saved.share >= 0 else "more"
    if not saved.trips:
        cost = "for as many round trips"
    else:
        more = "more" if saved.trips > 0 else "fewer"
        cost = f"for {plural(abs(saved.trips), 'round trip')} {more}"
    before, after = saved.read
    return (
        f"{saved.strategy} reads {per_cent(abs(saved.share))} {fewer} tokens than {base} "
        f"({after:,} instead of {before:,}), {cost}"
    )


def _needs(results: Sequence[Replayed], names: Sequence[str]) -> str:
    own = {n: [r for r in results if r.strategy == n] for n in names}
    counts = {n: (sum(r.met for r in rs), sum(r.needs for r in rs)) for n, rs in own.items()}
    if all(met == needs for met, needs in counts.values()):
        return "every need was met under each of them" if len(names) > 1 else "every need was met"
    told = ", ".join(f"{met} of {needs} under {name}" for name, (met, needs) in counts.items())
    return f"needs were met: {told}"


def _how_sure(saved: _Saved, traces: int) -> str:
    if saved.interval is None:
        return "One conversation: what others would save cannot be told from it."
    return (
        f"The saving over conversations like these: {between(saved.interval)} (95 % interval, "
        f"by drawing {traces} conversations anew)."
    )


def _grown(growth: Growth) -> str:
    last = growth.folded.turns
    before, after = growth.unfolded.prompts[-1], growth.folded.prompts[-1]
    return (
        f"After {plural(last, 'turn')} over {plural(growth.tools, 'tool')} a prompt holds "
        f"{after:,} tokens folded and {before:,} unfolded."
    )


def _sections(results: Sequence[Replayed], growth: Growth | None) -> list[ReportSection]:
    sections: list[ReportSection] = []
    if results:
        whole = totals(results)
        several = len({result.trace for result in results}) > 1
        panels = element("div", [_chart(*chart, whole) for chart in _CHARTS], class_="panels")
        rows = [_row(result) for result in (*results, *(whole if several else ()))]
        caption = "What each conversation takes under each strategy"
        sections += [
            ReportSection("The strategies side by side", (panels,)),
            ReportSection(
                "By conversation and strategy", (table(caption, _COLUMNS, rows, heads=2),)
            ),
        ]
    if growth is not None:
        sections.append(ReportSection("How a prompt grows", (_growth(growth),)))
    if results:
        said = conversations_html(
            [_conversation(result) for result in results],
            elsewhere="replay fewer files, or one strategy, to read them",
        )
        sections.append(ReportSection("What was said and done", (said.html,)))
    return sections


def _chart(heading: str, value: Callable[[Replayed], int], whole: Sequence[Replayed]) -> Markup:
    bars = [ChartBar(one.strategy, value(one), f"{value(one):,}") for one in whole]
    return bar_chart(heading, bars)


def _row(result: Replayed) -> list[str]:
    return [
        result.trace,
        result.strategy,
        f"{result.met}/{result.needs}",
        f"{result.round_trips:,}",
        f"{result.usage.prompt:,}",
        f"{result.usage.prompt - result.usage.cached:,}",
        f"{result.usage.completion:,}",
        f"{max(result.prompts, default=0):,}",
    ]


def _growth(growth: Growth) -> Markup:
    series = {
        name: [(float(turn), float(size)) for turn, size in enumerate(sizes, 1)]
        for name, sizes in growth.lines.items()
    }
    title = f"Tokens of the largest prompt of each turn, {plural(growth.tools, 'tool')}"
    up = ChartAxis("tokens", is_logarithmic=True)
    return line_chart(title, series, across=ChartAxis("turn"), up=up)


def _conversation(result: Replayed) -> ShownConversation:
    about = f"{result.met} of {result.needs} needs met, {result.usage.prompt:,} tokens read"
    return ShownConversation(
        f"{result.trace}, {result.strategy}:",
        text(about),
        lambda: _turns(result),
        is_first=result.met < result.needs,
    )


def _turns(result: Replayed) -> list[ShownTurn]:
    turns = turns_of(result.messages)
    return [
        ShownTurn(messages, (f"{size:,} tokens in its largest prompt, {found:,} of them found",))
        for messages, size, found in zip(turns, result.prompts, result.discoveries, strict=False)
    ]
