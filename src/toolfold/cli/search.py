"""`toolfold search`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from toolfold.bridge import Bridge
from toolfold.cli import options
from toolfold.cli.setting_options import setting_option, setting_options
from toolfold.scope import Scope
from toolfold.settings import Settings


@click.command("search", short_help="Rank the tools that answer a request")
@click.argument("query")
@options.live_catalog_option
@setting_option(
    Settings, "max_search_limit", "-k", "--limit", "limit", help="Return at most N tools"
)
@options.scope_options
@setting_options(Settings, "ranker", into="given")
@click.option("--explain", is_flag=True, help="Say why each tool is there")
@options.live_config_option
@options.json_option
def command(
    query: str,
    catalog: str | None,
    limit: int | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    explain: bool,
    config: str | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Rank the tools that answer a request.

    Ranks as tool_search does for one need, best first, over every tool of the catalog: those
    of your MCP servers, once `toolfold import` has found them.

    \b
    Examples:
      toolfold search 'open a pull request'
      toolfold search 'refund a customer' --allow '@billing' --explain
      toolfold search 'send mail' --json | jq -r '.hits[].name'
    """
    if not any(character.isalnum() for character in query):
        raise click.UsageError("QUERY is blank")
    opened = options.open_tools(catalog, config, enabled="on", **given)
    settings, found = opened.settings, opened.catalog(Scope(allow or ("*",), deny))
    bridge = Bridge.over(found, settings)
    hits = bridge.search(query, limit or settings.search_default_limit)
    nearest = None
    if explain and not hits:
        lowered = replace(settings, relevance_floor=0.0)
        nearest = next(iter(Bridge.over(found, lowered).search(query, 1)), None)
    if as_json:
        options.print_json(
            {
                "query": query,
                "searched": len(found),
                "hits": [
                    {
                        "name": hit.name,
                        "source": hit.source,
                        "score": round(hit.score, 6),
                        "signature": hit.signature,
                        "summary": hit.summary,
                        **({"why": bridge.explain(hit)} if explain else {}),
                    }
                    for hit in hits
                ],
                **({"nearest": {"name": nearest.name, "score": nearest.score}} if nearest else {}),
            }
        )
        return
    for place, hit in enumerate(hits, 1):
        click.echo(
            f"{place}. {options.bold(options.plain(hit.name))}  {options.dim(f'{hit.score:.3f}')}"
        )
        click.echo(f"   {hit.signature}")
        if hit.summary:
            click.echo(f"   {options.dim(hit.summary)}")
        if explain:
            click.echo(f"   why: {options.plain(bridge.explain(hit))}")
    if not hits:
        click.echo(f"no tool matches ({len(found)} searched)", err=True)
        if nearest:
            floor = settings.relevance_floor
            below = f"probability {nearest.score:.2f}, below the floor of {floor:g}"
            click.echo(f"nearest: {options.plain(nearest.name)} ({below})", err=True)
