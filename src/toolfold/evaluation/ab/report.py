"""The A/B as one page: tables, bars, and a link to every transcript.

One file with nothing to load from elsewhere. Every text in it is escaped: models and tools
say what they like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from urllib.parse import quote

from toolfold.evaluation.ab.measures import ALL, Measures, Row, rows
from toolfold.evaluation.plot import grouped_bars_svg

__all__ = ["COLUMNS", "report_html"]


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
    ("Share of runs that succeeded", lambda r: r.success_rate, lambda v: f"{v:.0%}"),
)

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2), .words { text-align: left; }
tbody tr:nth-child(even) { background: var(--soft); }
svg { max-width: 100%; height: auto; }
.bad { font-weight: 600; }
"""


def report_html(measures: Sequence[Measures], *, title: str, notes: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        measures: The runs.
        title: Its heading.
        notes: What else to say, a paragraph each.
    """
    table = rows(measures)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(note)}</p>" for note in notes),
        "<h2>By scenario and arm</h2>",
        _table(table),
        *(_chart(heading, value, written, table) for heading, value, written in _CHARTS),
        "<h2>Runs</h2>",
        _runs(measures),
        "</main></body></html>",
        "",
    ]
    return "\n".join(parts)


def _chart(
    heading: str,
    value: Callable[[Row], float | None],
    written: Callable[[float], str],
    table: Sequence[Row],
) -> str:
    values = {(row.scenario, row.arm): value(row) for row in table if row.scenario != ALL}
    chart = grouped_bars_svg(heading, values, written=written, inside=True)
    return f"<h2>{escape(heading)}</h2>\n<figure>{chart}</figure>"


def _table(table: Sequence[Row]) -> str:
    heads = "".join(
        f'<th scope="col"><abbr title="{escape(about)}">{escape(head)}</abbr></th>'
        for head, about, _ in COLUMNS
    )
    body = "\n".join(
        f'<tr><th scope="row">{escape(row.scenario)}</th><td>{escape(row.arm)}</td>'
        + "".join(f"<td>{escape(cell(row))}</td>" for _, _, cell in COLUMNS)
        + "</tr>"
        for row in table
    )
    first = '<th scope="col">scenario</th><th scope="col">arm</th>'
    caption = "<caption>Means over the runs of a scenario in an arm</caption>"
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{first}{heads}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _runs(measures: Sequence[Measures]) -> str:
    heads = "".join(
        f'<th scope="col" class="words">{head}</th>'
        for head in ("run", "result", "tools run", "invented", "what is wrong")
    )
    body = "\n".join(_run(run) for run in measures)
    return (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _run(run: Measures) -> str:
    file = quote(f"transcripts/{run.label}.json")
    result = "success" if run.success else "error" if run.error else "failure"
    cells = (
        f'<a href="{escape(file)}">{escape(run.label)}</a>',
        escape(result) if run.success else f'<span class="bad">{escape(result)}</span>',
        escape(", ".join(run.tools_run)) or "none",
        escape(", ".join(run.invented)) or "none",
        escape("; ".join(run.problems)),
    )
    return "<tr>" + "".join(f'<td class="words">{cell}</td>' for cell in cells) + "</tr>"
