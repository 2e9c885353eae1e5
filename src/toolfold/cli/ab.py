"""`toolfold ab`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolfold._terminal import columns, padded
from toolfold.cli import options
from toolfold.cli.models import Api, model_options, open_model
from toolfold.cli.output import print_table, say
from toolfold.cli.progress_bar import progress
from toolfold.errors import ConfigError, ToolfoldError

if TYPE_CHECKING:
    from toolfold.evaluation.ab.measures import Measures
    from toolfold.evaluation.ab.prices import Prices
    from toolfold.evaluation.ab.run_record import Run
    from toolfold.evaluation.ab.runner import Plan, Task
    from toolfold.evaluation.ab.scenario import Scenario
    from toolfold.runtime.clients.http_model import HttpModel
    from toolfold.runtime.model import Model


@click.command("ab", short_help="Compare folded and unfolded tools with a live model")
@model_options
@click.option("--scripted", is_flag=True, help="Take a model that follows a plan: no key, no cost")
@click.option(
    "--scenario", "scenarios", metavar="NAME", multiple=True,
    help="Hold this scenario; repeatable  [default: all]",
)  # fmt: skip
@click.option(
    "--arms", metavar="NAMES", default="folded,unfolded", show_default=True,
    help="What to compare: folded, unfolded, stub, sure, prefetch; scripted, also bridge+describe",
)  # fmt: skip
@click.option(
    "--repeat", metavar="N", type=click.IntRange(1), default=1, show_default=True,
    help="Hold each scenario N times",
)  # fmt: skip
@click.option(
    "--profile", type=click.Choice(["standard", "small"]), default="standard", show_default=True,
    help="What the model's size asks for",
)  # fmt: skip
@click.option(
    "--concurrency", metavar="N", type=click.IntRange(1, 64), default=1, show_default=True,
    help="Make so many runs at once",
)  # fmt: skip
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(1), default=300, show_default=True,
    help="Give up on a run after so long",
)  # fmt: skip
@click.option("--prices", metavar="FILE", help="A price table to take in place of the bundled one")
@click.option(
    "--out", metavar="DIR", help="Where transcripts and report go  [default: .toolfold/ab/TIME]"
)
@click.option("--list", "listing", is_flag=True, help="List the scenarios and end")
@options.memory_option
@options.json_option
def command(
    model: str | None,
    base_url: str | None,
    api: Api,
    api_key_env: str | None,
    scripted: bool,
    scenarios: tuple[str, ...],
    arms: str,
    repeat: int,
    profile: str,
    concurrency: int,
    timeout: float,
    prices: str | None,
    out: str | None,
    listing: bool,
    memory: str | None,
    as_json: bool,
) -> None:
    """Compare folded and unfolded tools with a live model.

    Holds each scenario with the model in each arm, on tools that really run, in memory, and
    remember it: whether a run succeeds is read from what was done, not from what was said.
    A run that fails is recorded as such and the rest goes on; Ctrl-C keeps what was done.

    All scenarios in two arms come to about 80 requests, of which the unfolded ones carry
    every schema. Prices are example figures: check them, or give your own table.

    \b
    Examples:
      toolfold ab --scripted
      toolfold ab --model qwen3 --base-url http://localhost:8080/v1 --repeat 3
      toolfold ab --model claude-haiku-4-5 --api anthropic --arms folded,unfolded,prefetch
    """
    from toolfold.evaluation.ab.arms import arms_named
    from toolfold.evaluation.ab.prices import load_prices
    from toolfold.evaluation.ab.runner import Plan, tasks
    from toolfold.evaluation.ab.runner import scripted as scripted_model
    from toolfold.evaluation.ab.scenarios import scenarios_named
    from toolfold.runtime.profiles import profile_named

    chosen = scenarios_named(scenarios)
    if listing:
        _list(chosen, as_json=as_json)
        return
    if scripted and model is not None:
        raise click.UsageError("--scripted takes the place of --model: give one of them")
    chosen_arms = arms_named([name.strip() for name in arms.split(",") if name.strip()])
    if not chosen_arms:
        raise ConfigError("`--arms` names none", hint="write, say, --arms folded,unfolded")
    if not scripted and (planned := [arm.name for arm in chosen_arms if arm.habits]):
        raise ConfigError(
            f"the arm {planned[0]!r} is for a model that follows a plan",
            hint="leave it out, or add --scripted",
        )
    table = load_prices(prices)
    client = (
        None
        if scripted
        else open_model(model, base_url, api, api_key_env, instead="toolfold ab --scripted")
    )
    make: Callable[[Task], Model] = scripted_model() if client is None else (lambda _: client)
    plan = Plan(
        make, profile_named(profile), timeout, concurrency, memory=options.read_memory(memory)
    )
    todo = list(tasks(chosen, chosen_arms, repeat))
    folder = Path(out) if out else _default_folder()
    record = _Record(folder, table, todo, api_key_env, is_scripted=scripted)
    whole = _hold(todo, plan, record, client, quiet=as_json)
    record.write_report()
    _print(record, as_json=as_json)
    if not whole:
        raise click.exceptions.Exit(130)
    if record.measures and all(run.error for run in record.measures):
        raise ToolfoldError(
            f"no run was completed: {record.measures[0].error}",
            hint="check the model's name, its address and the key",
        )


class _Record:
    """What was measured so far, and where it is written."""

    def __init__(
        self,
        folder: Path,
        prices: Prices,
        todo: Sequence[Task],
        key: str | None,
        *,
        is_scripted: bool,
    ) -> None:
        from toolfold.evaluation.ab.run_record import make_folder
        from toolfold.redact import Redactor

        self.folder = folder
        self._places = {(t.scenario.name, t.arm.name, t.repeat): i for i, t in enumerate(todo)}
        self._made: dict[int, Measures] = {}
        self._prices = prices
        self._is_scripted = is_scripted
        # The key's variable may be named like no secret.
        given = {"GIVEN_KEY": os.environ.get(key or "", "")}
        self._redactor = Redactor.from_environment({**os.environ, **given})
        _written(lambda: make_folder(folder), folder)

    @property
    def measures(self) -> list[Measures]:
        """The runs that were made, in the order in which they were to be."""
        return [self._made[place] for place in sorted(self._made)]

    def add(self, task: Task, run: Run) -> None:
        """Measure a run and write its transcript."""
        from toolfold.evaluation.ab.measures import measured
        from toolfold.evaluation.ab.run_record import save
        from toolfold.evaluation.ab.runner import catalog_of

        redact = self._redactor.redact
        made = measured(task.scenario, run, catalog_of(task.scenario), self._prices)
        made = replace(
            made,
            problems=tuple(map(redact, made.problems)),
            invented=tuple(map(redact, made.invented)),
            error=None if made.error is None else redact(made.error),
        )
        self._made[self._places[run.scenario, run.arm, run.repeat]] = made
        _written(lambda: save(self.folder, run, made.as_json(), self._redactor), self.folder)

    def write_report(self) -> None:
        """Write the page and the numbers."""
        from toolfold.cli._report_origin import made_now, typed_command
        from toolfold.evaluation.report.ab_page import report_html

        page = report_html(
            self.measures,
            title=f"toolfold ab: folded and unfolded tools with {self.model}",
            notes=(_SCRIPTED_NOTE, *_NOTES) if self._is_scripted else _NOTES,
            command=typed_command(),
            made=made_now(),
            transcript=self._transcript,
        )
        numbers = json.dumps(self.as_json(), ensure_ascii=False, indent=1)
        for name, text in (("report.html", page), ("results.json", numbers)):
            file = self.folder / name
            _written(lambda f=file, t=text: f.write_bytes(t.encode("utf-8", "replace")), file)

    def _transcript(self, run: Measures) -> Run | None:
        """Return what was said in a run as it was written, so without its secrets."""
        from toolfold.evaluation.ab.run_record import load

        try:
            return load(self.folder, run.label)
        except (OSError, ToolfoldError):
            return None

    @property
    def model(self) -> str:
        """The model's name."""
        return next((run.model for run in self._made.values()), "no model")

    def as_json(self) -> dict[str, object]:
        """Return all that was measured."""
        from toolfold.evaluation.ab.measures import rows

        return {
            "model": self.model,
            "folder": str(self.folder),
            "rows": [row.as_json() for row in rows(self.measures)],
            "runs": [run.as_json() for run in self.measures],
        }


