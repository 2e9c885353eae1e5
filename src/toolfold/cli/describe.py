"""`toolfold describe`."""

from __future__ import annotations

from typing import Any

import click

from toolfold._bounds import visible
from toolfold._signature import signature
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.scope import Scope
from toolfold.tool import Tool


@click.command("describe", short_help="Print the full definition of tools")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.live_catalog_option
@options.scope_options
@options.live_config_option
@options.profile_option
@options.json_option
def command(
    names: tuple[str, ...],
    catalog: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Print the full definition of tools.

    \b
    Examples:
      toolfold describe create_calendar_event
      toolfold describe create_issue --catalog tools.json --json
    """
    opened = options.open_tools(catalog, config, profile)
    found = opened.catalog(Scope(allow or ("*",), deny))
    tools = [opened.settings.applied(options.tool_named(found, name)) for name in names]
    if as_json:
        options.print_json({"tools": [_record(tool) for tool in tools]})
        return
    for i, tool in enumerate(tools):
        if i:
            say()
        say(options.bold(signature(tool)))
        if tool.source:
            say(options.dim(f"from {options.plain(tool.source)}"))
        description = visible(tool.description).replace("\r", "").strip()
        say(f"\n{description}\n" if description else "")
        click.echo(options.json_text(tool.parameters, 2))


def _record(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "source": tool.source,
        "description": tool.description,
        "parameters": tool.parameters,
        "signature": signature(tool),
        "policy": tool.policy,
        "annotations": tool.annotations,
    }
