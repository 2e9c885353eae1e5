"""Runs of `toolfold eval` side by side, as one page: tables, bars, and the floor's curve.

One file with nothing to load from elsewhere. Every text in it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import fmean

from toolfold.evaluation.plot import curves_svg, grouped_bars_svg
from toolfold.tool import Json, is_array, is_object

__all__ = ["page_html"]

EvalRun = Sequence[Mapping[str, Json]]

_METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "false_hit_rate", "ms_p50")
_OF_ANSWERS = ("answer_recall", "first_hit", "answer_tokens")
"""What is shown of the answers, where a run measured them."""
_CHARTS = ("recall@5", "recall@1", "answer_recall", "false_hit_rate")
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
tbody tr:nth-child(even) { background: var(--soft); }
svg { max-width: 100%; height: auto; }
"""


def page_html(runs: Mapping[str, EvalRun]) -> str:
    """Return the page.

    Args:
        runs: The results of each run, as `toolfold eval --json` prints them, by its name.
    """
    runs = {name: [_flat(row) for row in run] for name, run in runs.items()}
    charts = [_bars(metric, runs) for metric in _CHARTS if _told(runs, metric)]
    curves = {name: points for name, run in runs.items() if (points := _curve(run))}
    if curves:
        title = "Recall against false hits, floor by floor"
        words = {"across": "false hits", "up": "recall@5"}
        charts.append(curves_svg(title, curves, inside=True, **words))
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>toolfold eval</title><style>{_STYLE}</style>",
            "<h1>toolfold eval</h1>",
            '<div class="scroll">',
            _table(runs),
            "</div>",
            *(f"<p>{chart}</p>" for chart in charts),
            "</html>\n",
        ]
    )


def _table(runs: Mapping[str, EvalRun]) -> str:
    metrics = (*_METRICS, *(metric for metric in _OF_ANSWERS if _told(runs, metric)))
    heads = "".join(f"<th>{escape(text)}</th>" for text in ("corpus", "run", "tools", *metrics))
    rows: list[str] = []
    for key in _keys(runs):
        for name, run in runs.items():
            for row in run:
                if _key(row) == key:
                    cells = [
                        key,
                        name,
                        str(row.get("tools", "")),
                        *(_cell(row, m) for m in metrics),
                    ]
                    rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    for name, run in runs.items():
        means = {metric: fmean(told) for metric in metrics if (told := _values(run, metric))}
        cells = ["mean", name, "", *(_cell(means, metric) for metric in metrics)]
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _bars(metric: str, runs: Mapping[str, EvalRun]) -> str:
    values = {
        (key, name): next((_number(row.get(metric)) for row in run if _key(row) == key), None)
        for key in _keys(runs)
        for name, run in runs.items()
    }
    told = {group for (group, _), value in values.items() if value is not None}
    kept = {key: value for key, value in values.items() if key[0] in told}
    return grouped_bars_svg(
        metric, kept, most=1.0, written=lambda value: f"{value:.3f}", inside=True
    )


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


def _numbers(values: Iterable[Json]) -> list[float]:
    return [number for value in values if (number := _number(value)) is not None]


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _cell(row: Mapping[str, Json], metric: str) -> str:
    value = _number(row.get(metric))
    if value is None:
        return "–"
    return f"{value:.0f}" if metric.endswith("_tokens") else f"{value:.3f}"
