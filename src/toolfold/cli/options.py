"""Options that several commands share: the same flag means the same thing everywhere."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolfold._bounds import one_line
from toolfold._suggestions import names_like
from toolfold._terminal import ERASE_LINE, can_move, fitted, styled, width_of
from toolfold.catalog import Catalog
from toolfold.cli.output import say
from toolfold.errors import ConfigError, UnknownToolError
from toolfold.invisible import shown
from toolfold.prompts import plural
from toolfold.scope import Scope
from toolfold.settings import Settings, load_settings
from toolfold.settings.words_file import with_words_beside
from toolfold.sources.catalog_file import load_catalog, read_entries
from toolfold.tool import Tool
from toolfold.wire import Entry

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.memory import Memory
    from toolfold.search import SearchMemory
    from toolfold.serve._one_shot import Listed
    from toolfold.sources.mcp.server_status import ServerStatus

__all__ = ["catalog_option", "config_option", "json_option", "scope_options"]

_LINE_LIMIT = 2_000

F = TypeVar("F", bound=Callable[..., Any])

catalog_option = click.option(
    "--catalog",
    metavar="FILE",
    help="Tools in JSON or JSON lines, any wire shape; - for standard input  "
    "[default: the bundled demo catalog]",
)
live_catalog_option = click.option(
    "--catalog",
    metavar="FILE",
    help="Tools in JSON or JSON lines, any wire shape; - for standard input  "
    "[default: the servers of the configuration, else the bundled demo catalog]",
)


def _named(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuse an empty name: an unset variable in a script must not mean another file."""
    if value is not None and not value.strip():
        raise click.UsageError("--config is blank: name a file, or leave it out")
    return value


config_option = click.option(
    "-c", "--config", metavar="FILE", callback=_named,
    help="Read this file instead of ./toolfold.yaml",
)  # fmt: skip
live_config_option = click.option(
    "-c", "--config", metavar="FILE", callback=_named,
    help="Settings and servers: toolfold.yaml, or any client's mcp.json  "
    "[default: ./toolfold.yaml, then the user's own]",
)  # fmt: skip
chat_config_option = click.option(
    "-c", "--config", metavar="FILE", callback=_named,
    help="Settings, and the servers and functions whose tools the agent has: toolfold.yaml, or "
    "any client's mcp.json  [default: the settings of ./toolfold.yaml]",
)  # fmt: skip
replay_config_option = click.option(
    "-c", "--config", metavar="FILE", callback=_named,
    help="Take the tools of the servers and functions that this file names, as `toolfold chat` "
    "does: toolfold.yaml, or any client's mcp.json",
)  # fmt: skip
profile_option = click.option(
    "--profile", metavar="NAME", help="Keep to one of the configuration's `profiles`"
)
memory_option = click.option(
    "--memory", metavar="FILE",
    help="Rank with what this memory holds, as `toolfold memory` shows it; it learns nothing",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object")


def read_memory(file: str | None) -> SearchMemory | None:
    """Return a memory that is asked and does not learn.

    Raises:
        ConfigError: There is no such file.
    """
    if file is None:
        return None
    from toolfold.memory import Memory

    path = Path(file).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"there is no memory `{file}`",
            hint="name the file that `toolfold memory show` names, or make one with "
            "`toolfold eval --history SPLIT --keep FILE`",
        )
    return Memory(path).of("")


def scope_options(function: F) -> F:
    """Add `--allow` and `--deny`."""
    deny = click.option(
        "--deny", metavar="PATTERN", multiple=True,
        help="Leave matching tools out; repeatable, wins over --allow",
    )  # fmt: skip
    allow = click.option(
        "--allow", metavar="PATTERN", multiple=True,
        help="Keep only matching tools; @NAME matches a toolset; repeatable",
    )  # fmt: skip
    return allow(deny(function))


def open_catalog(
    file: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None = None,
    profile: str | None = None,
) -> Catalog:
    """Return a catalog within a scope: of a file, of the live servers, or the bundled one."""
    return open_tools(file, config, profile).catalog(Scope(allow or ("*",), deny))


@dataclass(frozen=True, slots=True)
class OpenedTools:
    """What a command looks at, read once: the settings, and where the tools come from."""

    settings: Settings
    file: str | None
    """The catalog file, where one was named."""

    live: GatewayConfig | None
    """The configuration that names servers or functions, where there is one and no file."""

    def catalog(self, scope: Scope) -> Catalog:
        """Return the tools within a scope: of the file, of the servers, or the bundled ones."""
        if self.live is not None:
            return list_live(self.live, scope).catalog
        from toolfold.demo import demo_catalog

        found = demo_catalog() if self.file is None else load_catalog(self.file)
        return found.within(scope)

    def memory(self) -> Memory | None:
        """Return what searches led to here before, where that is kept and counts."""
        from toolfold.config import ServeSettings
        from toolfold.config.opened_store import store_of
        from toolfold.memory import memory_file, open_memory

        serve = ServeSettings() if self.live is None else self.live.serve
        own, folder, database = self.settings.memory, serve.state_folder, store_of(serve).database
        if database is None and not memory_file(own, folder).exists():
            return None
        memory = open_memory(own, folder, database=database)
        if memory is not None and database is not None:
            memory.flush()  # one search is all there is: it waits for what others learnt
        return memory

    def entries(self) -> list[Entry]:
        """Return the entries of the file, or of the bundled catalog, as they came in."""
        from toolfold.demo import CATALOG_FILE

        return read_entries(CATALOG_FILE if self.file is None else self.file)


