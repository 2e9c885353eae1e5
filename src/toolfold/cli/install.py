"""`toolfold install`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from toolfold.setup.client_programs import ClientProgram, Machine
    from toolfold.setup.installing import Change


@click.command("install", short_help="Enter toolfold in an MCP client")
@click.argument("client", required=False)
@click.option("--list", "only_list", is_flag=True, help="Show the clients and write nothing")
@click.option(
    "--only", is_flag=True,
    help="Take the client's other servers out; all must be in toolfold's configuration",
)  # fmt: skip
@click.option("--undo", is_flag=True, help="Take toolfold's entry out again")
@click.option("--dry-run", is_flag=True, help="Print what would change and write nothing")
@click.option(
    "-c", "--config", metavar="FILE",
    help="The configuration to serve  [default: ./toolfold.yaml, then the user's own]",
)  # fmt: skip
@click.option(
    "--name", metavar="NAME", default="toolfold", show_default=True, help="The entry's name"
)
@click.option(
    "--scope", type=click.Choice(["user", "project"]), default="user", show_default=True,
    help="Your own file, or that of the folder you are in",
)  # fmt: skip
@options.json_option
def command(
    client: str | None,
    only_list: bool,
    only: bool,
    undo: bool,
    dry_run: bool,
    config: str | None,
    name: str,
    scope: Literal["user", "project"],
    as_json: bool,
) -> None:
    """Enter toolfold in an MCP client.

    Writes the entry that starts `toolfold serve` into the client's file. Everything else
    in the file stays as it is, comments too, and a copy of it is kept beside it.

    \b
    Examples:
      toolfold install --list
      toolfold install claude-desktop --dry-run
      toolfold install cursor --only
      toolfold install cursor --undo
    """
    from toolfold.setup.client_programs import Machine, client_named
    from toolfold.setup.installing import apply, plan_removal

    machine = Machine.this()
    if only_list or client is None:
        if client is None and not only_list:
            raise click.UsageError("missing argument 'CLIENT', or --list")
        _list(machine, as_json=as_json)
        return
    chosen = client_named(client)
    if undo:
        change = plan_removal(machine, chosen, name=name, scope=scope)
    else:
        _refuse_without_mcp()
        change = _planned(machine, chosen, config, name=name, scope=scope, only=only)
    if dry_run and not as_json:
        if change.is_needed:
            click.echo(change.difference())
        _tell(change, machine, None, dry_run=True, undo=undo)
        return
    copy = apply(change) if change.is_needed and not dry_run else None
    if as_json:
        options.print_json(_object(change, copy, written=change.is_needed and not dry_run))
    else:
        _tell(change, machine, copy, dry_run=False, undo=undo)


def _refuse_without_mcp() -> None:
    """Refuse to enter a command that could not serve."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise MissingExtraError("`toolfold serve`, which the client would start,", "mcp")


def _planned(
    machine: Machine,
    client: ClientProgram,
    config: str | None,
    *,
    name: str,
    scope: Literal["user", "project"],
    only: bool,
) -> Change:
    from toolfold.config import find_config, load_gateway, missing_hint
    from toolfold.setup.editing import EditError
    from toolfold.setup.installing import pasted, plan_install

    path = find_config(config)
    if path is None:
        raise ConfigError("there is no configuration to serve", hint=missing_hint())
    found = load_gateway(path, strict=False)
    if not found.has_tools:
        hint = "enable one of them" if found.disabled else missing_hint()
        raise ConfigError(options.without_tools(found), hint=hint)
    try:
        return plan_install(machine, client, path, name=name, scope=scope, only=only)
    except EditError as error:
        click.echo(pasted(machine, client, path, name=name), nl=False)
        raise ConfigError(error.message, hint="put the entry above into it by hand") from None


def _list(machine: Machine, *, as_json: bool) -> None:
    from toolfold.setup.client_programs import CLIENTS, is_found, locations, user_file
    from toolfold.setup.discovery import find
    from toolfold.setup.importing import shown_path

    rows: list[dict[str, Any]] = []
    for client in CLIENTS.values():
        places = [find(place, machine) for place in locations(client, machine)]
        rows.append(
            {
                "client": client.id,
                "title": client.title,
                "file": str(user_file(client, machine)),
                "found": is_found(client, machine),
                "installed": any(place.has_toolfold for place in places),
                "servers": sum(len(place.candidates) for place in places),
            }
        )
    if as_json:
        options.print_json({"clients": rows})
        return
    width = max(len(row["client"]) for row in rows)
    for row in rows:
        state = "installed" if row["installed"] else "found" if row["found"] else "not found"
        plural = "" if row["servers"] == 1 else "s"
        own = f", {row['servers']} server{plural} of its own" if row["servers"] else ""
        if own and not row["found"]:
            own = f", {row['servers']} server{plural} in this folder's files"
        where = options.dim(shown_path(Path(row["file"]), machine))
        say(f"{row['client']:<{width}}  {state}{own}  {where}")


def _tell(
    change: Change, machine: Machine, copy: Path | None, *, dry_run: bool, undo: bool
) -> None:
    """Say on standard error what was done, and what comes next."""
    from toolfold.setup.importing import shown_path

    client = change.location.client
    where = shown_path(change.location.path, machine)
    if not change.is_needed:
        state = "is not in" if undo else "is already in"
        say(f"{change.name} {state} {where}", err=True)
        for name in change.named:
            say(f"`{name}` there starts toolfold: --name {name} takes it out", err=True)
        return
    verb = "would write" if dry_run else "wrote"
    say(f"{verb} {where}", err=True)
    if copy is not None:
        say(f"what was there is in {shown_path(copy, machine)}", err=True)
    _tell_servers(change, machine, client)
    if change.variables:
        names = ", ".join(change.variables)
        say(
            f"the servers read {names} from the environment, which {client.title} must have",
            err=True,
        )
    if not dry_run and not undo:
        say(f"next: {client.after}", err=True)


def _tell_servers(change: Change, machine: Machine, client: ClientProgram) -> None:
    from toolfold.setup.importing import shown_path

    if change.others:
        names = ", ".join(change.others)
        them = "it" if len(change.others) == 1 else "them"
        say(f"{client.title} still starts {names} by itself; --only takes {them} out", err=True)
    if change.gone:
        say(f"taken out: {', '.join(change.gone)}", err=True)
    if change.back:
        say(f"back again: {', '.join(change.back)}", err=True)
    if change.kept_in is not None:
        kept = shown_path(change.kept_in, machine)
        say(f"the servers that were taken out are in {kept}", err=True)


def _object(change: Change, copy: Path | None, *, written: bool) -> dict[str, Any]:
    return {
        "client": change.location.client.id,
        "file": str(change.location.path),
        "written": written,
        "backup": None if copy is None else str(copy),
        "entry": change.entry,
        "others": list(change.others),
        "gone": list(change.gone),
        "back": list(change.back),
        "variables": list(change.variables),
    }
