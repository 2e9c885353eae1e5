"""`toolfold proxy`."""

from __future__ import annotations

from pathlib import Path

import click

from toolfold.cli.setting_options import setting_option
from toolfold.config.proxy_settings import ProxySettings
from toolfold.settings import Settings

proxy_config_option = click.option(
    "-c", "--config", metavar="FILE",
    help="Settings, and `proxy` with its upstreams: toolfold.yaml  [default: ./toolfold.yaml, "
    "then the user's own]",
)  # fmt: skip
upstream_option = click.option(
    "--upstream", metavar="URL",
    help="The model server that requests go to, as http://127.0.0.1:11434; in place of the "
    "configuration's",
)  # fmt: skip
save_option = click.option(
    "--save", metavar="DIR",
    help="Keep requests and answers in this folder, secrets taken out, for `toolfold replay`",
)  # fmt: skip
store_option = setting_option(ProxySettings, "store")


@click.command("proxy", short_help="Stand between any client and its model, and fold its tools")
@upstream_option
@click.option(
    "--listen", metavar="HOST:PORT",
    help="Where to listen  [default: 127.0.0.1:8788]",
)  # fmt: skip
@proxy_config_option
@setting_option(Settings, "enabled")
@store_option
@save_option
@click.option(
    "--log", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="ProxyOptions to log on standard error",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Log more")
def command(
    upstream: str | None,
    listen: str | None,
    config: str | None,
    enabled: str | None,
    store: str | None,
    save: str | None,
    form: str,
    verbose: bool,
) -> None:
    """Stand between any client and its model, and fold its tools.

    Give the client this address as its base URL. OpenAI chat completions, OpenAI Responses
    and Anthropic Messages are folded, streamed or not; everything else passes as it comes. The
    upstream must speak what the client speaks. Keys go to their upstream and are not kept.
    Without tokens under `proxy`, it is for this machine only.

    \b
    Examples:
      toolfold proxy --upstream http://127.0.0.1:11434
      toolfold proxy --upstream https://api.openai.com/v1 --listen 127.0.0.1:9000
      toolfold proxy --config toolfold.yaml --save traffic
    """
    from dataclasses import replace

    from toolfold.config.proxy_config import load_proxy
    from toolfold.proxy._run_proxy import ProxyOptions, run_proxy

    loaded = load_proxy(config, upstream=upstream, listen=listen, enabled=enabled)
    if store is not None:
        loaded = replace(loaded, proxy=replace(loaded.proxy, store=store))
    where = None if save is None else Path(save)
    run_proxy(loaded, ProxyOptions(verbose, "json" if form == "json" else "text", where))
