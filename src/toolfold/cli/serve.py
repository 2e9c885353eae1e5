"""`toolfold serve`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from toolfold.cli import options
from toolfold.cli.setting_options import setting_option, setting_options
from toolfold.config.serve_settings import ServeSettings
from toolfold.errors import ConfigError
from toolfold.settings import Settings

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig


@click.command("serve", short_help="Stand between an MCP client and all its servers")
@options.live_config_option
@click.option(
    "--http", metavar="HOST:PORT",
    help="Serve streamable HTTP at /mcp instead of standard input and output",
)  # fmt: skip
@click.option(
    "--profile", metavar="NAME",
    help="Serve one of the configuration's `profiles` on standard input and output; over HTTP "
    "each has a path of its own, /mcp/NAME",
)  # fmt: skip
@setting_option(Settings, "strategy", "--strategy", "--mode", "strategy")
@setting_options(ServeSettings, "lazy", "wait", "context_length", "watch", into="given")
@options.scope_options
@click.option(
    "--log", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to log on standard error",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Log more")
def command(
    config: str | None,
    http: str | None,
    profile: str | None,
    strategy: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    form: str,
    verbose: bool,
    given: dict[str, Any],
) -> None:
    """Stand between an MCP client and all its servers.

    The client sees three tools that find, describe and call all others, or, where they
    are few, all the tools themselves. On standard output there is protocol alone; logs
    are on standard error. Without tokens under `serve`, HTTP is for this machine only.

    \b
    Examples:
      toolfold serve
      toolfold serve --config .mcp.json --lazy
      toolfold serve --profile review
      toolfold serve --http 127.0.0.1:8765 --allow '@github' --deny '*delete*'
    """
    address = None if http is None else _address(http)
    if address is not None and profile is not None:
        raise click.UsageError(
            f"--profile is for standard input and output; over HTTP it is at /mcp/{profile}"
        )
    loaded = _loaded(config, strategy, given, profile)
    from toolfold.scope import Scope
    from toolfold.serve._run_gateway import How, serve_http, serve_stdio

    how = How(
        Scope(allow or ("*",), deny),
        verbose,
        "json" if form == "json" else "text",
        lambda: _loaded(config, strategy, given, profile),
    )
    if address is None:
        serve_stdio(loaded, how)
    else:
        serve_http(loaded, *address, how)


def _loaded(
    config: str | None, strategy: str | None, given: dict[str, Any], profile: str | None = None
) -> GatewayConfig:
    """Return the configuration, with the command line's own over it."""
    from toolfold.config.gateway_config import load_gateway

    loaded = load_gateway(config, strict=False, strategy=strategy).under(profile)
    if not loaded.has_tools:
        raise ConfigError(
            options.without_tools(loaded),
            hint="enable one of them"
            if loaded.disabled
            else "give --config FILE with `mcpServers`, `functions` or `openapi`, or run "
            "`toolfold import` to find your servers",
        )
    from toolfold.serve.token_store import with_kept_tokens

    return with_kept_tokens(replace(loaded, serve=replace(loaded.serve, **given)))


def _address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address; a bare port is on this machine."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--http is {text!r}: write HOST:PORT, such as 127.0.0.1:8765")
    return host, int(port)
