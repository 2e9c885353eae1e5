"""`toolfold servers`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from toolfold._terminal import columns, padded
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.status import server_line, state_folders
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.serve.control.asking import PATIENCE, ask, sockets
from toolfold.serve.control.messages import ControlError
from toolfold.serve.control.run_folder import pid_of
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from toolfold.config.served_profiles import ServedProfile
    from toolfold.setup.own_servers import ConfigChange

_STARTING_SECONDS = 60.0
_LOOK_EVERY = 0.1
_LISTED_WITHIN = 1.0
"""Seconds after which a server that is ready and has no tools is taken to have none."""


class Reached(NamedTuple):
    """A gateway that was asked."""

    place: Path
    pid: int
    result: dict[str, Json]


class AskedGateways:
    """The gateways that a command is for.

    Args:
        places: Their control sockets.
    """

    def __init__(self, places: list[Path]) -> None:
        self._places = places
        self.refused: list[tuple[int, ControlError]] = []
        """The processes that refused what was asked last, or did not answer, and why."""

    def ask(
        self, verb: str, arguments: Mapping[str, Json] | None = None, *, patience: float = PATIENCE
    ) -> list[Reached]:
        """Ask all of them, and return what those answer that do not refuse.

        Args:
            verb: What to ask.
            arguments: With what.
            patience: How long each is waited for, in seconds.

        Raises:
            ToolfoldError: None does; the refusal of one is told.
        """
        return asyncio.run(self._ask(verb, arguments or {}, patience))

    async def _ask(
        self, verb: str, arguments: Mapping[str, Json], patience: float
    ) -> list[Reached]:
        found: list[Reached] = []
        refusals = self.refused = []
        for place in self._places:
            try:
                result = await ask(place, verb, arguments, patience=patience)
            except ControlError as error:
                # A proxy has other verbs; a killed gateway has none.
                if error.code not in ("gone", "unknown_verb"):
                    refusals.append((pid_of(place), error))
            else:
                found.append(Reached(place, pid_of(place), result if is_object(result) else {}))
        if not found and refusals:
            pid, error = refusals[0]
            raise ToolfoldError(f"gateway {pid}: {error.message}")
        if not found:
            raise ToolfoldError(
                "no gateway runs that could be asked",
                hint="start one with `toolfold serve`, or name its --config or --state-dir; one "
                "that another user runs answers that user alone",
            )
        for pid, error in refusals:
            say(f"gateway {pid}: {options.plain(error.message)}", err=True)
        return found


def reaching(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the running gateways that its options name."""

    @wraps(function)
    def with_gateways(
        config: str | None, state_dir: str | None, pid: int | None, **others: Any
    ) -> None:
        places = sockets(state_folders(config, state_dir))
        own = [place for place in places if pid is None or pid_of(place) == pid]
        function(AskedGateways(own), **others)

    chosen = click.option("--pid", type=int, metavar="N", help="Only the gateway of this process")
    state = click.option(
        "--state-dir",
        metavar="DIR",
        help="Where the gateways remember things  [default: `serve.state_dir`]",
    )
    return options.config_option(state(chosen(options.json_option(with_gateways))))


@click.group("servers", short_help="Look at the servers of running gateways, and change them")
def command() -> None:
    """Look at the servers of running gateways, and change them.

    Every running `toolfold serve` of yours is asked; --pid names one. What is turned off is
    off until it is turned on again or the gateway ends: `disabled: true` in the configuration
    is what holds.

    \b
    Examples:
      toolfold servers list
      toolfold servers restart github
      toolfold servers disable github
      toolfold servers logs github --lines 100
      toolfold servers add time -- uvx mcp-server-time
    """


@command.command("list", short_help="Show how the servers stand")
@reaching
def list_command(running: AskedGateways, as_json: bool) -> None:
    """Show how the servers stand.

    \b
    Examples:
      toolfold servers list
      toolfold servers list --json | jq '.gateways[].servers[].state'
    """
    found = running.ask("servers.list")
    if as_json:
        options.print_json({"gateways": [{"pid": one.pid, **one.result} for one in found]})
        return
    for one in found:
        servers = _objects(one.result.get("servers"))
        names = [options.plain(str(server.get("name"))) for server in servers]
        widest = max(map(columns, names), default=0)
        say(options.bold(f"gateway {one.pid}"))
        for name, server in zip(names, servers, strict=True):
            say(f"  {padded(name, widest)}  {server_line(server)}")
        left_out = one.result.get("left_out")
        if is_array(left_out) and left_out:
            named = ", ".join(options.plain(str(name)) for name in left_out)
            say(options.dim(f"  left out by the configuration: {named}"))


