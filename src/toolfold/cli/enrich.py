"""`toolfold enrich`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.cli import options
from toolfold.cli.models import Api, model_options, open_model
from toolfold.cli.output import say
from toolfold.cli.progress_bar import progress
from toolfold.errors import ToolfoldError
from toolfold.scope import Scope
from toolfold.settings.words_file import NO_FILE, WORDS_SUFFIX, words_beside

if TYPE_CHECKING:
    from toolfold.enrich import Author, EnrichReport, WordsFile
    from toolfold.evaluation.ab.prices import Prices
    from toolfold.runtime.clients.http_model import HttpModel
    from toolfold.runtime.model import Usage
    from toolfold.tool import Tool

_NAMED_AT_MOST = 5
_EACH_AT_MOST = 16


@click.command("enrich", short_help="Have a model write words by which tools are found")
@options.live_catalog_option
@model_options
@options.scope_options
@click.option(
    "--hard-to-find", is_flag=True, help="Only tools that `toolfold check` calls hard to find"
)
@click.option("--again", is_flag=True, help="Also tools whose words are there and not stale")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Ask about N tools at most")
@click.option(
    "--requests", metavar="N", type=click.IntRange(2, _EACH_AT_MOST), default=8,
    show_default=True, help="Requests for each tool",
)  # fmt: skip
@click.option(
    "--words", metavar="N", type=click.IntRange(0, _EACH_AT_MOST), default=8,
    show_default=True, help="Synonyms for each tool",
)  # fmt: skip
@click.option(
    "--concurrency", metavar="N", type=click.IntRange(1, 64), default=4, show_default=True,
    help="Have so many requests under way at once",
)  # fmt: skip
@click.option(
    "--out", metavar="FILE",
    help="Where the words go  [default: NAME.words.jsonl beside the catalog or configuration]",
)  # fmt: skip
@click.option("--prices", metavar="FILE", help="A price table to take in place of the bundled one")
@click.option(
    "--dry-run", is_flag=True, help="Say what would be asked and what it takes; ask nobody"
)
@options.live_config_option
@options.json_option
def command(
    catalog: str | None,
    model: str | None,
    base_url: str | None,
    api: Api,
    api_key_env: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    hard_to_find: bool,
    again: bool,
    limit: int | None,
    requests: int,
    words: int,
    concurrency: int,
    out: str | None,
    prices: str | None,
    dry_run: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Have a model write words by which tools are found.

    Asks a model of yours, one request a tool, what people say when they need it, and which
    other words there are for it. The answers go to a file of JSON lines, sorted by name, to be
    read over by you; search takes it in where it stands beside the catalog or the
    configuration. Tools that have words are not asked about again until they change. What was
    answered is kept as it comes: stopped or killed, the next run goes on from there.

    \b
    Examples:
      toolfold enrich --model claude-haiku-4-5 --api anthropic --dry-run
      toolfold enrich --model qwen3 --base-url http://localhost:8080/v1 --limit 20
      toolfold enrich --catalog tools.json --model claude-haiku-4-5 --api anthropic --hard-to-find
    """
    from toolfold.enrich import Author, WordsFile, to_write
    from toolfold.evaluation.ab.prices import load_prices

    table = load_prices(prices)
    opened = options.open_tools(catalog, config)
    file = WordsFile(_target(opened, out))
    found = opened.catalog(Scope(allow or ("*",), deny))
    todo = to_write(found, file.words, again=again)
    there = len(found) - len(todo)
    if hard_to_find:
        lost = _hard_to_find(found, opened, quiet=as_json)
        todo = [tool for tool in todo if tool.name in lost]
    todo = todo[:limit]
    plan = _Plan(file, len(found), there, todo, table, model or "", requests, words)
    if dry_run:
        plan.print(as_json=as_json)
        return
    if not todo:
        plan.print_nothing(as_json=as_json)
        return
    instead = "toolfold enrich --dry-run"
    client = open_model(model, base_url, api, api_key_env, instead=instead)
    report = _ask(plan, found, Author(client, requests, words), client, concurrency, quiet=as_json)
    plan.print_report(report, as_json=as_json)
    if report.error is not None:
        raise ToolfoldError(
            f"stopped after {len(report.written)} of {len(todo)} tools: {report.error}",
            hint="run it again when that is mended: what was written is kept",
        )


def _target(opened: options.OpenedTools, out: str | None) -> Path:
    """Return the file that the words go to."""
    if out is not None:
        return Path(out).expanduser()
    if opened.settings.enriched not in NO_FILE:
        return Path(opened.settings.enriched).expanduser()
    if opened.live is not None and opened.live.path is not None:
        return words_beside(opened.live.path)
    if opened.file is not None and opened.file != "-":
        return words_beside(Path(opened.file))
    return Path(f"{'demo' if opened.file is None else 'tools'}{WORDS_SUFFIX}")


