"""Charts as SVG files, with nothing to install: bars in groups, and lines.

A chart stands alone, on white. What it shows is also said in words, for those who cannot see
it. Those of pages are `report.charts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from toolfold.evaluation.measure import Result

__all__ = ["bars_svg", "grouped_bars_svg", "lines_svg"]

_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#9c6b4e")
_ROW = 16
_LEFT = 170
_WIDTH = 460
_HEIGHT = 260


def bars_svg(results: Sequence[Result], metric: str) -> str:
    """Return a chart of one metric: a group of bars a corpus, a bar a ranker."""
    values = {(r.corpus, r.ranker): r.metrics.get(metric) for r in results}
    return grouped_bars_svg(metric, values, most=1.0, written=lambda value: f"{value:.3f}")


def grouped_bars_svg(
    title: str,
    values: Mapping[tuple[str, str], float | None],
    *,
    most: float | None = None,
    written: Callable[[float], str] = lambda value: f"{value:,.0f}",
) -> str:
    """Return a chart of bars.

    Args:
        title: What it shows.
        values: The length of each bar, by its group and its series; None leaves it out.
        most: What fills the whole width; by default the longest bar.
        written: How a value is written.
    """
    groups = list(dict.fromkeys(group for group, _ in values))
    series = list(dict.fromkeys(name for _, name in values))
    known = [value for value in values.values() if value is not None]
    scale = _WIDTH / ((most or max(known, default=0)) or 1)
    high = _ROW * len(series) + 12
    said = "; ".join(
        f"{group}, {name}: {written(value)}"
        for (group, name), value in values.items()
        if value is not None
    )
    parts = _opening(title, said, _LEFT + _WIDTH + 90, 86 + high * len(groups))
    parts += _legend(series)
    for row, group in enumerate(groups):
        top = 66 + high * row
        middle = top + _ROW * len(series) / 2 + 4
        parts.append(_label(_LEFT - 8, middle, group, "end"))
        for i, name in enumerate(series):
            value = values.get((group, name))
            if value is None:
                continue
            y, width = top + _ROW * i, value * scale
            bar = f'width="{width:.1f}" height="{_ROW - 3}"'
            parts.append(f'<rect x="{_LEFT}" y="{y}" {bar} fill="{_colour(i)}"/>')
            parts.append(_label(_LEFT + width + 5, y + 11, written(value), size=11))
    return "\n".join([*parts, "</svg>", ""])


def lines_svg(
    title: str,
    series: Mapping[str, Sequence[float]],
    *,
    across: str = "turn",
    up: str = "tokens",
    logarithmic: bool = False,
) -> str:
    """Return a chart of lines.

    Args:
        title: What it shows.
        series: The values of each line, from 1 on.
        across: What is counted along the bottom.
        up: What is counted up the side.
        logarithmic: Whether equal steps up are equal factors.
    """
    values = [value for line in series.values() for value in line]
    count = max((len(line) for line in series.values()), default=1)
    ticks = _ticks(min(values, default=1), max(values, default=1), logarithmic=logarithmic)
    low, high = ticks[0], ticks[-1]
    left, top = 80, 50

    def x(place: int) -> float:
        return left + place * _WIDTH / max(count - 1, 1)

    def y(value: float) -> float:
        if logarithmic:
            share = math.log(max(value, low) / low) / math.log(high / low)
        else:
            share = (value - low) / (high - low)
        return top + _HEIGHT * (1 - share)

    said = "; ".join(
        f"{name}: {line[0]:,.0f} {up} at {across} 1, {line[-1]:,.0f} at {across} {len(line)}"
        for name, line in series.items()
        if line
    )
    parts = _opening(title, said, left + _WIDTH + 130, top + _HEIGHT + 50)
    for tick in ticks:
        at = f'x1="{left}" x2="{left + _WIDTH}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"'
        parts.append(f'<line {at} stroke="currentColor" stroke-opacity="0.15"/>')
        parts.append(_label(left - 8, y(tick) + 4, f"{tick:,.0f}", "end", 11))
    for place in sorted({0, *range(4, count, 5), count - 1}):
        parts.append(_label(x(place), top + _HEIGHT + 18, str(place + 1), "middle", 11))
    parts.append(_label(left + _WIDTH / 2, top + _HEIGHT + 38, across, "middle"))
    parts.append(_label(left - 8, top - 14, up, "end", 11))
    for i, (name, line) in enumerate(series.items()):
        if not line:
            continue
        points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in enumerate(line))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{_colour(i)}" stroke-width="2"/>'
        )
        end = _label(x(len(line) - 1) + 6, y(line[-1]) + 4, name, size=11)
        parts.append(end.replace("<text", f'<text fill="{_colour(i)}"').replace(_FILL, ""))
    return "\n".join([*parts, "</svg>", ""])


_FILL = ' fill="currentColor"'


def _opening(title: str, said: str, width: float, height: float) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" color="black" font-family="system-ui, sans-serif" '
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(said)}</desc>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="22"{_FILL} font-size="14" font-weight="600">{escape(title)}</text>',
    ]


def _legend(series: Sequence[str]) -> list[str]:
    parts: list[str] = []
    for i, name in enumerate(series):
        x = _LEFT + 120 * i
        parts.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{_colour(i)}"/>')
        parts.append(_label(x + 17, 46, name))
    return parts


def _label(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {where}{_FILL}>{escape(text)}</text>"


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]


def _ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """Return round values that enclose `low` and `high`."""
    if not logarithmic:
        step = _round_up(max(high, 1) / 5)
        return [step * i for i in range(math.ceil(max(high, 1) / step) + 1)]
    rounds = [base * 10**power for power in range(0, 9) for base in (1, 2, 5)]
    first = max((r for r in rounds if r <= low), default=1)
    last = min((r for r in rounds if r >= high and r > first), default=rounds[-1])
    return [float(r) for r in rounds if first <= r <= last]


def _round_up(value: float) -> float:
    power = 10 ** math.floor(math.log10(value))
    return next(power * base for base in (1, 2, 5, 10) if power * base >= value)