def open_tools(
    file: str | None, config: str | None, profile: str | None = None, **arguments: Any
) -> OpenedTools:
    """Return what `--catalog` and `--config` name.

    Args:
        file: The catalog file.
        config: The configuration.
        profile: The profile of it to keep to.
        arguments: The command line's own settings, over those of the file.

    Raises:
        ConfigError: The configuration cannot be used, there is no such profile in it, or it has
            no tools though it was named or names servers. The demo's tools stand in only for a
            file of settings alone that was found, and standard error says so.
    """
    from toolfold.config import find_config, load_gateway

    if profile is not None and (file is not None or find_config(config) is None):
        raise ConfigError(
            f"there is no configuration that the profile {profile!r} could be of",
            hint="give --config FILE, and no --catalog",
        )
    if file is not None or find_config(config) is None:
        settings = load_settings(config, **arguments)
        if file is not None and file != "-":
            settings = with_words_beside(settings, Path(file))
        return OpenedTools(settings, file, None)
    found = load_gateway(config, strict=False, **arguments).under(profile)
    if found.has_tools:
        return OpenedTools(found.settings, None, found)
    _refuse_without_tools(found, is_named=bool(config or os.environ.get("TOOLFOLD_CONFIG")))
    say(f"`{found.path}` has settings alone: these are the demo's tools", err=True)
    return OpenedTools(found.settings, None, None)


def _refuse_without_tools(found: GatewayConfig, *, is_named: bool) -> None:
    """Refuse a configuration in whose place the demo must not stand."""
    if found.disabled:
        raise ConfigError(without_tools(found), hint="enable one, or give --catalog FILE")
    if is_named:
        raise ConfigError(
            without_tools(found),
            hint="write `mcpServers`, `functions` or `openapi` into it, or give --catalog FILE",
        )


def without_tools(found: GatewayConfig) -> str:
    """Return why a configuration has no tools, as a clause."""
    if found.path is None:
        return "there is no configuration that names servers"
    if found.disabled:
        return f"every server of `{found.path}` is disabled"
    return f"`{found.path}` names no servers, no functions and no APIs"


def list_live(config: GatewayConfig, scope: Scope, *, quiet: bool = False) -> Listed:
    """Ask the servers for their tools, saying on standard error how it goes.

    Quiet, it is left to the caller to say which failed, were it all of them.
    """
    from toolfold.serve._one_shot import list_tools

    with hushed():
        listed = list_tools(config, scope=scope, progress=show_progress, strict=not quiet)
    if not quiet:
        say_what_is_missing(listed.failed, listed.waiting)
        for note in listed.notes:
            say(f"warning: {plain(note)}", err=True)
    return listed


def say_what_is_missing(failed: Iterable[ServerStatus], waiting: int) -> None:
    """Say on standard error which servers could not be reached, and how many tools wait."""
    for status in failed:
        say(f"warning: {status.title} failed: {status.error}", err=True)
    if waiting:
        wait = "tool waits" if waiting == 1 else "tools wait"
        say(f"{waiting} {wait} for approval: see `toolfold trust`", err=True)


@contextmanager
def hushed() -> Generator[None]:
    """Leave it to the command to say what became of the servers."""
    is_verbose = logging.getLogger().isEnabledFor(logging.INFO)
    names = (
        "toolfold.serve",
        "toolfold.sources.mcp",
        "toolfold.sources.openapi",
        "toolfold.config",
        "mcp",
        "client",
        "httpx",
        "httpx2",
        "asyncio",
    )
    loggers = [] if is_verbose else [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def show_progress(status: ServerStatus, done: int, count: int) -> None:
    """Say on a terminal how many servers have started."""
    if can_move(sys.stderr):
        end = "" if done < count else ERASE_LINE
        line = f"{done} of {plural(count, 'server')}: {plain(status.name)} {status.state}"
        line = fitted(line, (width_of(sys.stderr) or 80) - 1)
        click.echo(f"{ERASE_LINE}{line}{end}", nl=False, err=True)


def open_settings(config: str | None, **arguments: Any) -> Settings:
    """Return the settings of a file, with the command line's own over them."""
    return load_settings(config, **arguments)


def tool_named(catalog: Catalog, name: str) -> Tool:
    """Return the tool that a person means by a name.

    Raises:
        UnknownToolError: There is none in the scope.
    """
    tool = catalog.meant(name)
    if tool is None:
        raise UnknownToolError(name, near=names_like(catalog, name))
    return tool


def print_json(value: Any) -> None:
    """Print one JSON object, readable on a terminal and one line in a pipe."""
    click.echo(json_text(value, 2 if sys.stdout.isatty() else None))


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in which what cannot be seen is written as `\\u…`.

    So no stranger's text moves the cursor or turns a line around, and half a character, which
    fits no encoding, can be written.
    """
    can_write = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, indent=indent, ensure_ascii=not can_write)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def plain(text: str) -> str:
    """Return a stranger's name or line as one line, what cannot be seen in it written out."""
    return one_line(shown(text), _LINE_LIMIT)


def bold(text: str) -> str:
    """Return text that stands out on a terminal."""
    return styled(text, "bold")


def dim(text: str) -> str:
    """Return text that stands back on a terminal."""
    return styled(text, "dim")
