"""`toolfold eval`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from toolfold.cli import options
from toolfold.cli.setting_options import setting_option
from toolfold.demo import CATALOG_FILE
from toolfold.errors import CatalogError
from toolfold.evaluation import AnswerResult, Result, load_corpus, measure, measure_answers
from toolfold.settings import Settings

_COLUMNS = ("recall@1", "recall@5", "recall@10", "all_gold@5", "mrr", "ndcg@5", "false_hit_rate")


@click.command("eval", short_help="Measure search on labelled requests")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option("--queries", metavar="FILE", help="Requests to take in place of DIR's own")
@click.option("--answers", is_flag=True, help="Measure what the answers to a model hold and cost")
@click.option("--split", metavar="NAME", help="Only requests whose split begins so")
@setting_option(
    Settings, "ranker", "--ranker", "rankers", multiple=True, help="How to rank; repeatable"
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), help="Only the first N requests of each corpus"
)
@setting_option(Settings, "relevance_floor", "--floor", "floor")
@click.option("--by-category", is_flag=True, help="Show each category too")
@click.option("--plot", metavar="FILE", help="Write a chart of recall@5 as SVG")
@options.config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line")
def command(
    folders: tuple[str, ...],
    queries: str | None,
    answers: bool,
    split: str | None,
    rankers: tuple[str, ...],
    limit: int | None,
    floor: float | None,
    by_category: bool,
    plot: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Measure search on labelled requests.

    DIR holds tools.jsonl (any wire shape) and queries.jsonl: a line a request, with `query`,
    `gold` (names of the tools that serve it; empty where none does) and, if you like,
    `split` and `category`. Without DIR, the bundled catalog is measured. With --json, one
    object a line for each corpus and ranker.

    \b
    Examples:
      toolfold eval
      toolfold eval my-tools/ --ranker default --ranker bm25 --by-category
      toolfold eval corpora/* --split test --json > results.jsonl
    """
    told: list[AnswerResult] = []
    results: list[Result] = []
    for folder in folders or (str(CATALOG_FILE.parent),):
        try:
            corpus = load_corpus(folder, split=split, queries=queries)
        except CatalogError as error:
            if len(folders) < 2:
                raise
            click.echo(f"warning: left out: {error}", err=True)
            continue
        if corpus.unknown:
            first, *others = corpus.unknown
            more = f" and {len(others)} more" if others else ""
            lacks = f"`{folder}` lacks the gold tool {first!r}{more}"
            click.echo(f"warning: {lacks}: counted as not found", err=True)
        if limit is not None:
            corpus = corpus._replace(requests=corpus.requests[:limit])
        for ranker in rankers or (None,):
            settings = options.open_settings(
                config, enabled="on", ranker=ranker, relevance_floor=floor, cache_dir="off"
            )
            told += [measure_answers(corpus, settings)] if answers else []
            label = f"{corpus.name} {ranker or ''}"
            with click.progressbar(
                length=len(corpus.requests), label=label, file=sys.stderr,
                hidden=as_json or not sys.stderr.isatty(),
            ) as bar:  # fmt: skip
                result = measure(corpus, settings, progress=lambda: bar.update(1))
            results.append(result)
            if as_json:
                click.echo(json.dumps(_object(result), ensure_ascii=False))
    if plot:
        from toolfold.evaluation.plot import bars_svg

        Path(plot).write_text(bars_svg(results, "recall@5"), encoding="utf-8")
    if not as_json:
        _print(results, by_category)
    _tell(told, as_json=as_json)


def _object(result: Result) -> dict[str, Any]:
    return {
        "corpus": result.corpus,
        "ranker": result.ranker,
        "tools": result.tools,
        "queries": result.queries,
        **{key: _rounded(value) for key, value in result.metrics.items()},
        "recall@5_interval": result.interval and [round(x, 4) for x in result.interval],
        "ms_p50": round(result.ms_p50, 4),
        "ms_p95": round(result.ms_p95, 4),
        "build_ms": round(result.build_ms, 2),
        "categories": {
            name: {key: _rounded(value) for key, value in metrics.items()}
            for name, metrics in result.categories.items()
        },
    }


def _tell(results: list[AnswerResult], *, as_json: bool) -> None:
    """Print what the answers hold and cost."""
    for result in results if as_json else ():
        metrics = {key: round(value, 4) for key, value in result.metrics.items()}
        row = {"corpus": result.corpus, "ranker": result.ranker, "answers": result.queries}
        click.echo(json.dumps({**row, **metrics}, ensure_ascii=False))
    if results and not as_json:
        heads = list(dict.fromkeys(key for result in results for key in result.metrics))
        rows = [["", *(head.removesuffix("_recall").replace("_", " ") for head in heads)]]
        for result in results:
            values = ((head, result.metrics.get(head)) for head in heads)
            cells = ["-" if v is None else f"{v:.{0 if 'tokens' in h else 3}f}" for h, v in values]
            rows.append([f"{result.corpus} {result.ranker}", *cells])
        click.echo("\nwhat the answers hold and cost")
        options.print_table(rows)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _print(results: list[Result], by_category: bool) -> None:
    heads = (name.replace("_rate", "") for name in _COLUMNS)
    rows = [["", *heads, "p50 ms", "p95 ms", "build ms"]]
    aside: list[int] = []
    for result in results:
        times = (f"{result.ms_p50:.3f}", f"{result.ms_p95:.3f}", f"{result.build_ms:.0f}")
        rows.append([f"{result.corpus} {result.ranker}", *_cells(result.metrics), *times])
        for category, metrics in result.categories.items() if by_category else ():
            aside.append(len(rows))
            rows.append([f"  {category}", *_cells(metrics), *("" for _ in times)])
    options.print_table(rows, aside=aside)
    for ranker in dict.fromkeys(result.ranker for result in results):
        own = [r.metrics["recall@5"] for r in results if r.ranker == ranker]
        told = [value for value in own if value is not None]
        if len(told) > 1:
            click.echo(
                f"mean recall@5 of {ranker} over {len(told)} corpora: {sum(told) / len(told):.4f}"
            )
    for result in results:
        if result.interval:
            low, high = result.interval
            label = f"{result.corpus} {result.ranker}"
            click.echo(options.dim(f"{label}: recall@5 between {low:.3f} and {high:.3f} (95 %)"))


def _cells(metrics: Mapping[str, float | None]) -> list[str]:
    values = (metrics[name] for name in _COLUMNS)
    return ["-" if value is None else f"{value:.3f}" for value in values]
