"""`toolfold`: the group of commands, and how errors are shown."""

from __future__ import annotations

import keyword
import logging
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from toolfold._terminal import keep_writable, styled, wants_colour
from toolfold.cli.help import HelpContext, with_help
from toolfold.cli.output import say
from toolfold.errors import CatalogError, ConfigError, ToolfoldError

__all__ = ["main"]

_COMMANDS = {
    "ab": "Compare folded and unfolded tools with a live model",
    "call": "Call a tool of your MCP servers",
    "catalog": "Fill and search a catalog that several processes share",
    "chat": "Talk to an agent whose tools are folded",
    "check": "Look a catalog over for what would hurt",
    "demo": "Show folding on a bundled catalog of 207 tools",
    "describe": "Print the full definition of tools",
    "doctor": "Look the whole set-up over, and say what to do",
    "enrich": "Have a model write words by which tools are found",
    "eval": "Measure search on labelled requests",
    "fold": "Show what a model would see of a catalog",
    "import": "Take over the MCP servers of your clients",
    "inspect": "Look at a catalog in the browser",
    "install": "Enter toolfold in an MCP client",
    "list": "List the tools of a catalog, by source",
    "memory": "Look at what searches led to, carry it, and forget it",
    "proxy": "Stand between any client and its model, and fold its tools",
    "reload": "Have running gateways read their configuration again",
    "replay": "Run recorded conversations through any strategy",
    "run": "Run a program whose tools are folded on their way to its model",
    "search": "Rank the tools that answer a request",
    "serve": "Stand between an MCP client and all its servers",
    "servers": "Look at the servers of running gateways, and change them",
    "status": "Show the gateways and proxies that run",
    "store": "Make a database ready for what is shared",
    "tokens": "Make and revoke tokens for the gateway over HTTP",
    "trust": "Look at new and changed tools, and approve them",
}


class _ReaderLeftError(Exception):
    """Nobody reads standard output any more."""


class LazyGroup(click.Group):
    """Commands that are imported when they are run, so that help is quick."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, importing its module."""
        if cmd_name not in _COMMANDS:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        return with_help(import_module(f"toolfold.cli.{module}").command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant; a misspelt one gets a suggestion."""
        from difflib import get_close_matches

        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, _COMMANDS, n=1)
            hint = (
                f"did you mean `{near[0]}`?" if near else f"the commands are {', '.join(_COMMANDS)}"
            )
            raise ConfigError(f"no command is named `{name}`", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their one-line help, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; where whoever reads it has enough (`toolfold list | head`), end well."""
        try:
            returned = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still to be flushed at the end has nowhere to go either.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise _ReaderLeftError from None
        return returned

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, turning errors into `error:` and `hint:` on standard error."""
        keep_writable(sys.stdout, sys.stderr)
        try:
            returned = super().main(*args, **{**kwargs, "standalone_mode": False})
            if isinstance(returned, int):  # a command that ended with an exit code
                sys.exit(returned)
            return returned
        except click.exceptions.Abort:
            sys.exit(130)
        except click.exceptions.Exit as done:
            sys.exit(done.exit_code)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "toolfold"
            _fail(_clause(error.format_message()), f"see `{command} --help`", 2)
        except click.ClickException as error:
            _fail(_clause(error.format_message()), None, 1)
        except (ConfigError, CatalogError) as error:
            _fail(error.message, error.hint, 2)
        except ToolfoldError as error:
            _fail(error.message, error.hint, 1)
        except _ReaderLeftError:
            sys.exit(0)


def _clause(text: str) -> str:
    text = text.rstrip(".")
    # A name in capitals (`QUERY is blank`) stays what it is.
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _fail(message: str, hint: str | None, code: int) -> None:
    from toolfold.invisible import shown

    # A name that somebody else wrote may stand in either.
    say(f"{styled('error', 'red', 'bold')}: {shown(message)}", err=True)
    if hint:
        say(f"\n{styled('hint', 'cyan')}: {shown(hint)}", err=True)
    sys.exit(code)


@click.group(
    "toolfold",
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
    epilog="""\b
Examples:
  toolfold demo
  toolfold search 'open a pull request' --catalog tools.json
  toolfold fold --catalog tools.json --context-length 200000 --diff""",
)
@click.version_option(package_name="toolfold", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Say more on standard error")
@click.pass_context
def main(context: click.Context, verbose: bool) -> None:
    """Give any LLM agent a large tool catalog for the price of three tools."""
    if not wants_colour():
        context.color = False
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
