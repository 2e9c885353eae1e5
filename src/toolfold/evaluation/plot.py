"""A bar chart over rankers and corpora, as SVG, with nothing to install."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from toolfold.evaluation.measure import Result

__all__ = ["bars_svg"]

_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#9c6b4e")
_ROW = 16
_LEFT = 170
_WIDTH = 460


def bars_svg(results: Sequence[Result], metric: str) -> str:
    """Return a chart of one metric: a group of bars a corpus, a bar a ranker."""
    rankers = list(dict.fromkeys(result.ranker for result in results))
    corpora = list(dict.fromkeys(result.corpus for result in results))
    values = {(r.corpus, r.ranker): r.metrics.get(metric) for r in results}
    group = _ROW * len(rankers) + 12
    height = 64 + group * len(corpora)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="22" font-size="14" font-weight="600">{escape(metric)}</text>',
    ]
    for i, ranker in enumerate(rankers):
        x = _LEFT + 120 * i
        colour = _COLOURS[i % len(_COLOURS)]
        parts.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="22">{escape(ranker)}</text>')
    for row, corpus in enumerate(corpora):
        top = 44 + group * row
        middle = top + _ROW * len(rankers) / 2 + 4
        parts.append(
            f'<text x="{_LEFT - 8}" y="{middle}" text-anchor="end">{escape(corpus)}</text>'
        )
        for i, ranker in enumerate(rankers):
            value = values.get((corpus, ranker))
            if value is None:
                continue
            y = top + _ROW * i
            bar = f'width="{value * _WIDTH:.1f}" height="{_ROW - 3}"'
            parts.append(f'<rect x="{_LEFT}" y="{y}" {bar} fill="{_COLOURS[i % len(_COLOURS)]}"/>')
            end = _LEFT + value * _WIDTH + 5
            parts.append(f'<text x="{end:.1f}" y="{y + 11}" font-size="11">{value:.3f}</text>')
    return "\n".join([*parts, "</svg>", ""])
