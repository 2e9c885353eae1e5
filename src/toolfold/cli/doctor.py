"""`toolfold doctor`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict

import click

from toolfold._terminal import Style, styled
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.doctor import Diagnosis, Health, examine

_STYLES: dict[Health, Style] = {"ok": "green", "warning": "yellow", "broken": "red"}
_WIDTH = 9


@click.command("doctor", short_help="Look the whole set-up over, and say what to do")
@click.option(
    "--servers/--no-servers", default=True,
    help="Whether to start the servers and ask for their tools  [default: yes]",
)  # fmt: skip
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(0.1), default=10, show_default=True,
    help="How long a server may take",
)  # fmt: skip
@options.live_config_option
@options.json_option
def command(servers: bool, timeout: float, config: str | None, as_json: bool) -> None:
    """Look the whole set-up over, and say what to do.

    Looks at Python and the extras, the configuration and its servers (all started at once,
    and ended), the clients of this machine and their entries for toolfold, the files it keeps,
    the gateways and proxies that run, and the environment. Changes nothing, and shows no
    secret. Exits with 1 where something is broken. A catalog is looked over by `check`.

    \b
    Examples:
      toolfold doctor
      toolfold doctor --no-servers
      toolfold doctor --json | jq '.checks[] | select(.health != "ok")'
    """
    found: list[Diagnosis] = []
    with options.hushed():
        progress = None if as_json else options.show_progress
        for diagnosis in examine(config, deadline=timeout, servers=servers, progress=progress):
            if not as_json:
                _print(diagnosis, is_first=not found or found[-1].part != diagnosis.part)
            found.append(diagnosis)
    counts = Counter(diagnosis.health for diagnosis in found)
    if as_json:
        told = {"ok": counts["ok"], "warnings": counts["warning"], "broken": counts["broken"]}
        options.print_json({**told, "checks": [asdict(diagnosis) for diagnosis in found]})
    else:
        warnings = f"{counts['warning']} warning" + "s" * (counts["warning"] != 1)
        say(f"\n{counts['ok']} ok, {warnings}, {counts['broken']} broken")
    sys.exit(1 if counts["broken"] else 0)


def _print(diagnosis: Diagnosis, *, is_first: bool) -> None:
    if is_first:
        say(options.bold(diagnosis.part))
    lead = " " * (2 + _WIDTH)
    label = styled(diagnosis.health, _STYLES[diagnosis.health])
    space = " " * (_WIDTH - len(diagnosis.health))
    told = options.plain(f"{diagnosis.name}: {diagnosis.message}")
    say(f"  {label}{space}{told}", hang=" " * _WIDTH)
    if diagnosis.fix and diagnosis.health != "ok":
        say(f"{lead}{styled(options.plain(diagnosis.fix), 'cyan')}")