@command.command("restart", short_help="End a server and start it anew")
@click.argument("name")
@reaching
def restart_command(running: AskedGateways, name: str, as_json: bool) -> None:
    """End a server and start it anew.

    Calls under way have `serve.drain` seconds to end; those that come meanwhile wait. The
    command ends when the server is there again, or has failed.

    \b
    Examples:
      toolfold servers restart github
    """
    found = running.ask("servers.restart", {"name": name})
    _report(_settled(found, name), name, as_json=as_json)


@command.command("enable", short_help="Turn a server on")
@click.argument("name")
@reaching
def enable_command(running: AskedGateways, name: str, as_json: bool) -> None:
    """Turn a server on that was turned off.

    \b
    Examples:
      toolfold servers enable github
    """
    found = running.ask("servers.enable", {"name": name})
    _report(_settled(found, name), name, as_json=as_json)


@command.command("disable", short_help="Turn a server off")
@click.argument("name")
@reaching
def disable_command(running: AskedGateways, name: str, as_json: bool) -> None:
    """Turn a server off: its tools are gone for every client.

    Calls under way have `serve.drain` seconds to end. It is on again when the gateway is
    started again, unless the configuration says `disabled: true`.

    \b
    Examples:
      toolfold servers disable github
    """
    _report(running.ask("servers.disable", {"name": name}), name, as_json=as_json)


@command.command("logs", short_help="Show the last lines of a server's standard error")
@click.argument("name")
@click.option(
    "--lines",
    metavar="N",
    type=click.IntRange(1, 200),
    default=50,
    show_default=True,
    help="How many",
)
@reaching
def logs_command(running: AskedGateways, name: str, lines: int, as_json: bool) -> None:
    """Show the last lines of a server's standard error, their secrets taken out.

    \b
    Examples:
      toolfold servers logs github
      toolfold servers logs github --lines 200 --json
    """
    found = running.ask("servers.logs", {"name": name, "lines": lines})
    if as_json:
        options.print_json({"gateways": [{"pid": one.pid, **one.result} for one in found]})
        return
    for one in found:
        if len(found) > 1:
            say(options.bold(f"gateway {one.pid}"))
        for line in _objects(one.result.get("lines")):
            text = options.plain(str(line.get("text")))
            say(f"{options.dim(str(line.get('at')))}  {text}")
        if error := one.result.get("error"):
            say(options.plain(f"{name}: {error}"), err=True)
        elif not one.result.get("lines"):
            say(options.plain(f"{name} has written nothing"), err=True)


