"""`toolfold call`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import click

from toolfold._bounds import visible
from toolfold.cli import options
from toolfold.errors import ConfigError
from toolfold.prompts import CANNOT_ASK
from toolfold.scope import Scope
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig


@click.command("call", short_help="Call a tool of your MCP servers")
@click.argument("name")
@click.option(
    "--arg", "pairs", metavar="KEY=VALUE", multiple=True,
    help="An argument; numbers, lists and such are read where the tool wants them; repeatable",
)  # fmt: skip
@click.option(
    "--json-args", metavar="JSON", help="All arguments as one JSON object; - for standard input"
)
@options.scope_options
@options.live_config_option
@options.profile_option
@click.option("--yes", is_flag=True, help="Do not ask before a call that may destroy something")
@options.json_option
def command(
    name: str,
    pairs: tuple[str, ...],
    json_args: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    profile: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Call a tool of your MCP servers.

    The call goes the way that a client's goes: the same names, the same scope, the same
    checks of its arguments. Prints the result's text; exits with 1 where the tool fails.

    \b
    Examples:
      toolfold call time__get_current_time --arg timezone=Europe/Berlin
      toolfold call files__read_file --json-args '{"path": "notes.md"}' --json
    """
    from toolfold.serve._one_shot import CallError, call_tool

    arguments = _arguments(pairs, json_args)
    live = _live(config, profile)

    async def ask(message: str) -> bool:
        return await asyncio.to_thread(click.confirm, visible(message).replace("\r", ""), err=True)

    async def agree(message: str) -> bool:
        return True

    can_ask = ask if sys.stdin.isatty() else None
    with options.hushed():
        result = call_tool(
            live,
            name,
            arguments,
            scope=Scope(allow or ("*",), deny),
            progress=None if as_json else options.show_progress,
            ask=agree if yes else can_ask,
        )
    if as_json:
        options.print_json(result)
    elif CANNOT_ASK in json.dumps(result):
        raise CallError(
            f"{visible(name)} was not called: it may destroy something, and there is no terminal "
            "to ask at",
            hint="give --yes if it may run",
        )
    else:
        _print(result)
    sys.exit(1 if result.get("isError") else 0)


def _live(config: str | None, profile: str | None) -> GatewayConfig:
    from toolfold.config import load_gateway, missing_hint

    live = load_gateway(config, strict=False).under(profile)
    if not live.has_tools:
        hint = "enable one of them" if live.disabled else missing_hint()
        raise ConfigError(options.without_tools(live), hint=hint)
    return live


def _arguments(pairs: tuple[str, ...], whole: str | None) -> dict[str, Json]:
    arguments: dict[str, Json] = {}
    if whole is not None:
        text = sys.stdin.read() if whole == "-" else whole
        try:
            value: Json = json.loads(text)
        except ValueError:
            raise click.UsageError("--json-args is not JSON") from None
        if not is_object(value):
            raise click.UsageError("--json-args is no JSON object")
        arguments = dict(value)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--arg is {pair!r}: write KEY=VALUE")
        arguments[key] = value
    return arguments


def _print(result: dict[str, Json]) -> None:
    """Print a result for a person: its texts, and what else there is in a word."""
    content = result.get("content")
    blocks = [block for block in content if is_object(block)] if is_array(content) else []
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            click.echo(visible(text).replace("\r", ""), err=bool(result.get("isError")))
        else:
            kind = block.get("mimeType") or block.get("uri") or ""
            click.echo(visible(f"[{block.get('type')}] {kind}".rstrip()))
    if not blocks and result.get("structuredContent") is not None:
        click.echo(options.json_text(result["structuredContent"], 2))