_SCRIPTED_NOTE = (
    "The model follows a plan: these figures are what a competent model pays, the same every "
    "time. They say nothing about yours."
)
_NOTES = (
    "Numbers are means over the runs of a scenario in an arm; runs that ended early count as "
    "failures and are left out of the other means.",
    "Costs are by the price table that was given; the bundled one has example figures.",
)


def _written(write: Callable[[], object], where: Path) -> None:
    try:
        write()
    except OSError as error:
        raise ConfigError(
            f"cannot write `{where}`: {error.strerror}", hint="give another folder with --out"
        ) from None


def _default_folder() -> Path:
    return Path(".toolfold") / "ab" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def _hold(
    todo: Sequence[Task],
    plan: Plan,
    record: _Record,
    client: HttpModel | None,
    *,
    quiet: bool,
) -> bool:
    """Make the runs; return whether all were made."""
    from toolfold.evaluation.ab.runner import hold

    with progress(len(todo), "runs", quiet=quiet) as bar:

        def done(task: Task, run: Run) -> None:
            record.add(task, run)
            bar.update(1, f"{task.scenario.name} {task.arm.name}")

        async def run() -> None:
            try:
                await hold(todo, plan, done)
            finally:
                if client is not None:
                    await client.aclose()

        try:
            asyncio.run(run())
        except KeyboardInterrupt:
            made = f"{len(record.measures)} of {len(todo)} runs"
            bar.clear()
            say(f"warning: stopped after {made}", err=True)
            return False
    return True


def _list(scenarios: Sequence[Scenario], *, as_json: bool) -> None:
    if as_json:
        listed = [{"name": s.name, "about": s.about, "turns": len(s.turns)} for s in scenarios]
        options.print_json({"scenarios": listed})
        return
    width = max(columns(scenario.name) for scenario in scenarios)
    for scenario in scenarios:
        say(f"{padded(scenario.name, width)}  {options.dim(scenario.about)}")


def _print(record: _Record, *, as_json: bool) -> None:
    from toolfold.evaluation.ab.measures import rows
    from toolfold.evaluation.report.ab_page import COLUMNS

    if as_json:
        options.print_json(record.as_json())
    else:
        heads = ["scenario", "arm", *(head for head, _, _ in COLUMNS)]
        table = [
            [row.scenario, row.arm, *(cell(row) for _, _, cell in COLUMNS)]
            for row in rows(record.measures)
        ]
        print_table([heads, *table], words=2)
    early = [run for run in record.measures if run.error]
    if early:
        count = f"{len(early)} of {len(record.measures)} runs ended early"
        say(f"warning: {count}: {early[0].error}", err=True)
    for run in record.measures:
        if run.problems and not run.error:
            say(f"{run.label}: {'; '.join(run.problems)}", err=True)
    say(f"report: {record.folder / 'report.html'}", err=True)
