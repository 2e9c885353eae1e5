"""The page of the bench: ours beside every peer, each figure with the command that makes it.

It is composed of what `bench.results` keeps. What was not measured on this machine is named with
the command that would; nothing on the page comes from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

from bench.beside import OURS
from bench.peers.peers import PEERS
from bench.results import Kept
from toolfold.evaluation.measure import Interval
from toolfold.evaluation.report.charts import ChartAxis, ChartBar, bar_chart, figure, line_chart
from toolfold.evaluation.report.figures_in_words import between, per_cent
from toolfold.evaluation.report.markup import Markup, element, joined
from toolfold.evaluation.report.page import ReportPage, ReportSection, page_html
from toolfold.evaluation.report.tables import TableColumn, table, table_of
from toolfold.prompts import plural

__all__ = ["NAMES", "bench_html"]

Row = dict[str, Any]

NAMES = {
    OURS: "toolfold",
    "hermes": "Hermes Agent",
    "fastmcp": "FastMCP",
    "everruns": "everruns' scheme",
    "pydantic_ai_search": "Pydantic AI",
    "haystack": "Haystack",
    "llama_index": "LlamaIndex",
    "bm25s": "bm25s",
    "tantivy": "tantivy",
    "minilm": "plain MiniLM",
}
"""What the page calls each system."""

_TRAINED = (
    "azure-mcp and nestful were kept out of training, tools and requests; metatool's tools, or "
    "requests like these, were trained on. A request is searched for need by need, five hits each."
)
_SEEN = ("metatool",)
"""Sets that the weights were trained on, or on their like."""
_BESIDE = "beside-"
_ALL = "python -m bench beside"
_DRAWN = ("tokens", "conversation", "trips", "search", "frameworks-tokens")
"""Parts that have a place of their own on the page."""


def bench_html(results: Mapping[str, Kept]) -> str:
    """Return the page.

    Args:
        results: What was measured, by part.
    """
    systems = {
        name: list(found.rows) for name in NAMES if (found := results.get(f"{_BESIDE}{name}"))
    }
    headline, sure = _headline(systems, results)
    sections = [
        ReportSection("What is found", _recall(systems)),
        ReportSection("What is not there", _false_hits(systems)),
        ReportSection("Tokens", _tokens(systems, results)),
        ReportSection("Round trips", _trips(systems, results)),
        ReportSection("Time", _time(systems, results)),
    ]
    if missing := _missing(results):
        sections.append(ReportSection("Not measured here", (missing,)))
    if more := _more(results):
        sections.append(ReportSection("All that was measured besides", more))
    return page_html(
        ReportPage(
            title="make bench: toolfold beside its peers",
            headline=headline,
            sure=sure,
            notes=_notes(results),
            sections=tuple(sections),
        )
    )


# ---- the headline


def _headline(
    systems: Mapping[str, Sequence[Row]], results: Mapping[str, Kept]
) -> tuple[str, tuple[str, ...]]:
    parts: list[str] = []
    sure: list[str] = []
    means = {name: mean for name, rows in systems.items() if (mean := _mean_recall(rows))}
    if OURS in means:
        ours, interval = means[OURS]
        own = [row for row in systems[OURS] if "recall@5" in row]
        parts.append(f"toolfold finds {per_cent(ours)} of the right tools in five hits")
        others = {name: mean for name, (mean, _) in means.items() if name != OURS}
        if others:
            best = max(others, key=lambda name: others[name])
            of = f"the best of {len(others)} others" if len(others) > 1 else "beside it"
            parts.append(f"{of}, {NAMES[best]}, {per_cent(others[best])}")
        asked = plural(sum(row["requests"] for row in own), "request")
        sure.append(
            f"Recall@5 of toolfold: {between(interval)} (95 % interval of the mean over "
            f"{plural(len(own), 'set')}, {asked})."
        )
        sure += _kept_out(systems)
    if OURS in systems and (told := _worst_false_hits(systems)):
        parts.append(told)
    if listed := _listed(results):
        parts.append(listed)
    if not parts:
        return "Nothing was measured yet: run `make bench`.", ()
    return f"{'; '.join(parts)}.", tuple(sure)


def _kept_out(systems: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return what is found on sets that nothing was trained on."""
    means = {
        name: mean[0]
        for name, rows in systems.items()
        if (mean := _mean_recall([row for row in rows if row.get("set") not in _SEEN]))
    }
    others = {name: mean for name, mean in means.items() if name != OURS}
    if OURS not in means or not others:
        return []
    best = max(others, key=lambda name: others[name])
    return [
        f"On the sets that were kept out of training: {per_cent(means[OURS])}; the best of the "
        f"others, {NAMES[best]}, {per_cent(others[best])}."
    ]


