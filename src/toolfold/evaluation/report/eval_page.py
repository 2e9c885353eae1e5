"""Runs of `toolfold eval` side by side, as a page: recall, false hits, answers, the floor's curve.

A run is what `toolfold eval --json` prints, so that one of last month can stand beside today's;
a file that holds something else shows as a row of dashes, and never ends the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from toolfold.evaluation.measure import Interval
from toolfold.evaluation.report.charts import ChartAxis, ChartBar, bar_chart, line_chart
from toolfold.evaluation.report.figures_in_words import between, per_cent
from toolfold.evaluation.report.markup import Markup, element
from toolfold.evaluation.report.page import ReportPage, ReportSection, page_html
from toolfold.evaluation.report.tables import TableColumn, table
from toolfold.prompts import plural
from toolfold.tool import Json, is_array, is_object

__all__ = ["eval_html"]

EvalRun = Sequence[Mapping[str, Json]]

_INTERVAL = "recall@5_interval"
_METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "false_hit_rate", "ms_p50")
_OF_ANSWERS = ("answer_recall", "first_hit", "answer_tokens")
"""What is shown of the answers, where a run measured them."""
_CHARTS = {
    "recall@5": "Recall@5: right tools among the first five hits, with 95 % intervals",
    "recall@1": "Recall@1: right tools that come first",
    "answer_recall": "Right tools that the whole answer names",
    "false_hit_rate": "Requests that no tool serves and that get a hit",
}
_HEADS = {
    "false_hit_rate": "false hits",
    "ms_p50": "p50 ms",
    "answer_recall": "in the answer",
    "first_hit": "first hit",
    "answer_tokens": "tokens",
}
_MEANINGS = {
    "recall@1": "The share of the right tools that comes first",
    "recall@5": "The share of the right tools among the first five hits",
    "recall@10": "The same among the first ten",
    "recall@20": "The same among the first twenty",
    "false_hit_rate": "The share of requests that no tool serves and that get a hit",
    "ms_p50": "Milliseconds of one search, at the median",
    "answer_recall": "The share of the right tools that the answer names",
    "first_hit": "How often the first hit of a need is right",
    "answer_tokens": "Tokens of an answer, on average",
}


def eval_html(runs: Mapping[str, EvalRun], *, command: str = "", made: str = "") -> str:
    """Return the page.

    Args:
        runs: The results of each run, as `toolfold eval --json` prints them, by its name; the
            last one is what the page is about.
        command: What made it.
        made: When and with what.
    """
    runs = {name: [_flat(row) for row in run] for name, run in runs.items()}
    headline, sure = _headline(runs)
    return page_html(
        ReportPage(
            title="toolfold eval: does search find the right tools?",
            headline=headline,
            sure=sure,
            command=command,
            made=made,
            sections=tuple(_sections(runs)),
        )
    )


def _headline(runs: Mapping[str, EvalRun]) -> tuple[str, tuple[str, ...]]:
    if not runs:
        return "Nothing was measured.", ()
    name, run = list(runs.items())[-1]
    best = _best_ranker(run)
    own = [row for row in run if row.get("ranker") == best]
    recall = _mean(own, "recall@5")
    if recall is None:
        false = _mean(own, "false_hit_rate")
        if false is None:
            return "Nothing was measured.", ()
        told = f"{per_cent(false)} of the requests that no tool serves get a hit"
        return f"{told}.", (_how_sure(own),)
    corpora = [row for row in own if _number(row.get("recall@5")) is not None]
    over = _where(corpora)
    parts = [f"Search ({best}) finds {per_cent(recall)} of the right tools in five hits, {over}"]
    if (false := _mean(own, "false_hit_rate")) is not None:
        parts.append(f"{per_cent(false)} of the requests that no tool serves get a hit")
    if (ms := _mean(own, "ms_p50")) is not None:
        parts.append(f"a search takes {ms:.2f} ms")
    return f"{'; '.join(parts)}.", (_how_sure(own), *_compared(runs, name, best))


def _best_ranker(run: EvalRun) -> str:
    """Return the ranker of the highest mean recall; the first where none has one."""
    rankers = list(dict.fromkeys(str(row.get("ranker")) for row in run))
    means = {r: _mean([row for row in run if row.get("ranker") == r], "recall@5") for r in rankers}
    return max(rankers, key=lambda ranker: means[ranker] or 0.0, default="")


def _where(rows: EvalRun) -> str:
    if len(rows) == 1:
        tools = _number(rows[0].get("tools")) or 0
        return f"among {plural(int(tools), 'tool')} of {rows[0].get('corpus')}"
    return f"in the mean over {len(rows)} corpora"


def _how_sure(rows: EvalRun) -> str:
    count = int(sum(_numbers(row.get("queries") for row in rows)))
    asked = plural(count, "request")
    intervals = [found for row in rows if (found := _interval(row))]
    if len(rows) == 1 and intervals:
        return f"Recall@5: {between(intervals[0])} (95 % interval, by drawing {asked} anew)."
    if intervals:
        widest = max(high - low for low, high in intervals) / 2
        return f"{asked}; no corpus's interval is wider than ± {100 * widest:.1f} points (95 %)."
    return f"{asked}."


def _compared(runs: Mapping[str, EvalRun], name: str, ranker: str) -> list[str]:
    """Return how the last run stands to each of the others, on what both measured."""
    told: list[str] = []
    now = {_key(row): row for row in runs[name] if row.get("ranker") == ranker}
    for other, run in runs.items():
        before = {_key(row): row for row in run}
        shared = [
            (one, two)
            for key in now
            if key in before
            and (one := _number(before[key].get("recall@5"))) is not None
            and (two := _number(now[key].get("recall@5"))) is not None
        ]
        if other == name or not shared:
            continue
        points = 100 * fmean(two - one for one, two in shared)
        more = f"{abs(points):.1f} points {'more' if points > 0 else 'less'} than"
        how = "as much as" if abs(points) < 0.05 else more
        apart = sum(_are_apart(before[key], now[key]) for key in now if key in before)
        of = "1 corpus" if len(shared) == 1 else f"{len(shared)} corpora"
        told.append(f"That is {how} {other}; the intervals lie apart on {apart} of {of}.")
    return told


def _are_apart(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    first, second = _interval(one), _interval(other)
    return bool(first and second and (first[1] < second[0] or second[1] < first[0]))


def _sections(runs: Mapping[str, EvalRun]) -> list[ReportSection]:
    if not any(runs.values()):
        return []
    charts = [
        _bars(metric, title, runs) for metric, title in _CHARTS.items() if _told(runs, metric)
    ]
    sections = [
        ReportSection("Side by side", (element("div", charts, class_="panels"),)),
        ReportSection("Every corpus", (_table(runs),)),
    ]
    curves = {name: points for name, run in runs.items() if (points := _curve(run))}
    if curves:
        drawn = line_chart(
            "Recall against false hits, floor by floor, in the mean over the corpora",
            curves,
            across=ChartAxis("false hits", written="{:.2f}".format),
            up=ChartAxis("recall@5", most=1.0, written="{:.1f}".format),
        )
        sections.append(ReportSection("Where the floor could stand", (drawn,)))
    if ahead := _prefetch(runs):
        sections.append(ReportSection("Tools named before the model asks", (ahead,)))
    if categories := _categories(runs):
        sections.append(ReportSection("By category", (categories,)))
    return sections


def _table(runs: Mapping[str, EvalRun]) -> Markup:
    metrics = (*_METRICS, *(metric for metric in _OF_ANSWERS if _told(runs, metric)))
    rows: list[list[str]] = []
    for key in _keys(runs):
        for name, run in runs.items():
            rows += [
                [key, name, *_sizes(row), *(_cell(row, m) for m in metrics), _between(row)]
                for row in run
                if _key(row) == key
            ]
    for name, run in runs.items():
        for ranker in dict.fromkeys(str(row.get("ranker")) for row in run):
            own = [row for row in run if str(row.get("ranker")) == ranker]
            if len(own) < 2:
                continue  # the mean of one says it twice
            means = {metric: _mean(own, metric) for metric in metrics}
            cells = [_cell(means, metric) for metric in metrics]
            rows.append([f"mean {ranker}", name, "", "", *cells, ""])
    columns = [
        TableColumn("corpus", is_number=False),
        TableColumn("run", is_number=False),
        TableColumn("tools"),
        TableColumn("requests"),
        *(TableColumn(_HEADS.get(metric, metric), _MEANINGS[metric]) for metric in metrics),
        TableColumn("recall@5 between", "Its 95 % interval, by drawing requests anew"),
    ]
    return table("Each corpus and ranker, and the means of several", columns, rows, heads=2)


def _between(row: Mapping[str, Json]) -> str:
    return between(_interval(row), is_share=False)


def _sizes(row: Mapping[str, Json]) -> list[str]:
    sizes = (_number(row.get(key)) for key in ("tools", "queries"))
    return ["–" if size is None else f"{size:,.0f}" for size in sizes]


def _bars(metric: str, title: str, runs: Mapping[str, EvalRun]) -> Markup:
    bars = [
        ChartBar(
            name,
            value,
            f"{value:.3f}",
            _interval(row) if metric == "recall@5" else None,
            _key(row),
        )
        for key in _keys(runs)
        for name, run in runs.items()
        for row in run
        if _key(row) == key and (value := _number(row.get(metric))) is not None
    ]
    return bar_chart(title, bars, most=1.0)


def _curve(run: EvalRun) -> list[tuple[float, float]]:
    """Return false hits and recall at each floor, each the mean of the corpora that have it."""
    by_floor: dict[float, tuple[list[float], list[float]]] = {}
    for row in run:
        curve = row.get("curve")
        for point in curve if is_array(curve) else ():
            if is_array(point) and len(point) == 3 and (floor := _number(point[0])) is not None:
                recall, false = by_floor.setdefault(floor, ([], []))
                recall.extend(_numbers([point[1]]))
                false.extend(_numbers([point[2]]))
    pairs = [by_floor[floor] for floor in sorted(by_floor)]
    return [(fmean(false), fmean(recall)) for recall, false in pairs if recall and false]


def _prefetch(runs: Mapping[str, EvalRun]) -> Markup | None:
    measured: list[tuple[str, str, str, Mapping[str, Json]]] = []
    for name, run in runs.items():
        for row in run:
            modes = row.get("prefetch")
            for mode, metrics in modes.items() if is_object(modes) else ():
                if is_object(metrics):
                    measured.append((_key(row), name, mode, metrics))
    if not measured:
        return None
    heads = list(dict.fromkeys(key for *_, metrics in measured for key in metrics))
    rows = [[*words, *(_cell(metrics, head) for head in heads)] for *words, metrics in measured]
    words = [TableColumn(head, is_number=False) for head in ("corpus", "run", "prefetch")]
    numbers = [TableColumn(head.replace("_", " ")) for head in heads]
    return table("What naming tools behind the user's message saves", [*words, *numbers], rows)


def _categories(runs: Mapping[str, EvalRun]) -> Markup | None:
    metrics = ("recall@1", "recall@5", "false_hit_rate")
    rows: list[list[str]] = []
    for name, run in runs.items():
        for row in run:
            found = row.get("categories")
            rows += [
                [_key(row), name, category, *(_cell(told, metric) for metric in metrics)]
                for category, told in (found.items() if is_object(found) else ())
                if is_object(told)
            ]
    words = [TableColumn(head, is_number=False) for head in ("corpus", "run", "category")]
    numbers = [TableColumn(_HEADS.get(metric, metric), _MEANINGS[metric]) for metric in metrics]
    return table("The requests of each category", [*words, *numbers], rows) if rows else None


def _flat(row: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a result with what its answers hold and cost beside its other figures."""
    answers = row.get("answers")
    return {**row, **answers} if is_object(answers) else row


def _key(row: Mapping[str, Json]) -> str:
    return f"{row.get('corpus')} {row.get('ranker')}"


def _keys(runs: Mapping[str, EvalRun]) -> list[str]:
    return list(dict.fromkeys(_key(row) for run in runs.values() for row in run))


def _told(runs: Mapping[str, EvalRun], metric: str) -> bool:
    return any(_values(run, metric) for run in runs.values())


def _values(run: EvalRun, metric: str) -> list[float]:
    return _numbers(row.get(metric) for row in run)


def _mean(run: EvalRun, metric: str) -> float | None:
    values = _values(run, metric)
    return fmean(values) if values else None


def _numbers(values: Iterable[Json]) -> list[float]:
    return [number for value in values if (number := _number(value)) is not None]


def _number(value: Json) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e15 else None


def _interval(row: Mapping[str, Json]) -> Interval | None:
    found = row.get(_INTERVAL)
    ends = _numbers(found) if is_array(found) else []
    return (ends[0], ends[1]) if len(ends) == 2 else None


def _cell(row: Mapping[str, Json], metric: str) -> str:
    value = _number(row.get(metric))
    if value is None:
        return "–"
    return f"{value:,.0f}" if metric.endswith("_tokens") else f"{value:.3f}"
