"""`toolfold list`."""

from __future__ import annotations

import click

from toolfold._bounds import first_sentence
from toolfold._json_values import compact
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.prompts import plural
from toolfold.tokens import estimate
from toolfold.wire import write


@click.command("list", short_help="List the tools of a catalog, by source")
@options.live_catalog_option
@options.scope_options
@options.live_config_option
@options.profile_option
@options.json_option
def command(
    catalog: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """List the tools of a catalog, by source.

    \b
    Examples:
      toolfold list --catalog tools.json
      toolfold list --config .mcp.json
      toolfold list --allow '@github' --json
      curl -s localhost:8000/tools | toolfold list --catalog -
    """
    found = options.open_catalog(catalog, allow, deny, config, profile)
    rows: list[dict[str, object]] = [
        {
            "name": tool.name,
            "source": tool.source,
            "summary": first_sentence(tool.description, 100),
            "tokens": estimate(compact(write(tool, "openai-chat"))),
        }
        for tool in found
    ]
    if as_json:
        options.print_json({"count": len(rows), "sources": dict(found.sources), "tools": rows})
        return
    by_source: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        by_source.setdefault(str(row["source"] or "no source"), []).append(row)
    for source, own in by_source.items():
        say(f"{options.bold(options.plain(source))} {options.dim(f'({len(own)})')}")
        for row in own:
            say(f"  {options.plain(str(row['name']))}  {options.dim(str(row['summary']))}")
    tokens = estimate(compact([write(tool, "openai-chat") for tool in found]))
    say(f"{plural(len(rows), 'tool')}, about {plural(tokens, 'token')}")
