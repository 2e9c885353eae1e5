"""`toolfold import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolfold._terminal import styled
from toolfold.cli import options
from toolfold.cli.output import say

if TYPE_CHECKING:
    from toolfold.setup.client_programs import ClientProgram, Machine
    from toolfold.setup.discovery import FoundServer
    from toolfold.setup.importing import ImportPlan, Taken


@click.command("import", short_help="Take over the MCP servers of your clients")
@click.option(
    "--from", "clients", metavar="CLIENT", multiple=True,
    help="Only those of this client, such as cursor; repeatable  [default: all that are found]",
)  # fmt: skip
@click.option("--project", is_flag=True, help="Also those in files of the folder you are in")
@click.option("--list", "only_list", is_flag=True, help="Show what there is and write nothing")
@click.option(
    "--to", "target", metavar="FILE",
    help="Where to write them  [default: toolfold.yaml in your configuration folder]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the file and write nothing")
@options.json_option
def command(
    clients: tuple[str, ...],
    project: bool,
    only_list: bool,
    target: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take over the MCP servers of your clients.

    Reads your files of Claude Desktop, Claude Code, Cursor, VS Code, Codex and others, and
    adds their servers to toolfold's own file. The same server in several clients is taken
    once. Secrets stay where they are: the file refers to them. A folder's own files, such
    as .mcp.json, name programs that whoever wrote the folder chose: they are read with
    --project.

    \b
    Examples:
      toolfold import
      toolfold import --from cursor --from codex --dry-run
      toolfold import --to ./toolfold.yaml
    """
    from toolfold.config import user_config
    from toolfold.setup.client_programs import Machine
    from toolfold.setup.importing import apply, plan_import

    machine = Machine.this()
    path = Path(target).expanduser() if target else user_config()
    plan = plan_import(machine, _chosen(clients), path, project=project)
    writes = not (only_list or dry_run) and plan.after != plan.before
    copy = apply(plan) if writes else None
    if as_json:
        options.print_json(_object(plan, written=writes, copy=copy))
        return
    if dry_run:
        click.echo(plan.after, nl=False)
        return
    _show(plan, machine)
    if not only_list or not plan.taken:
        _tell(plan, machine, copy)


def _chosen(names: tuple[str, ...]) -> list[ClientProgram]:
    from toolfold.setup.client_programs import CLIENTS, client_named

    return [client_named(name) for name in names] if names else list(CLIENTS.values())


def _show(plan: ImportPlan, machine: Machine) -> None:
    """Print what there is, place by place."""
    from toolfold.setup.importing import shown_path

    for found in plan.found:
        location = found.location
        title = options.bold(location.client.title)
        where = options.dim(shown_path(location.path, machine))
        project = options.dim(" (this folder)") if location.scope == "project" else ""
        say(f"{title}  {where}{project}")
        for item in _taken_from(plan, found):
            say(f"  {options.plain(item.candidate.name)}  {options.dim(_fate(item))}")
        if found.has_toolfold:
            say(f"  {options.dim('toolfold itself is there')}")
        if found.problem:
            say(f"  {styled('not read', 'yellow')}: {options.plain(str(found.problem))}")


def _fate(item: Taken) -> str:
    count = len(item.candidate.secrets)
    secrets = f", {count} secret{'s' if count > 1 else ''} stay{'s' if count == 1 else ''} there"
    name = f" as {item.name}" if item.name != item.candidate.name else ""
    return f"new{name}{secrets if count else ''}" if item.is_new else f"known{name}"


def _taken_from(plan: ImportPlan, found: FoundServer) -> list[Taken]:
    return [item for item in plan.taken if item.location == found.location]


def _tell(plan: ImportPlan, machine: Machine, copy: Path | None) -> None:
    """Say on standard error what was written, and what comes next."""
    from toolfold.setup.importing import shown_path

    where = shown_path(plan.target, machine)
    count = len(plan.added)
    if not plan.taken:
        say("no MCP servers were found", err=True)
        say(f"write them under `mcpServers` in {where}, or see --help", err=True)
    elif not count:
        say(f"{where} has them all", err=True)
    else:
        say(f"wrote {count} server{'s' if count > 1 else ''} to {where}", err=True)
    if copy is not None:
        say(f"what was there is in {shown_path(copy, machine)}", err=True)
    if plan.variables:
        names = ", ".join(plan.variables)
        say(f"set {names}: the client keeps what they hold to itself", err=True)
    if plan.elsewhere:
        say(
            f"{plan.elsewhere} more belong to other folders: run this in them to take them over",
            err=True,
        )
    if count:
        say("next: toolfold search 'what you want to do'", err=True)


def _object(plan: ImportPlan, *, written: bool, copy: Path | None) -> dict[str, Any]:
    return {
        "file": str(plan.target),
        "written": written,
        "backup": None if copy is None else str(copy),
        "found": [
            {
                "client": found.location.client.id,
                "path": str(found.location.path),
                "scope": found.location.scope,
                "problem": found.problem or None,
                "servers": [
                    {
                        "name": item.candidate.name,
                        "as": item.name,
                        "new": item.is_new,
                        "secrets": len(item.candidate.secrets),
                    }
                    for item in _taken_from(plan, found)
                ],
            }
            for found in plan.found
        ],
        "variables": list(plan.variables),
        "elsewhere": plan.elsewhere,
    }
