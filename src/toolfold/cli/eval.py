"""`toolfold eval`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from statistics import fmean

import click

from toolfold.cli import options
from toolfold.cli._report_origin import made_now, typed_command, write_text
from toolfold.cli.output import print_table, say
from toolfold.cli.progress_bar import ProgressBar, progress
from toolfold.cli.setting_options import setting_option
from toolfold.demo import CATALOG_FILE
from toolfold.errors import CatalogError
from toolfold.evaluation import (
    PREFETCHES,
    AnswerResult,
    PrefetchResult,
    Result,
    load_corpus,
    measure,
    measure_answers,
    measure_history,
    measure_prefetch,
    remember_history,
    split_history,
)
from toolfold.evaluation.corpus import Corpus
from toolfold.evaluation.measure import mean_curve
from toolfold.memory import Memory
from toolfold.prompts import plural
from toolfold.settings import Settings
from toolfold.settings.words_file import with_words_beside
from toolfold.tool import Json, is_object

_COLUMNS = (
    "recall@1", "recall@5", "recall@10", "recall@20", "all_gold@5", "mrr", "ndcg@5",
    "false_hit_rate",
)  # fmt: skip


@click.command("eval", short_help="Measure search on labelled requests")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option("--queries", metavar="FILE", help="Requests to take in place of DIR's own")
@click.option("--answers", is_flag=True, help="Measure what the answers to a model hold and cost")
@click.option(
    "--prefetch", is_flag=True, help="Measure what naming tools behind the user's message saves"
)
@click.option(
    "--history",
    metavar="SPLIT",
    help="Measure a memory: this split, a share as 60%, or a file is what was asked before",
)
@click.option(
    "--keep", metavar="FILE", help="With --history: keep what was learnt, for --memory of `replay`"
)
@click.option("--split", metavar="NAME", help="Only requests whose split begins so")
@setting_option(
    Settings, "ranker", "--ranker", "rankers", multiple=True, help="How to rank; repeatable"
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), help="Only N requests of each corpus, drawn"
)
@click.option(
    "--tools", metavar="N", type=click.IntRange(1), help="Only N tools of each catalog, drawn"
)
@click.option("--seed", metavar="N", type=int, default=0, help="What --limit and --tools draw")
@setting_option(Settings, "relevance_floor", "--floor", "floor")
@click.option("--by-category", is_flag=True, help="Show each category too")
@click.option("--floor-curve", is_flag=True, help="Show recall and false hits at other floors")
@click.option("--plot", metavar="FILE", help="Write a chart of recall@5 as SVG")
@click.option("--page", metavar="FILE", help="Write a page with tables and charts as HTML")
@click.option(
    "--compare", metavar="FILE", multiple=True, help="On the page: an earlier --json; repeatable"
)
@options.config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line")
def command(
    folders: tuple[str, ...],
    queries: str | None,
    answers: bool,
    prefetch: bool,
    history: str | None,
    keep: str | None,
    split: str | None,
    rankers: tuple[str, ...],
    limit: int | None,
    tools: int | None,
    seed: int,
    floor: float | None,
    by_category: bool,
    floor_curve: bool,
    plot: str | None,
    page: str | None,
    compare: tuple[str, ...],
    config: str | None,
    as_json: bool,
) -> None:
    """Measure search on labelled requests.

    DIR holds tools.jsonl (any wire shape) and queries.jsonl: a line a request, with `query`,
    `gold` (names of the tools that serve it; empty where none does) and, if you like,
    `split` and `category`. What stands between `|` in a query is searched for need by need.
    Without DIR, the bundled catalog is measured. With --json, one object a line for each
    corpus and ranker.

    \b
    Examples:
      toolfold eval
      toolfold eval my-tools/ --ranker default --ranker bm25 --by-category
      toolfold eval corpora/* --split test --json > results.jsonl
      toolfold eval corpora/* --page page.html --compare results.jsonl
      toolfold eval my-tools/ unserved/ --floor-curve --limit 200 --seed 1
      toolfold eval my-tools/ --prefetch
      toolfold eval my-tools/ --history train
    """
    _refuse_pages_of(history, page or plot)
    _keep_history(folders, history, (queries, seed), keep, config)
    if history is not None:
        _measure_history(folders, history, (queries, split, limit, seed), config, floor, as_json)
        return
    earlier = _earlier(compare, page)
    told: list[AnswerResult] = []
    ahead: list[PrefetchResult] = []
    results: list[Result] = []
    rows: list[dict[str, Json]] = []
    for folder in folders or (str(CATALOG_FILE.parent),):
        try:
            corpus = load_corpus(folder, split=split, queries=queries)
        except CatalogError as error:
            if len(folders) < 2:
                raise
            say(f"warning: left out: {error}", err=True)
            continue
        if corpus.unknown:
            _warn_of_unknown(folder, corpus.unknown)
        corpus = corpus.drawn(limit, tools, seed)
        for ranker in rankers or (None,):
            settings = options.open_settings(
                config, enabled="on", ranker=ranker, relevance_floor=floor, cache_dir="off"
            )
            settings = with_words_beside(settings, Path(folder) / "tools.jsonl")
            passes = 1 + answers + len(PREFETCHES) * prefetch
            label = f"{options.plain(corpus.name)} {ranker or ''}".rstrip()
            with progress(passes * len(corpus.requests), label, quiet=as_json) as bar:
                modes = PREFETCHES if prefetch else ()
                told += _answered(corpus, settings, bar) if answers else []
                named = [measure_prefetch(corpus, settings, m, progress=bar.update) for m in modes]
                ahead += named
                result = measure(corpus, settings, progress=bar.update)
            results.append(result)
            rows.append({**result.as_json(), **_of_answers(told), **_of_prefetch(named)})
            if as_json:
                click.echo(json.dumps(rows[-1], ensure_ascii=False))
    _draw(results, plot, page, {**earlier, "this run": rows})
    if not as_json:
        _print(results, by_category)
        if floor_curve:
            _print_curve(results)
        _print_answers(told)
        _print_prefetch(ahead)


def _answered(corpus: Corpus, settings: Settings, bar: ProgressBar) -> list[AnswerResult]:
    return [measure_answers(corpus, settings, progress=bar.update)]


def _refuse_pages_of(history: str | None, file: str | None) -> None:
    if history is not None and file:
        raise click.UsageError("--page and --plot show no history: leave them or --history out")


def _earlier(compare: tuple[str, ...], page: str | None) -> dict[str, list[dict[str, Json]]]:
    """Return the earlier results that a page is to show."""
    if compare and not page:
        raise click.UsageError("--compare has nowhere to be shown: add --page FILE")
    return {Path(file).stem: _read_run(file) for file in compare}


def _measure_history(
    folders: tuple[str, ...],
    history: str,
    drawn: tuple[str | None, str | None, int | None, int],
    config: str | None,
    floor: float | None,
    as_json: bool,
) -> None:
    """Print what search finds after 0, 50, 200 and 1,000 requests of a history."""
    queries, split, limit, seed = drawn
    settings = options.open_settings(config, enabled="on", relevance_floor=floor, cache_dir="off")
    rows = [["", "uses", "recall@1", "", "recall@5", "", "false_hit"]]
    for folder in folders or (str(CATALOG_FILE.parent),):
        whole = load_corpus(folder, queries=queries)
        before, after = split_history(whole, history, seed)
        if split is not None:
            kept = tuple(r for r in after.requests if r.split.startswith(split))
            after = after._replace(requests=kept)
        if not before.requests or not after.requests:
            raise CatalogError(
                f"`{folder}` has no requests before or none after `--history {history}`",
                hint="give a split that it has, or a share, as 60%",
            )
        after = after.drawn(limit, None, seed)
        count = len(before.requests) + len(after.requests)
        with progress(count, options.plain(after.name), quiet=as_json) as bar:
            result = measure_history(before, after, settings, progress=bar.update)
        if as_json:
            click.echo(json.dumps(result.as_json(), ensure_ascii=False))
        for point in result.points:
            one, five, false = _shown((point.recall_1, point.recall_5, point.false_hit_rate))
            label = result.corpus if not point.uses else ""
            rows.append(
                [label, f"{point.uses:,}", one, _between(point.interval_1), five,
                 _between(point.interval_5), false]
            )  # fmt: skip
    if not as_json:
        print_table(rows)


def _keep_history(
    folders: tuple[str, ...],
    history: str | None,
    drawn: tuple[str | None, int],
    keep: str | None,
    config: str | None,
) -> None:
    """Write a memory of the history of all folders, where one is to be kept."""
    if keep is None:
        return
    if history is None:
        raise click.UsageError("--keep has nothing to keep: add --history SPLIT")
    queries, seed = drawn
    settings = options.open_settings(config, enabled="on", cache_dir="off")
    memory = Memory(Path(keep))
    count = 0
    with closing(memory):
        for folder in folders or (str(CATALOG_FILE.parent),):
            before, _ = split_history(load_corpus(folder, queries=queries), history, seed)
            count += remember_history(before, settings, memory)
    say(f"{plural(count, 'request')} kept in `{options.plain(keep)}`", err=True)


def _between(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _of_answers(told: list[AnswerResult]) -> dict[str, Json]:
    """Return what the answers to the last corpus hold and cost, if that was measured."""
    measured = told[-1].metrics if told else {}
    return {"answers": {k: round(v, 4) for k, v in measured.items()}} if told else {}


def _of_prefetch(ahead: list[PrefetchResult]) -> dict[str, Json]:
    """Return what notes did for a corpus, if that was measured."""
    measured = {r.prefetch: {k: round(v, 4) for k, v in r.metrics.items()} for r in ahead}
    return {"prefetch": measured} if measured else {}


def _print_prefetch(ahead: list[PrefetchResult]) -> None:
    """Print what notes behind the user's message hold, cost and save."""
    if not ahead:
        return
    heads = list(dict.fromkeys(key for result in ahead for key in result.metrics))
    rows = [["", *(head.replace("_", " ") for head in heads)]]
    rows += ([f"{r.corpus} {r.prefetch}", *_told(r.metrics, heads)] for r in ahead)
    for mode in dict.fromkeys(result.prefetch for result in ahead):
        own = [result.metrics for result in ahead if result.prefetch == mode]
        if len(own) > 1:
            having = {head: [m[head] for m in own if head in m] for head in heads}
            means = {head: fmean(values) for head, values in having.items()}
            rows.append([f"mean {mode}", *_told(means, heads)])
    say("\nwhat naming tools behind the user's message saves")
    print_table(rows)


def _told(metrics: Mapping[str, float], heads: Iterable[str]) -> list[str]:
    values = ((head, metrics.get(head)) for head in heads)
    return ["-" if v is None else f"{v:.{0 if 'tokens' in h else 3}f}" for h, v in values]


def _print_answers(told: list[AnswerResult]) -> None:
    """Print what the answers hold and cost."""
    if not told:
        return
    heads = list(dict.fromkeys(key for result in told for key in result.metrics))
    # How often it is right, beside which share of the right tools it is.
    words = {"first_hit": "first hit right"}
    named = (words.get(head, head.removesuffix("_recall").replace("_", " ")) for head in heads)
    rows = [["", *named]]
    rows += ([f"{r.corpus} {r.ranker}", *_told(r.metrics, heads)] for r in told)
    say("\nwhat the answers hold and cost")
    print_table(rows)


def _draw(
    results: list[Result],
    plot: str | None,
    page: str | None,
    runs: Mapping[str, list[dict[str, Json]]],
) -> None:
    """Write the chart and the page that were asked for."""
    if plot:
        from toolfold.evaluation.plot import bars_svg

        write_text(plot, bars_svg(results, "recall@5"))
    if page:
        from toolfold.evaluation.report.eval_page import eval_html

        write_text(page, eval_html(runs, command=typed_command(), made=made_now()))


def _warn_of_unknown(folder: str, unknown: tuple[str, ...]) -> None:
    """Say which gold tools a catalog lacks."""
    first, *others = unknown
    more = f" and {len(others)} more" if others else ""
    lacks = f"`{folder}` lacks the gold tool {first!r}{more}"
    say(f"warning: {lacks}: counted as not found", err=True)


def _read_run(file: str) -> list[dict[str, Json]]:
    """Return the results that an earlier run printed with `--json`.

    Raises:
        CatalogError: The file is missing, or holds something else.
    """
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError):
        rows = None
    if rows is None or not all(is_object(row) and "corpus" in row for row in rows):
        raise CatalogError(
            f"`{file}` holds no results of `toolfold eval --json`", hint="check the file"
        )
    return rows


def _print_curve(results: list[Result]) -> None:
    """Print recall@5 and false hits at each floor: means over the corpora that have them."""
    for ranker in dict.fromkeys(result.ranker for result in results):
        points = mean_curve([result.curve for result in results if result.ranker == ranker])
        if not points:
            say(f"{ranker} has no probabilities, so no floor")
            continue
        rows = [["floor", "recall@5", "false_hit"]]
        rows += [[f"{p.floor:.2f}", *_shown((p.recall, p.false_hit_rate))] for p in points]
        say(f"\n{ranker}")
        print_table(rows)


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
    print_table(rows, aside=aside)
    for ranker in dict.fromkeys(result.ranker for result in results):
        own = [r.metrics["recall@5"] for r in results if r.ranker == ranker]
        told = [value for value in own if value is not None]
        if len(told) > 1:
            say(f"mean recall@5 of {ranker} over {len(told)} corpora: {sum(told) / len(told):.4f}")
    for result in results:
        if result.interval:
            low, high = result.interval
            label = f"{result.corpus} {result.ranker}"
            say(options.dim(f"{label}: recall@5 between {low:.3f} and {high:.3f} (95 %)"))


def _cells(metrics: Mapping[str, float | None]) -> list[str]:
    return _shown(metrics[name] for name in _COLUMNS)


def _shown(values: Iterable[float | None]) -> list[str]:
    return ["-" if value is None else f"{value:.3f}" for value in values]
