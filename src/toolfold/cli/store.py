"""`toolfold store`."""

from __future__ import annotations

import click

from toolfold.cli import options
from toolfold.cli.catalog import store_option
from toolfold.cli.output import say


@click.group("store", short_help="Make a database ready for what is shared")
def command() -> None:
    """Make a database ready for what several processes share.

    \b
    Examples:
      toolfold store migrate --store postgresql://owner@db/tools --role app
      toolfold store audit --store postgresql://app@db/tools --days 1
    """


@command.command("migrate", short_help="Bring a database to this version")
@store_option
@click.option("--role", metavar="NAME", help="Who reads and writes from then on, if not the owner")
@options.json_option
def migrate(store: str, role: str | None, as_json: bool) -> None:
    """Bring a database to this version of toolfold. It only ever goes forward.

    The address is the owner's, who may create a schema and the extension `vector`. Row-level
    security does not bind the owner of a table: give the processes a role of their own.

    \b
    Examples:
      toolfold store migrate --store postgresql://owner@db/tools --role app
    """
    from toolfold.store.postgres.database import owner_connection
    from toolfold.store.postgres.migrations import known
    from toolfold.store.postgres.migrations import migrate as brought

    with owner_connection(store) as connection:
        steps = brought(connection, role)
    newest = known()[-1].version
    if as_json:
        options.print_json({"version": newest, "applied": [step.name for step in steps]})
    elif steps:
        say(f"version {newest}: {', '.join(step.name for step in steps)}")
    else:
        say(f"version {newest} already")


@command.command("audit", short_help="Print what was written down of calls")
@store_option
@click.option("--tenant", metavar="NAME", default="default", show_default=True, help="Whose calls")
@click.option(
    "--days", metavar="N", type=click.FloatRange(min=0), help="Only the lines of the last N days"
)
def audit(store: str, tenant: str, days: float | None) -> None:
    """Print what was written down of calls, one line of JSON each, the oldest first.

    The lines are those that `audit.jsonl` would have; `toolfold inspect` shows such a file.

    \b
    Examples:
      toolfold store audit --store postgresql://app@db/tools --days 1
      toolfold store audit --store postgresql://app@db/tools --tenant acme > audit.jsonl
    """
    import time

    from toolfold.store.postgres.audit import PostgresAudit
    from toolfold.store.postgres.database import Database

    since = 0.0 if days is None else time.time() - days * 86_400
    with Database(store, tenant=tenant) as database:
        for line in PostgresAudit(database).lines(since=since):
            click.echo(line)
