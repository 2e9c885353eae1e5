"""Charts that fit any width, with nothing to install and nothing that runs.

Bars are the cells of a table, so that names wrap, figures are read aloud and a phone shows
them in full. Lines are drawn with places in per cent, so that they stretch while their words
keep their size; what they show stands in a table behind them. No colour says what is not said
in words or by the kind of line as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolfold.evaluation.measure import Interval
from toolfold.evaluation.report.markup import Markup, breakable, element
from toolfold.evaluation.report.page import command_line
from toolfold.evaluation.report.tables import TableColumn, table

__all__ = ["ChartAxis", "ChartBar", "bar_chart", "figure", "line_chart"]

_TONES = 10
_PLAIN = 6
_HIGH = 14
_PLOT_HIGH = 280
_GROUPS_AT_MOST = 40
_X_LABELS = 8


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One bar."""

    name: str
    value: float | None
    """Its length; None where nothing was measured."""

    written: str
    """The value as it is read."""

    interval: Interval | None = None
    group: str = ""


def bar_chart(
    title: str,
    bars: Sequence[ChartBar],
    *,
    most: float | None = None,
    marked: Sequence[str] | None = None,
) -> Markup:
    """Return bars, by group.

    Args:
        title: What they show.
        bars: The bars, those of a group side by side.
        most: What fills the whole width; by default the longest bar or interval.
        marked: The names whose bars stand out, and all others are alike; by default each name
            has a colour of its own.
    """
    ends = [end for bar in bars for end in (bar.value, *(bar.interval or ())) if end is not None]
    longest = most or max(ends, default=0) or 1
    names = list(dict.fromkeys(bar.name for bar in bars))
    tones = (
        {name: i % _TONES for i, name in enumerate(names)}
        if marked is None
        else {name: 0 if name in marked else _PLAIN for name in names}
    )
    groups = list(dict.fromkeys(bar.group for bar in bars))
    shown = groups[:_GROUPS_AT_MOST]
    rest = len(groups) - len(shown)
    return element(
        "figure",
        element(
            "table",
            element("caption", title),
            [_group(name, [b for b in bars if b.group == name], tones, longest) for name in shown],
            class_="bars",
        ),
        element("figcaption", f"{rest:,} more are left out.") if rest else None,
    )


def _group(name: str, bars: Sequence[ChartBar], tones: Mapping[str, int], longest: float) -> Markup:
    head = element("th", breakable(name), scope="rowgroup", colspan=3, class_="group")
    return element(
        "tbody",
        element("tr", head) if name else None,
        [_bar(bar, tones[bar.name], longest) for bar in bars],
    )


def _bar(bar: ChartBar, tone: int, longest: float) -> Markup:
    parts: list[Markup] = []
    if bar.value is not None:
        width = _per_cent(bar.value / longest)
        parts.append(element("rect", width=width, height=_HIGH, class_=f"fill-{tone}"))
    if bar.interval is not None:
        low, high = (_per_cent(end / longest) for end in bar.interval)
        middle = _HIGH / 2
        parts.append(_line(low, high, f"{middle:g}", f"{middle:g}", "whisker"))
    drawn = element("svg", parts, width="100%", height=_HIGH, aria_hidden="true")
    return element(
        "tr",
        element("th", breakable(bar.name), scope="row", class_="name"),
        element("td", bar.written, class_="number"),
        element("td", drawn),
    )


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """What is counted along one side of a plot."""

    name: str
    least: float = 0.0
    most: float | None = None
    """Where it ends; by default a round value beyond the largest."""

    is_logarithmic: bool = False
    written: Callable[[float], str] = "{:,.0f}".format