def _hard_to_find(found: Catalog, opened: options.OpenedTools, *, quiet: bool) -> set[str]:
    from dataclasses import replace

    from toolfold._retrievability import retrievability

    # As `check` looks: without the floor, by the tools' own words alone.
    settings = replace(opened.settings, relevance_floor=0.0, enriched="off")
    bridge = Bridge.over(found, settings)
    with progress(len(found), "searching for every tool", quiet=quiet) as bar:
        looked = retrievability(list(found), bridge.search, progress=bar.update)
    return {item.name for item in looked if not item.is_found}


def _ask(
    plan: _Plan,
    found: Catalog,
    author: Author,
    client: HttpModel,
    concurrency: int,
    *,
    quiet: bool,
) -> EnrichReport:
    """Ask about the tools; whatever ends it, what was answered is in the file."""
    from toolfold.enrich import enrich

    with progress(len(plan.todo), "tools", quiet=quiet) as bar:

        def done(tool: Tool, usage: Usage) -> None:
            bar.update(1, f"{options.plain(tool.name)}  {plan.spent(usage)}")

        async def run() -> EnrichReport:
            try:
                return await enrich(
                    plan.todo, found, author, plan.file, concurrency=concurrency, progress=done
                )
            finally:
                await client.aclose()

        try:
            return asyncio.run(run())
        except KeyboardInterrupt:
            bar.clear()
            say("warning: stopped; what was answered is kept", err=True)
            raise click.exceptions.Exit(130) from None
        finally:
            plan.file.close()


class _Plan:
    """What is to be asked, what it takes, and how that is said."""

    def __init__(
        self,
        file: WordsFile,
        tools: int,
        there: int,
        todo: Sequence[Tool],
        prices: Prices,
        model: str,
        requests: int,
        words: int,
    ) -> None:
        from toolfold.enrich import estimated

        self.file = file
        self.todo = todo
        self._tools = tools
        self._there = there
        self._prices = prices
        self._model = model
        self._expected = estimated(todo, requests, words)

    def spent(self, usage: Usage) -> str:
        """Say how many tokens were used, and what they cost where that is known."""
        tokens = f"{usage.prompt + usage.completion:,} tokens"
        cost = self._prices.cost(self._model, usage.prompt, usage.cached, usage.completion)
        return tokens if cost is None else f"{tokens}, {_money(cost)}"

    def print(self, *, as_json: bool) -> None:
        """Say what would be asked."""
        own = self._expected
        cost = self._prices.cost(self._model, own.prompt, 0, own.completion)
        if as_json:
            options.print_json(
                {
                    "file": str(self.file.path),
                    "tools": self._tools,
                    "with_words": self._there,
                    "calls": own.calls,
                    "prompt_tokens": own.prompt,
                    "completion_tokens": own.completion,
                    "cost": cost,
                    "ask_about": [tool.name for tool in self.todo],
                }
            )
            return
        say(
            f"{_count(own.calls, 'call')} for {_count(self._tools, 'tool')} ({self._there} with "
            f"words), about "
            f"{own.prompt:,} tokens read and {own.completion:,} written"
            f"{'' if cost is None else f', {_money(cost)}'}"
        )
        names = [options.plain(tool.name) for tool in self.todo]
        more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
        if names:
            say(options.dim(f"{', '.join(names[:_NAMED_AT_MOST])}{more}"))
        say(f"the words would go to {options.plain(str(self.file.path))}")

    def print_nothing(self, *, as_json: bool) -> None:
        """Say that no tool is to be asked about; what a killed run left is put in place."""
        self.file.close()
        if as_json:
            self.print(as_json=True)
            return
        if self._there < self._tools:
            say("nothing to ask: no tool without words is hard to find")
            return
        say(f"nothing to ask: {self._there} of {self._tools} tools have words")

    def print_report(self, report: EnrichReport, *, as_json: bool) -> None:
        """Say what was done."""
        usage = report.usage
        if as_json:
            cost = self._prices.cost(self._model, usage.prompt, usage.cached, usage.completion)
            options.print_json(
                {
                    "file": str(self.file.path),
                    "tools": self._tools,
                    "asked": report.asked,
                    "written": sorted(report.written),
                    "unusable": sorted(report.unusable),
                    "failed": sorted(report.failed),
                    "refused_texts": report.refused,
                    "calls": report.calls,
                    "prompt_tokens": usage.prompt,
                    "completion_tokens": usage.completion,
                    "cost": cost,
                }
            )
            return
        say(
            f"words for {len(report.written)} of {_count(len(self.todo), 'tool')} in "
            f"{_count(report.calls, 'call')}, "
            f"{self.spent(usage)}"
        )
        if report.refused:
            say(f"{report.refused} texts were left out: markup, or another tool's name")
        for what, names in (("no usable answer", report.unusable), ("failed", report.failed)):
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                say(f"{what}: {options.plain(sorted(names)[0])}{more}", err=True)
        if report.written:
            say(f"read them over: {options.plain(str(self.file.path))}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _money(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 0.01 else f"${cost:.4f}"
