"""`toolfold search`."""

from __future__ import annotations

import click

from toolfold.cli import options
from toolfold.fold import fold
from toolfold.search import RANKERS


@click.command("search", short_help="Rank the tools that answer a request")
@click.argument("query")
@options.catalog_option
@click.option("-k", "--limit", metavar="N", type=click.IntRange(1, 50), help="Return at most N tools")
@options.scope_options
@click.option("--ranker", type=click.Choice(sorted(RANKERS)), help="How to rank")
@click.option("--explain", is_flag=True, help="Say why each tool is there")
@options.config_option
@options.json_option
def command(
    query: str,
    catalog: str | None,
    limit: int | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    ranker: str | None,
    explain: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Rank the tools that answer a request.

    Prints what an agent would get from tool_search for QUERY, best first.

    \b
    Examples:
      toolfold search 'open a pull request'
      toolfold search 'refund a customer' --allow '@billing' --explain
      toolfold search 'send mail' --json | jq -r '.hits[].name'
    """
    settings = options.open_settings(config, ranker=ranker, enabled="on")
    found = options.open_catalog(catalog, allow, deny)
    folded = fold(found, settings=settings)
    hits = folded.bridge.search(query, limit or settings.search_default_limit)
    if as_json:
        options.print_json(
            {
                "query": query,
                "searched": len(folded.bridge.folded),
                "hits": [
                    {
                        "name": hit.name,
                        "source": hit.source,
                        "score": round(hit.score, 6),
                        "signature": hit.signature,
                        "summary": hit.summary,
                        **({"why": folded.bridge.explain(hit)} if explain else {}),
                    }
                    for hit in hits
                ],
            }
        )
        return
    for place, hit in enumerate(hits, 1):
        click.echo(f"{place}. {options.bold(hit.name)}  {options.dim(f'{hit.score:.3f}')}")
        click.echo(f"   {hit.signature}")
        if hit.summary:
            click.echo(f"   {options.dim(hit.summary)}")
        if explain:
            click.echo(f"   why: {folded.bridge.explain(hit)}")
    if not hits:
        click.echo(f"no tool matches ({len(folded.bridge.folded)} searched)", err=True)
