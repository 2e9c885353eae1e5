"""`toolfold search`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from toolfold._summary import few_words
from toolfold.answer import Answer, Hit
from toolfold.bridge import NEEDS_AT_MOST, Bridge
from toolfold.catalog import Catalog
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.setting_options import setting_option, setting_options
from toolfold.scope import Scope
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy import strategy_of


@click.command("search", short_help="Show what a model would find for a request")
@click.argument("query")
@options.live_catalog_option
@setting_option(
    Settings,
    "max_search_limit",
    "-k",
    "--limit",
    "limit",
    help="At most N with signatures; 1 gives one tool and no names behind it",
)
@options.scope_options
@setting_options(Settings, "ranker", into="given")
@click.option("--explain", is_flag=True, help="Say why each tool is there")
@options.live_config_option
@options.profile_option
@options.json_option
def command(
    query: str,
    catalog: str | None,
    limit: int | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    explain: bool,
    config: str | None,
    profile: str | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Show what a model would find for a request.

    Answers as tool_search does, over every tool of the catalog: those of your MCP servers,
    once `toolfold import` has found them. The likely tools come with their signatures, others
    by name, and behind them tools that may be needed too; hits that are probably wrong are
    called the nearest. Several needs stand with | between them.

    \b
    Examples:
      toolfold search 'open a pull request'
      toolfold search 'refund a customer | mail the receipt' --allow '@billing' --explain
      toolfold search 'send mail' --json | jq -r '.hits[].name'
    """
    if not any(character.isalnum() for character in query):
        raise click.UsageError("the query is blank")
    opened = options.open_tools(catalog, config, profile, enabled="on", **given)
    settings, found = opened.settings, opened.catalog(Scope(allow or ("*",), deny))
    bridge = replace(
        Bridge.over(found, settings), strategy=strategy_of(settings), memory=opened.memory()
    )
    asked = {"query": query, **({"limit": limit} if limit else {})}
    answer = bridge.resolve(bridge.names.search, asked, Session())
    assert isinstance(answer, Answer)
    needs = bridge.needs(query)
    by_need = {need: _of(need, answer.hits) for need in needs[:NEEDS_AT_MOST]}
    missed = [need for need, hits in by_need.items() if not hits]
    nearest = _nearest(found, settings, missed) if explain else {}
    if as_json:
        hits = [_hit(hit, bridge, explain=explain) for hit in answer.hits]
        first = next(iter(nearest.values()), None)
        options.print_json(
            {
                "query": query,
                "searched": len(found),
                "hits": hits,
                "weak": [need for need, own in by_need.items() if bridge.is_weak(own)],
                "missed": missed,
                "text": answer.text,
                "tokens": bridge.count(answer.text),
                **({"nearest": {"name": first.name, "score": first.score}} if first else {}),
            }
        )
        return
    for need, own in by_need.items():
        _print_need(need, own, bridge, explain=explain, is_one=len(needs) == 1)
    beside = [options.plain(hit.name) for hit in answer.hits if hit.shown == "companion"]
    if beside:
        say(f"{options.dim('may be needed too:')} {', '.join(beside)}")
    for need in missed:
        about = f" {options.plain(need)!r}" if len(needs) > 1 else ""
        say(f"no tool matches{about} ({len(found)} searched)", err=True)
        if need in nearest:
            hit, floor = nearest[need], settings.relevance_floor
            below = f"probability {hit.score:.2f}, below the floor of {floor:g}"
            say(f"nearest: {options.plain(hit.name)} ({below})", err=True)
    if len(needs) > len(by_need):
        say(f"{len(needs) - len(by_need)} further needs were not searched", err=True)


def _of(need: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits of one need, without companions."""
    return [hit for hit in hits if hit.need == need and hit.shown != "companion"]


def _nearest(found: Catalog, settings: Settings, needs: Sequence[str]) -> dict[str, Hit]:
    """Return what each of some needs would have found without the floor."""
    lowered = Bridge.over(found, replace(settings, relevance_floor=0.0))
    return {need: hit for need in needs for hit in lowered.search(need, 1)}


def _hit(hit: Hit, bridge: Bridge, *, explain: bool) -> dict[str, Any]:
    """Return a hit as a JSON object."""
    return {
        "name": hit.name,
        "source": hit.source,
        "need": hit.need,
        "shown": hit.shown,
        "score": round(hit.score, 6),
        "signature": hit.signature,
        "summary": hit.summary,
        **({"why": _why(hit, bridge)} if explain else {}),
    }


def _why(hit: Hit, bridge: Bridge) -> str:
    """Say why a hit or a companion is there."""
    if hit.shown == "companion":
        return "gives what a hit requires, or is of its source"
    return bridge.explain(hit)


def _print_need(
    need: str, hits: Sequence[Hit], bridge: Bridge, *, explain: bool, is_one: bool
) -> None:
    """Print the hits of one need, under its text where it is not the only one."""
    if bridge.is_weak(hits):
        about = "" if is_one else f" for {options.plain(need)!r}"
        say(f"no close match{about}; nearest:")
    elif hits and not is_one:
        say(f"{options.plain(need)}:")
    for place, hit in enumerate(hits, 1):
        in_full = hit.shown == "signature"
        words = "" if in_full else few_words(hit.tool.description, hit.tool.name)
        about = "" if in_full else f"  by name{f': {options.plain(words)}' if words else ''}"
        name = options.bold(options.plain(hit.name))
        say(f"{place}. {name}  {options.dim(f'{hit.score:.3f}{about}')}")
        if in_full:
            say(f"   {hit.signature}")
        if in_full and hit.summary:
            say(f"   {options.dim(hit.summary)}")
        if explain:
            say(f"   why: {options.plain(bridge.explain(hit))}")