def line_chart(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    across: ChartAxis,
    up: ChartAxis,
) -> Markup:
    """Return lines through points.

    Args:
        title: What they show.
        series: The points of each line: across, then up.
        across: The axis along the bottom.
        up: The axis up the side.
    """
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    left, right = (xs[0], xs[-1]) if xs else (0.0, 1.0)
    ticks = _ticks(ys, up)

    def x_of(value: float) -> str:
        return _per_cent(_share(value, left, right, across.is_logarithmic))

    def y_of(value: float) -> str:
        return _per_cent(1 - _share(value, ticks[0], ticks[-1], up.is_logarithmic))

    parts = [element("title", title)]
    for tick in ticks:
        parts.append(_line("0%", "100%", y_of(tick), y_of(tick), "grid"))
        parts.append(_label("0%", y_of(tick), up.written(tick), dx=-8, dy=4, text_anchor="end"))
    parts += [
        _label(x_of(x), "100%", across.written(x), dy=20, text_anchor="middle")
        for x in _thinned(xs)
    ]
    parts.append(_label("50%", "100%", across.name, dy=42, text_anchor="middle"))
    parts.append(_label("0%", "0%", up.name, dx=-8, dy=-14))
    for i, points in enumerate(series.values()):
        parts += _curve([(x_of(x), y_of(y)) for x, y in points], i % _TONES)
    drawn = element("svg", parts, width="100%", height=_PLOT_HIGH, role="img", aria_label=title)
    return element(
        "figure",
        element("figcaption", title),
        _legend(list(series)),
        element("div", drawn, class_="plot"),
        element(
            "details",
            element("summary", "The figures of this plot"),
            _figures(title, series, xs, across, up),
        ),
    )


def figure(drawn: Markup, command: str) -> Markup:
    """Return a chart or a table with the command that made its figures."""
    return element("div", drawn, command_line(command), class_="made-by")


def _curve(points: Sequence[tuple[str, str]], tone: int) -> list[Markup]:
    lines = [
        _line(x1, x2, y1, y2, f"curve curve-{tone}") for (x1, y1), (x2, y2) in pairwise(points)
    ]
    dots = [element("circle", cx=x, cy=y, r=3, class_=f"fill-{tone}") for x, y in points]
    return lines + dots


def _line(x1: str, x2: str, y1: str, y2: str, kind: str) -> Markup:
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


def _label(x: str, y: str, said: str, **more: str | int) -> Markup:
    return element("text", said, x=x, y=y, **more)


def _legend(names: Sequence[str]) -> Markup:
    return element(
        "ul",
        [
            element(
                "li",
                element(
                    "svg",
                    _line("0", "28", "6", "6", f"curve curve-{i % _TONES}"),
                    width=28,
                    height=12,
                    aria_hidden="true",
                ),
                " ",
                breakable(name),
            )
            for i, name in enumerate(names)
        ],
        class_="legend",
    )


def _figures(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    xs: Sequence[float],
    across: ChartAxis,
    up: ChartAxis,
) -> Markup:
    by_name = {name: dict(points) for name, points in series.items()}
    rows = [
        [
            across.written(x),
            *(up.written(own[x]) if x in own else "–" for own in by_name.values()),
        ]
        for x in xs
    ]
    columns = [TableColumn(across.name), *map(TableColumn, series)]
    return table(f"{title}: {up.name}", columns, rows)


def _per_cent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _share(value: float, low: float, high: float, is_logarithmic: bool) -> float:
    if is_logarithmic:
        value, low, high = (math.log(max(each, 1e-9)) for each in (value, low, high))
    return (value - low) / (high - low) if high > low else 0.0


def _thinned(values: Sequence[float]) -> list[float]:
    """Return so many of the values that their words do not run into each other on a phone."""
    step = max(1, math.ceil((len(values) - 1) / (_X_LABELS - 1))) if values else 1
    kept = [values[i] for i in range(0, len(values), step)]
    if not values or values[-1] in kept:
        return kept
    return [*(kept if (len(values) - 1) % step > step / 2 else kept[:-1]), values[-1]]


def _ticks(values: Sequence[float], axis: ChartAxis) -> list[float]:
    """Return round values that enclose those of an axis."""
    high = axis.most if axis.most is not None else max(values, default=1.0)
    if axis.is_logarithmic:
        low = min((value for value in values if value > 0), default=1.0)
        rounds = [base * 10.0**power for power in range(-6, 10) for base in (1, 2, 5)]
        first = max(r for r in rounds if r <= max(low, rounds[0]))
        last = min((r for r in rounds if r >= high and r > first), default=rounds[-1])
        within = [r for r in rounds if first <= r <= last]
        return within if len(within) <= _X_LABELS else [first, *within[3:-1:3], last]
    step = _round_up(max(high - axis.least, 1e-9) / 5)
    count = math.ceil((high - axis.least) / step - 1e-9) or 1
    return [axis.least + step * i for i in range(count + 1)]


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * base for base in (1, 2, 5, 10) if power * base >= value * (1 - 1e-9))
