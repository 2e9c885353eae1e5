"""`toolfold fold`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, get_args

import click

from toolfold.cli import options
from toolfold.fold import Folded, fold
from toolfold.scope import Scope
from toolfold.terminal import styled
from toolfold.tool import Shape
from toolfold.wire import read


@click.command("fold", short_help="Show what a model would see of a catalog")
@options.catalog_option
@click.option(
    "--context-length", metavar="N", type=click.IntRange(1), help="The model's window, in tokens"
)
@click.option("--strategy", type=click.Choice(["bridge", "stub"]), help="How to fold")
@click.option("--enabled", type=click.Choice(["auto", "on", "off"]), help="Whether to fold")
@click.option(
    "--listing", type=click.Choice(["off", "sources", "names"]), help="What the search tool lists"
)
@click.option(
    "--core", metavar="PATTERN", multiple=True, help="Never fold matching tools; repeatable"
)
@click.option(
    "--shape",
    type=click.Choice(get_args(Shape)),
    help="Write this wire shape  [default: as it came]",
)
@options.scope_options
@click.option("--diff", is_flag=True, help="Show which tools left the list and which entered")
@options.config_option
@options.json_option
def command(
    catalog: str | None,
    context_length: int | None,
    strategy: str | None,
    enabled: str | None,
    listing: str | None,
    core: tuple[str, ...],
    shape: Shape | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    diff: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Show what a model would see of a catalog.

    A catalog of plain records is written in OpenAI's chat shape: no model takes plain ones.

    \b
    Examples:
      toolfold fold --catalog tools.json --context-length 200000
      toolfold fold --catalog tools.json --context-length 131072 --listing names --json
      toolfold fold --enabled on --core read_file --diff
    """
    settings = options.open_settings(
        config, strategy=strategy, enabled=enabled, listing=listing, core=list(core) or None
    )
    entries = options.open_entries(catalog)
    if shape is None and all(entry.shape in ("plain", None) for entry in entries):
        shape = "openai-chat"
    folded = fold(
        [entry.raw for entry in entries],
        context_length=context_length,
        settings=settings,
        scope=Scope(allow or ("*",), deny),
        shape=shape,
    )
    if as_json:
        options.print_json(_object(folded, diff))
    elif diff:
        _print_diff(folded)
    else:
        _print(folded)


def _object(folded: Folded, diff: bool) -> dict[str, Any]:
    entered, left = _changes(folded)
    return {
        **asdict(folded.report),
        "guidance": folded.guidance,
        **({"entered": entered, "left": left} if diff else {}),
        "tools": folded.tools,
    }


def _changes(folded: Folded) -> tuple[list[str], list[str]]:
    seen = [tool.name for entry in read(folded.tools) for tool in entry.tools]
    if folded.report.strategy == "stub":
        hidden = [n for n in folded.bridge.folded.names if n not in folded.session.revealed]
    else:
        hidden = list(folded.bridge.folded.names)
    return [name for name in seen if folded.catalog.find(name) is None], hidden


def _print(folded: Folded) -> None:
    click.echo(str(folded.report))
    click.echo(json.dumps(folded.tools, indent=2, ensure_ascii=False))


def _print_diff(folded: Folded) -> None:
    entered, left = _changes(folded)
    mark = "~" if folded.report.strategy == "stub" else "-"
    for name in left:
        click.echo(styled(f"{mark} {name}", "yellow" if mark == "~" else "red"))
    for name in entered:
        click.echo(styled(f"+ {name}", "green"))
    click.echo(str(folded.report))