@command.command("add", short_help="Put a server into the configuration, and reload")
@click.argument("name")
@click.argument("words", metavar="[COMMAND [ARGUMENT]...]", nargs=-1)
@click.option("--url", metavar="URL", help="The address of a server that is elsewhere")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True, help="A variable of it")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header to it")
@click.option("--replace", is_flag=True, help="Write a server of that name anew")
@options.config_option
@options.json_option
def add_command(
    name: str,
    words: tuple[str, ...],
    url: str | None,
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    replace: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Put a server into the configuration, and have running gateways reload.

    Everything else in the file stays as it is, and a copy is kept. Write secrets as
    references, such as `GITHUB_TOKEN='${GITHUB_TOKEN}'`.

    \b
    Examples:
      toolfold servers add time -- uvx mcp-server-time
      toolfold servers add docs --url https://docs.example.com/mcp
    """
    from toolfold.setup.own_servers import check_free, secrets_of, with_server

    if bool(words) == bool(url):
        raise click.UsageError("give a command behind `--`, or --url")
    if not name.strip():
        raise click.UsageError("the name is blank")
    entry: dict[str, Json] = {"command": words[0], "args": [*words[1:]]} if words else {"url": url}
    entry |= {"env": dict(map(_pair, variables))} if variables else {}
    entry |= {"headers": dict(map(_pair, headers))} if headers else {}
    file = _file(config)
    check_free(file, name)
    for place in secrets_of(entry):
        say(
            f"warning: {options.plain(place)} of {options.plain(repr(name))} looks like a secret, "
            "and stands in the file now: write it as a reference, such as '${NAME}'",
            err=True,
        )
    change = with_server(file, name, entry, replace=replace)
    _edit(change, config, as_json=as_json, started=name)
    _tell_problem(file, name)


def _tell_problem(file: Path, name: str) -> None:
    """Say why a server that was just written cannot be used, where that is known here."""
    from toolfold.config.gateway_config import load_gateway

    for server in load_gateway(file, strict=False).servers:
        if server.name == name and server.problem is not None:
            hint = f" ({server.problem.hint})" if server.problem.hint else ""
            say(f"warning: {options.plain(server.problem.message + hint)}", err=True)


@command.command("remove", short_help="Take a server out of the configuration, and reload")
@click.argument("name")
@options.config_option
@options.json_option
def remove_command(name: str, config: str | None, as_json: bool) -> None:
    """Take a server out of the configuration, and have running gateways reload.

    \b
    Examples:
      toolfold servers remove time
    """
    from toolfold.config.gateway_config import load_gateway
    from toolfold.setup.own_servers import without_server

    named: tuple[ServedProfile, ...] = ()
    with suppress(ConfigError):  # a file that cannot be used is perhaps mended so
        named = load_gateway(config, strict=False).profiles
    if theirs := [profile.name for profile in named if name in (profile.servers or ())]:
        raise ConfigError(
            f"the profile {theirs[0]!r} names the server {name!r}",
            hint=f"take it out of `profiles.{theirs[0]}.servers` first",
        )
    _edit(without_server(_file(config), name), config, as_json=as_json)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"{text!r} is not NAME=VALUE")
    return name, value


def _file(config: str | None) -> Path:
    from toolfold.config.gateway_config import find_config, user_config

    return find_config(config) or user_config()


def _edit(
    change: ConfigChange, config: str | None, *, as_json: bool, started: str | None = None
) -> None:
    """Write a change of the configuration, and have running gateways take it up.

    Args:
        change: What to write.
        config: The configuration's file, where it is not the usual one.
        as_json: Whether to print one object.
        started: The server that it has them start: how it stands is said.
    """
    from toolfold.setup.own_servers import write

    copy = write(change)
    asked = AskedGateways(sockets(state_folders(config)))
    told: list[Reached] = []
    problem: ToolfoldError | None = None
    try:
        told = asked.ask("reload", patience=30.0)
    except ToolfoldError as error:
        problem = error
    if as_json:
        options.print_json(
            {
                "config": str(change.path),
                "copy": None if copy is None else str(copy),
                "gateways": [{"pid": one.pid, **one.result} for one in told],
            }
        )
    else:
        say(f"wrote {options.plain(str(change.path))}")
        for one in told:
            if started is not None and started in _begun(one):
                [after] = _settled([one], started)
                say(f"gateway {one.pid}: {options.plain(started)} {_standing(after)}")
            else:
                say(f"gateway {one.pid} has taken it up")
    if problem is not None and asked.refused:
        raise problem
    if problem is not None and not as_json:
        say(options.plain(problem.message), err=True)


def _settled(found: list[Reached], name: str) -> list[Reached]:
    """Wait until a server has started and its tools are listed, or it has failed to."""
    until = time.monotonic() + _STARTING_SECONDS

    async def wait(one: Reached) -> Reached:
        listed_until: float | None = None
        while time.monotonic() < until:
            listed = await ask(one.place, "servers.list")
            servers = _objects(listed.get("servers")) if is_object(listed) else []
            own = [server for server in servers if server.get("name") == name]
            if own and own[0].get("state") != "starting":
                # Its tools come a moment after it, gathered with other changes.
                listed_until = listed_until or time.monotonic() + _LISTED_WITHIN
                is_empty = own[0].get("state") == "ready" and not own[0].get("tools")
                if not is_empty or time.monotonic() >= listed_until:
                    return one._replace(result={**one.result, **own[0]})
            await asyncio.sleep(_LOOK_EVERY)
        return one

    return [asyncio.run(wait(one)) for one in found]


def _report(found: list[Reached], name: str, *, as_json: bool) -> None:
    if as_json:
        options.print_json({"gateways": [{"pid": one.pid, **one.result} for one in found]})
    else:
        for one in found:
            say(f"gateway {one.pid}: {options.plain(name)} {_standing(one)}")
    if any(one.result.get("state") == "failed" for one in found):
        sys.exit(1)


def _standing(one: Reached) -> str:
    return server_line(one.result) if "tools" in one.result else str(one.result.get("state"))


def _begun(one: Reached) -> list[Json]:
    """Return the servers that a reload has started, or started anew."""
    servers = one.result.get("servers")
    named = [servers.get("added"), servers.get("changed")] if is_object(servers) else []
    return [name for names in named if is_array(names) for name in names]


def _objects(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if is_object(item)] if is_array(value) else []