def _worst_false_hits(systems: Mapping[str, Sequence[Row]]) -> str:
    worst = {
        name: max(row["false hits"] for row in rows if "false hits" in row)
        for name, rows in systems.items()
        if any("false hits" in row for row in rows)
    }
    if OURS not in worst:
        return ""
    told = f"of what no tool serves, {per_cent(worst[OURS])} at most get a hit"
    others = [value for name, value in worst.items() if name != OURS]
    return f"{told}, {per_cent(min(others))} and more elsewhere" if others else told


def _listed(results: Mapping[str, Kept]) -> str:
    rows = results["tokens"].rows if "tokens" in results else ()
    found = {row.get("what"): row for row in rows}
    before, after = found.get("all schemas"), found.get("bridge, listing sources")
    if before is None or after is None:
        return ""
    key = "o200k_base" if "o200k_base" in before else "characters/4"
    return f"{before['tools']} tools cost {after[key]:,} tokens instead of {before[key]:,}"


def _notes(results: Mapping[str, Kept]) -> tuple[str, ...]:
    notes = [f"Measured on {machine}." for machine in _machines(results)]
    busy = [made.part for made in results.values() if made.is_busy]
    if busy:
        notes.append(
            f"The machine had other work while {', '.join(busy)} ran: times are longer than they "
            "need to be there, for all systems; what is found does not depend on it."
        )
    return tuple(notes)


def _machines(results: Mapping[str, Kept]) -> list[str]:
    return list(dict.fromkeys(made.machine for made in results.values()))


def _mean_recall(rows: Sequence[Row]) -> tuple[float, Interval] | None:
    """Return the mean over the sets, and its interval from theirs, which are independent."""
    own = [row for row in rows if "recall@5" in row]
    if not own:
        return None
    mean = fmean(row["recall@5"] for row in own)
    half = sqrt(sum(((row["high"] - row["low"]) / 2) ** 2 for row in own)) / len(own)
    return mean, (max(0.0, mean - half), min(1.0, mean + half))


# ---- ours beside the others


def _recall(systems: Mapping[str, Sequence[Row]]) -> tuple[Markup, ...]:
    bars = [
        ChartBar(NAMES[name], mean, f"{mean:.3f}", interval)
        for name, rows in systems.items()
        if (found := _mean_recall(rows))
        for mean, interval in (found,)
    ]
    if not bars:
        return (_not_measured(_ALL),)
    chart = bar_chart(
        "Recall@5, the mean over the sets, with 95 % intervals", bars, most=1.0, marked=(OURS,)
    )
    cells = "The share of the right tools among the first five hits of each need"
    by_set = _by_set(systems, "recall@5", cells, lambda row: f"{row['recall@5']:.3f}")
    return figure(chart, _ALL), figure(by_set, _ALL), element("p", _TRAINED, class_="note")


def _by_set(
    systems: Mapping[str, Sequence[Row]], key: str, caption: str, cell: Callable[[Row], str]
) -> Markup:
    sets = list(dict.fromkeys(r["set"] for rows in systems.values() for r in rows if key in r))
    rows: list[list[str]] = []
    for name, own in systems.items():
        found = {row["set"]: row for row in own if row.get(key) is not None}
        if found:
            rows.append([NAMES[name], *(cell(found[s]) if s in found else "–" for s in sets)])
    about = {
        row["set"]: f"{row['tools']:,} tools, {row['requests']:,} dev requests"
        for own in systems.values()
        for row in own
        if "set" in row
    }
    columns = [
        TableColumn("system", is_number=False),
        *(TableColumn(name, about[name]) for name in sets),
    ]
    return table(caption, columns, rows)


def _false_hits(systems: Mapping[str, Sequence[Row]]) -> tuple[Markup, ...]:
    series = {
        NAMES[name]: points
        for name, rows in systems.items()
        if (points := [(float(r["tools"]), r["false hits"]) for r in rows if "false hits" in r])
    }
    if not series:
        return (_not_measured(_ALL),)
    chart = line_chart(
        "Requests that no tool serves and that get a hit, by the size of the catalog",
        series,
        across=ChartAxis("tools in the catalog", is_logarithmic=True),
        up=ChartAxis("share that gets a hit", most=1.0, written=per_cent),
    )
    return (figure(chart, _ALL),)


