"""`toolfold catalog`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from toolfold.cli import options
from toolfold.cli.output import print_table, say
from toolfold.cli.progress_bar import progress
from toolfold.errors import ConfigError
from toolfold.scope import Scope

if TYPE_CHECKING:
    from toolfold.shared import SharedCatalog
    from toolfold.tool import Tool

_NAMES_SHOWN = 10

_MANY = 20_000
"""From how many tools on a push is prepared in several processes, each of which has to start."""

_WORKERS_AT_MOST = 8
"""More than so many wait for the database."""

store_option = click.option(
    "--store", metavar="ADDRESS", default="",
    help="The database, as libpq takes it  [default: PGHOST, PGDATABASE and the like]",
)  # fmt: skip
tenant_option = click.option(
    "--tenant", metavar="NAME", default="default", show_default=True, help="Whose catalog it is"
)


def opened(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name a shared catalog."""
    return store_option(tenant_option(function))


@click.group("catalog", short_help="Fill and search a catalog that several processes share")
def command() -> None:
    """Fill and search a catalog that several processes share.

    It stands in PostgreSQL with pgvector, made ready by `toolfold store migrate`. Any number of
    processes search it, and none of them holds it.

    \b
    Examples:
      toolfold catalog push --catalog tools.json --store postgresql://app@db/tools
      toolfold catalog diff --catalog tools.json
      toolfold catalog search 'open a pull request' --allow '@github'
    """


@command.command("push", short_help="Write tools: what is new or changed")
@options.live_catalog_option
@options.live_config_option
@opened
@click.option("--prune", is_flag=True, help="Take out what these sources do not have any more")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes that prepare what is written  [default: 1; of many tools, as many as cores]",
)
@options.json_option
def push(
    catalog: str | None,
    config: str | None,
    store: str,
    tenant: str,
    prune: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """Write tools: what is new or changed; the rest is not touched.

    \b
    Examples:
      toolfold catalog push --catalog tools.json
      toolfold catalog push --prune
    """
    tools = _tools(catalog, config)
    with _shared(store, tenant) as shared, progress(len(tools), "written", quiet=as_json) as bar:
        done = 0

        def told(count: int, _: int) -> None:
            nonlocal done
            bar.update(count - done)
            done = count

        pushed = shared.push(
            tools, prune=prune, workers=workers or _workers(len(tools)), progress=told
        )
    if as_json:
        options.print_json(pushed._asdict())
        return
    for name in pushed.refused[:_NAMES_SHOWN]:
        say(options.plain(f"warning: the database cannot hold {name!r}: rename it"), err=True)
    say(
        f"{pushed.added} added, {pushed.changed} changed, {pushed.removed} removed,"
        f" {pushed.same} as they were"
    )


@command.command("diff", short_help="Show what a push would change")
@options.live_catalog_option
@options.live_config_option
@opened
@options.json_option
def diff(catalog: str | None, config: str | None, store: str, tenant: str, as_json: bool) -> None:
    """Show what a push would change, and change nothing.

    \b
    Examples:
      toolfold catalog diff --catalog tools.json
    """
    tools = _tools(catalog, config)
    with _shared(store, tenant) as shared:
        found = shared.diff(tools)
    named = {
        "added": [tool.name for tool in found.added],
        "changed": [tool.name for tool in found.changed],
        "gone": found.gone,
    }
    if as_json:
        options.print_json({**named, "same": found.same})
        return
    for what, names in named.items():
        for name in names[:_NAMES_SHOWN]:
            say(f"{what:8} {options.plain(name)}")
        if len(names) > _NAMES_SHOWN:
            say(f"{what:8} … and {len(names) - _NAMES_SHOWN} more")
    say(", ".join(f"{len(names)} {what}" for what, names in named.items()) + f", {found.same} same")


@command.command("list", short_help="List the sources of the catalog")
@opened
@options.json_option
def list_(store: str, tenant: str, as_json: bool) -> None:
    """List the sources of the catalog.

    \b
    Examples:
      toolfold catalog list --tenant acme
    """
    with _shared(store, tenant) as shared:
        sources = shared.sources()
    if as_json:
        options.print_json({"sources": [source._asdict() for source in sources]})
        return
    if not sources:
        say("the catalog is empty; `toolfold catalog push` fills it", err=True)
        return
    rows = [[options.plain(source.name or "(none)"), f"{source.tools:,}"] for source in sources]
    print_table([["source", "tools"], *rows], words=1)


@command.command("search", short_help="Search the catalog")
@click.argument("query")
@opened
@click.option(
    "-k", "--limit", metavar="N", default=5, show_default=True, type=click.IntRange(1, 50),
    help="At most N tools",
)  # fmt: skip
@options.scope_options
@options.json_option
def search(
    query: str,
    store: str,
    tenant: str,
    limit: int,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    as_json: bool,
) -> None:
    """Search the catalog, with the probability that each tool serves.

    \b
    Examples:
      toolfold catalog search 'open a pull request'
    """
    if not any(character.isalnum() for character in query):
        raise click.UsageError("the query is blank")
    with _shared(store, tenant) as shared:
        hits = shared.search(query, limit, scope=Scope(allow or ("*",), deny))
    if as_json:
        found = [{"name": hit.tool.name, "score": hit.score} for hit in hits]
        options.print_json({"query": query, "hits": found})
        return
    if not hits:
        say("no tool of this catalog answers that")
    for hit in hits:
        say(f"{hit.score:.2f}  {options.plain(hit.tool.name)}")


@command.command("remove", short_help="Take tools out by name")
@click.argument("names", nargs=-1, required=True)
@opened
@options.json_option
def remove(names: tuple[str, ...], store: str, tenant: str, as_json: bool) -> None:
    """Take tools out by name.

    \b
    Examples:
      toolfold catalog remove github__delete_repo
    """
    with _shared(store, tenant) as shared:
        count = shared.remove(names)
    if as_json:
        options.print_json({"removed": count})
    else:
        say(f"{count} removed")


def _workers(count: int) -> int:
    """Return how many processes prepare a push of so many tools."""
    return min(os.cpu_count() or 1, _WORKERS_AT_MOST) if count >= _MANY else 1


def _tools(catalog: str | None, config: str | None) -> list[Tool]:
    from toolfold.config import missing_hint

    opened = options.open_tools(catalog, config)
    if opened.file is None and opened.live is None:
        # The demo's tools are for trying things out, and what others share is no place for that.
        raise ConfigError(
            "there is no configuration that names servers",
            hint=f"give --catalog FILE, or {missing_hint()}",
        )
    return list(opened.catalog(Scope()).tools)


def _shared(address: str, tenant: str, **how: Any) -> SharedCatalog:
    from toolfold.shared import SharedCatalog

    return SharedCatalog(address, tenant=tenant, **how)
