"""`toolfold replay`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from toolfold.cli import options
from toolfold.cli._report_origin import made_now, typed_command, write_text
from toolfold.cli.output import print_table, say
from toolfold.cli.progress_bar import progress

if TYPE_CHECKING:
    from toolfold.catalog import Catalog
    from toolfold.evaluation.growth import Growth
    from toolfold.evaluation.replay import Replayed
    from toolfold.tool import Tool


@click.command("replay", short_help="Run recorded conversations through any strategy")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--strategy", "strategies", metavar="NAME", multiple=True,
    help="unfolded, bridge, stub, bridge+sure, bridge+prefetch or bridge+describe; repeatable  "
    "[default: all]",
)  # fmt: skip
@options.catalog_option
@click.option(
    "--tools", "tool_files", metavar="FILE", multiple=True,
    help="Run this Python file and take its tools, as `toolfold chat` does; repeatable",
)  # fmt: skip
@options.replay_config_option
@click.option(
    "--growth", metavar="FILE", help="Draw how a long conversation's prompt grows, as SVG"
)
@click.option(
    "--turns", metavar="N", type=click.IntRange(2, 500), default=30, show_default=True,
    help="With --growth: how long the conversation is",
)  # fmt: skip
@click.option(
    "--budget", metavar="N", type=click.IntRange(1),
    help="Tokens that searches' answers may take in a prompt  [default: the runtime's]",
)  # fmt: skip
@click.option("--page", metavar="FILE", help="Write a page with plots and the turns as HTML")
@options.memory_option
@options.json_option
def command(
    files: tuple[str, ...],
    strategies: tuple[str, ...],
    catalog: str | None,
    tool_files: tuple[str, ...],
    config: str | None,
    growth: str | None,
    turns: int,
    budget: int | None,
    page: str | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """Run recorded conversations through any strategy.

    FILE is a transcript of `toolfold chat` or `toolfold ab`, a request that `toolfold proxy
    --save` wrote, or a trace: JSON lines, described in the guide on the live A/B. Without
    FILE the bundled traces are run. No model is asked: one that follows the record finds its
    way through the tools it sees, and what that costs is counted. Tokens are characters over
    four; `new` are those that the request before did not have in common.

    A transcript of a chat has the bundled tools where --catalog, --tools and --config name no
    others. The strategies say how to fold; of a configuration only the tools are taken, and
    which of them are never folded.

    With --growth and no FILE, only the growth is drawn, over those tools or the bundled ones.

    \b
    Examples:
      toolfold replay
      toolfold replay talk.jsonl --tools tools.py
      toolfold replay talk.jsonl --config .mcp.json
      toolfold replay .toolfold/ab/20260302-090000/transcripts/*.json --strategy bridge
      toolfold replay --page replay.html
      toolfold replay --growth growth.svg --catalog tools.json
    """
    from toolfold.evaluation.ab.arms import ARMS, arms_named
    from toolfold.evaluation.replay import replay
    from toolfold.evaluation.trace import TRACES, read_trace
    from toolfold.runtime.agent import Limits

    chosen = arms_named(strategies or tuple(ARMS), "strategy")
    tools, core = _tools(catalog, tool_files, config)
    grown = _grown(growth, tools, turns, budget) if growth else None
    limits = Limits(discovery_tokens=budget) if budget else Limits()
    known = options.read_memory(memory)
    results: list[Replayed] = []
    if files or not growth:
        named = files or sorted(map(str, TRACES.glob("*.jsonl")))
        with progress(len(named) * len(chosen), "replayed", quiet=as_json) as bar:
            for file in named:
                trace = read_trace(file, tools, core)
                for arm in chosen:
                    results.append(replay(trace, arm, limits, known))
                    bar.update(1, options.plain(f"{trace.name} {arm.name}"))
    if page:
        _write_page(page, results, grown)
    if as_json:
        value = {"results": [result.as_json() for result in results]}
        options.print_json({**value, "growth": grown.as_json()} if grown else value)
        return
    if results:
        _print(results)
    if grown:
        _print_growth(grown)


def _tools(
    catalog: str | None, files: tuple[str, ...], config: str | None
) -> tuple[Catalog | None, tuple[str, ...] | None]:
    """Return the tools that take the place of a record's own, if any do, and their core."""
    if not files and not config:
        from toolfold.sources.catalog_file import load_catalog

        return (load_catalog(catalog), None) if catalog else (None, None)
    from toolfold.catalog import Catalog
    from toolfold.chat import open_tools
    from toolfold.scope import EVERYTHING, matches

    tools: list[Tool] = []
    core: list[str] = []
    if files or catalog:
        registry = open_tools(files, catalog)
        tools += registry.tools()
        core += registry.core
    if config:
        opened = options.open_tools(None, config)
        live = opened.catalog(EVERYTHING)
        taken = {tool.name for tool in tools}
        tools += [tool for tool in live if tool.name not in taken]
        core += [tool.name for tool in live if matches(tool, opened.settings.open_tools)]
    return Catalog(tools), tuple(core)


def _grown(file: str, catalog: Catalog | None, turns: int, budget: int | None) -> Growth:
    from toolfold.demo import demo_catalog
    from toolfold.evaluation.growth import growth, growth_svg

    grown = growth(catalog or demo_catalog(), turns=turns, budget=budget)
    write_text(file, growth_svg(grown))
    return grown


def _write_page(file: str, results: Sequence[Replayed], grown: Growth | None) -> None:
    from toolfold.evaluation.report.replay_page import replay_html

    write_text(file, replay_html(results, growth=grown, command=typed_command(), made=made_now()))


def _print(results: Sequence[Replayed]) -> None:
    from toolfold.evaluation.replay import totals

    whole = totals(results)
    shown = [*results, *whole] if len({result.trace for result in results}) > 1 else results
    heads = ["trace", "strategy", "met", "trips", "read", "new", "written", "largest"]
    rows = [
        [
            result.trace,
            result.strategy,
            f"{result.met}/{result.needs}",
            f"{result.round_trips:,}",
            f"{result.usage.prompt:,}",
            f"{result.usage.prompt - result.usage.cached:,}",
            f"{result.usage.completion:,}",
            f"{max(result.prompts, default=0):,}",
        ]
        for result in shown
    ]
    print_table([heads, *rows], words=2)
    by_name = {total.strategy: total for total in whole}
    plain = by_name.get("bridge")
    for name, what in (
        ("bridge+sure", "prefetch where it is sure"),
        ("bridge+prefetch", "prefetch"),
    ):
        ahead = by_name.get(name)
        if plain and ahead and plain.usage.prompt:
            saved = plain.round_trips - ahead.round_trips
            more = ahead.usage.prompt - plain.usage.prompt
            say(
                f"{what} saves {saved:,} of {plain.round_trips:,} round trips; tokens read: "
                f"{more / plain.usage.prompt:+.1%}"
            )


def _print_growth(grown: Growth) -> None:
    lines = grown.lines
    last = grown.folded.turns
    rows = [
        [str(turn), *(f"{line[turn - 1]:,}" for line in lines.values())]
        for turn in sorted({1, *range(5, last, 5), last})
    ]
    print_table([["turn", *lines], *rows], words=0)
    discovery = max(grown.folded.discoveries)
    say(
        f"at most {discovery:,} tokens of searches' answers in a prompt; the budget is "
        f"{grown.budget:,}"
    )