def _tokens(
    systems: Mapping[str, Sequence[Row]], results: Mapping[str, Kept]
) -> tuple[Markup, ...]:
    parts: list[Markup] = []
    if found := results.get("tokens"):
        rows = [row for row in found.rows if row.get("tools") is not None]
        key = "o200k_base" if any("o200k_base" in row for row in rows) else "characters/4"
        bars = [ChartBar(row["what"], row[key], f"{row[key]:,}") for row in rows if key in row]
        parts.append(
            figure(
                bar_chart(f"Tokens of the model's list of tools, {key}", bars, marked=()),
                found.command,
            )
        )
    else:
        parts.append(_not_measured("python -m bench tokens"))
    answers = [
        ChartBar(NAMES[name], value, f"{value:,.0f}")
        for name, rows in systems.items()
        if (value := _mean(rows, "tokens")) is not None
    ]
    if answers:
        title = "Tokens that a model reads after a search, the mean over the sets"
        parts.append(figure(bar_chart(title, answers, marked=(OURS,)), _ALL))
    if found := results.get("conversation"):
        caption = "Ten messages with a tool each among 226: tokens read, by way to fold"
        parts.append(figure(table_of(caption, list(found.rows)), found.command))
    else:
        parts.append(_not_measured("python -m bench conversation"))
    if found := results.get("frameworks-tokens"):
        caption = "One task among 207 tools in each framework: tokens of all requests"
        parts.append(figure(table_of(caption, list(found.rows)), found.command))
    else:
        parts.append(_not_measured("make recall"))
    return tuple(parts)


def _trips(systems: Mapping[str, Sequence[Row]], results: Mapping[str, Kept]) -> tuple[Markup, ...]:
    parts: list[Markup] = []
    searched = [
        ChartBar(NAMES[name], value, f"{value:.2f}")
        for name, rows in systems.items()
        if (value := _mean(rows, "trips")) is not None
    ]
    if searched:
        title = "Round trips before a tool that a search found can be called, no tool named ahead"
        parts.append(figure(bar_chart(title, searched, marked=(OURS,)), _ALL))
    if found := results.get("trips"):
        bars = [ChartBar(row["what"], row["a need"], f"{row['a need']:.2f}") for row in found.rows]
        title = "Round trips more than unfolded, for each tool that a conversation needs"
        parts += [figure(bar_chart(title, bars, marked=()), found.command)]
    else:
        parts.append(_not_measured("python -m bench trips"))
    if found := results.get("frameworks-tokens"):
        bars = [
            ChartBar(way, row[key], f"{row[key]}", group=row["framework"])
            for row in found.rows
            for way, key in (
                ("all listed", "requests listed"),
                ("its own search", "requests own"),
                ("toolfold", "requests ours"),
            )
            if row.get(key) is not None
        ]
        title = "Requests to the model for one task among 207 tools"
        parts.append(figure(bar_chart(title, bars), found.command))
    return tuple(parts)


def _time(systems: Mapping[str, Sequence[Row]], results: Mapping[str, Kept]) -> tuple[Markup, ...]:
    bars = [
        ChartBar(NAMES[name], value, f"{value:.2f} ms")
        for name, rows in systems.items()
        if (value := _mean(rows, "p50 ms")) is not None
    ]
    parts = [
        figure(
            bar_chart("One search, at the median, the mean over the sets", bars, marked=(OURS,)),
            _ALL,
        )
        if bars
        else _not_measured(_ALL)
    ]
    if found := results.get("search"):
        parts.append(figure(table_of(found.title, list(found.rows)), found.command))
    else:
        parts.append(_not_measured("python -m bench search"))
    return tuple(parts)


def _mean(rows: Sequence[Row], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return fmean(values) if values else None


# ---- what is not there, and what is left


def _not_measured(command: str) -> Markup:
    return element("p", "Not measured here: ", element("code", command), class_="note")


def _missing(results: Mapping[str, Kept]) -> Markup | None:
    told: list[Markup] = []
    for name in PEERS:
        found = results.get(f"{_BESIDE}{name}")
        notes = [row["note"] for row in found.rows if "note" in row] if found else [""]
        for note in notes:
            how = element("code", f"{_ALL} --peer {name}")
            told.append(element("li", f"{NAMES[name]}: ", f"{note}; " if note else None, how))
    return element("ul", told) if told else None


def _more(results: Mapping[str, Kept]) -> tuple[Markup, ...]:
    parts: list[Markup] = []
    for part, found in results.items():
        if part in _DRAWN or part.startswith(_BESIDE) or not found.rows:
            continue
        drawn = figure(table_of(found.title, list(found.rows)), found.command)
        when = f"{part}: {found.title} ({found.made} UTC, {found.seconds:.0f} s)"
        parts.append(element("details", element("summary", when), drawn))
    beside = [made for name, made in results.items() if name.startswith(_BESIDE)]
    rows = [row for made in beside for row in made.rows]
    if rows:
        drawn = figure(table_of("Every system on every set", rows), _ALL)
        parts.append(element("details", element("summary", "beside: every figure"), drawn))
    return (joined(parts),) if parts else ()
