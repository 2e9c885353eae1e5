"""`toolfold run`."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.proxy import proxy_config_option, save_option, upstream_option
from toolfold.cli.setting_options import setting_option
from toolfold.settings import Settings

if TYPE_CHECKING:
    from toolfold.config.proxy_config import ProxyConfig

_NOT_FOUND = 127
_NOT_STARTED = 126


@click.command(
    "run",
    short_help="Run a program whose tools are folded on their way to its model",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@upstream_option
@proxy_config_option
@setting_option(Settings, "enabled")
@save_option
@click.option("-q", "--quiet", is_flag=True, help="Leave the line on tokens at the end out")
@click.option("-v", "--verbose", is_flag=True, help="Log every request on standard error")
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]...")
def command(
    upstream: str | None,
    config: str | None,
    enabled: str | None,
    save: str | None,
    quiet: bool,
    verbose: bool,
    command: tuple[str, ...],
) -> None:
    """Run a program whose tools are folded on their way to its model.

    Starts a proxy on a free port of this machine, tells the program of it by its environment
    or its arguments, runs it to its end, and exits as it does. Claude Code, Codex, opencode,
    goose and llm are known; any other program gets the variables that the SDKs of OpenAI and
    Anthropic read. No file of the program is changed. Without an upstream, requests go where
    the program would have sent them.

    \b
    Examples:
      toolfold run -- claude
      toolfold run -- codex exec 'list the open issues'
      toolfold run --upstream http://127.0.0.1:11434 -- claude --model qwen3
      toolfold run -- python agent.py
    """
    from toolfold.proxy._run_command import run_command
    from toolfold.proxy._run_proxy import ProxyOptions

    loaded, named = _loaded(command[0], upstream, config, enabled)
    if shutil.which(command[0]) is None and not Path(command[0]).exists():
        _fail_without(command[0])
    where = None if save is None else Path(save)
    # A program that draws its own screen must not be written over.
    is_mute = sys.stderr.isatty() and not verbose
    how = ProxyOptions(verbose, "text", where, quiet=not verbose, mute=is_mute)
    try:
        ended = run_command(command, loaded, how, named=named)
    except FileNotFoundError:
        _fail_without(command[0])
    except PermissionError:
        say(f"error: `{command[0]}` cannot be started", err=True)
        sys.exit(_NOT_STARTED)
    if not quiet:
        say(ended.summary, err=True)
    sys.exit(ended.code)


def _fail_without(program: str) -> NoReturn:
    """End as a shell does where there is no such program."""
    say(f"error: there is no program `{options.plain(program)}`", err=True)
    say("\nhint: install it, or give its path", err=True)
    sys.exit(_NOT_FOUND)


def _loaded(
    program: str, upstream: str | None, config: str | None, enabled: str | None
) -> tuple[ProxyConfig, bool]:
    """Return the configuration, and whether it names the upstreams."""
    from toolfold.config.proxy_config import load_proxy
    from toolfold.proxy.clients import client_of

    loaded = load_proxy(config, upstream=upstream, needs_upstream=False, enabled=enabled)
    if loaded.proxy.upstreams:
        return loaded, True
    own = client_of(program).upstreams(os.environ)
    return replace(loaded, proxy=replace(loaded.proxy, upstreams=own)), False
