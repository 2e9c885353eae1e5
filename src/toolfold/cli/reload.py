"""`toolfold reload`."""

from __future__ import annotations

import click

from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.servers import AskedGateways, reaching
from toolfold.tool import Json, is_array, is_object

_PATIENCE = 30.0


@click.command("reload", short_help="Have running gateways read their configuration again")
@reaching
def command(running: AskedGateways, as_json: bool) -> None:
    """Have running gateways read their configuration again.

    Servers, tokens, scopes and how to fold are taken up; what is the same is not touched, and
    calls under way end. A file that cannot be used changes nothing. What permits more than
    before is said, and so is what counts from the next start on.

    \b
    Examples:
      toolfold reload
      toolfold reload --config work.yaml --json
    """
    found = running.ask("reload", patience=_PATIENCE)
    if as_json:
        options.print_json({"gateways": [{"pid": one.pid, **one.result} for one in found]})
        return
    for one in found:
        lines = [options.plain(line) for line in _lines(one.result)]
        say(f"gateway {one.pid}: {lines[0] if lines else 'nothing is different'}")
        for line in lines[1:]:
            say(f"  {line}")


def _lines(result: dict[str, Json]) -> list[str]:
    servers = result.get("servers")
    by_kind = servers if is_object(servers) else {}
    return [
        *(f"servers {kind}: {_joined(names)}" for kind, names in by_kind.items() if names),
        *(
            f"{what}: {_joined(result[key])}"
            for key, what in (
                ("openapi", "APIs"),
                ("tokens", "tokens"),
                ("profiles", "profiles"),
                ("settings", "settings"),
                ("widened", "permits more than before"),
                ("needs_restart", "counts from the next start on"),
            )
            if result.get(key)
        ),
    ]


def _joined(names: Json) -> str:
    return ", ".join(map(str, names)) if is_array(names) else ""
