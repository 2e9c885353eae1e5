"""`toolfold fold`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

import click

from toolfold._terminal import styled
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.setting_options import setting_options
from toolfold.fold import Folded, fold
from toolfold.scope import Scope
from toolfold.settings import Settings
from toolfold.tool import Shape
from toolfold.wire import read


@click.command("fold", short_help="Show what a model would see of a catalog")
@options.live_catalog_option
@click.option(
    "--context-length", metavar="N", type=click.IntRange(1), help="The model's window, in tokens"
)
@setting_options(Settings, "strategy", "enabled", "listing", "core", into="given")
@click.option(
    "--shape",
    type=click.Choice(get_args(Shape)),
    help="Write this wire shape  [default: as it came]",
)
@options.scope_options
@click.option("--diff", is_flag=True, help="Show which tools left the list and which entered")
@options.live_config_option
@options.profile_option
@options.json_option
def command(
    catalog: str | None,
    context_length: int | None,
    shape: Shape | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    diff: bool,
    config: str | None,
    profile: str | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Show what a model would see of a catalog.

    The catalog is a file, or the tools of the servers that the configuration names. A
    catalog of plain records is written in OpenAI's chat shape: no model takes plain ones.

    \b
    Examples:
      toolfold fold --catalog tools.json --context-length 200000
      toolfold fold --catalog tools.json --context-length 131072 --listing names --json
      toolfold fold --config .mcp.json --enabled on --diff
      toolfold fold --enabled on --core read_file --diff
    """
    scope = Scope(allow or ("*",), deny)
    opened = options.open_tools(catalog, config, profile, **given)
    tools: list[object]
    if opened.live is not None:
        tools = list(opened.catalog(scope))
    else:
        entries = opened.entries()
        tools = [entry.raw for entry in entries]
        if shape is None and all(entry.shape in ("plain", None) for entry in entries):
            shape = "openai-chat"
    folded = fold(
        tools,
        context_length=context_length,
        settings=opened.settings,
        scope=scope,
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
        "renamed": [renamed._asdict() for renamed in folded.report.renamed],
        "guidance": folded.guidance,
        **({"entered": entered, "left": left} if diff else {}),
        "tools": folded.tools,
    }


def _changes(folded: Folded) -> tuple[list[str], list[str]]:
    seen = [tool.name for entry in read(folded.tools) for tool in entry.tools]
    return [name for name in seen if folded.catalog.find(name) is None], list(folded.hidden)


def _print(folded: Folded) -> None:
    say(str(folded.report))
    click.echo(options.json_text(folded.tools, 2))


def _print_diff(folded: Folded) -> None:
    entered, left = _changes(folded)
    seen = {tool.name for entry in read(folded.tools) for tool in entry.tools}
    for name in left:
        stays = folded.catalog[name].wire_name in seen or name in seen
        say(styled(f"{'~' if stays else '-'} {options.plain(name)}", "yellow" if stays else "red"))
    for name in entered:
        say(styled(f"+ {options.plain(name)}", "green"))
    say(str(folded.report))
