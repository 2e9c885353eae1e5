"""`toolfold status`."""

from __future__ import annotations

import math
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolfold._terminal import Style, columns, padded, styled
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.errors import ConfigError
from toolfold.prompts import plural
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from toolfold.serve.control.running_gateways import RunningGateway

_STYLES: dict[str, Style] = {
    "ready": "green", "starting": "cyan", "failed": "red", "quarantined": "yellow"
}  # fmt: skip


@click.command("status", short_help="Show the gateways and proxies that run")
@options.config_option
@click.option(
    "--state-dir",
    metavar="DIR",
    help="Where the gateways remember things  [default: `serve.state_dir`]",
)
@options.json_option
def command(config: str | None, state_dir: str | None, as_json: bool) -> None:
    """Show the gateways and proxies that run.

    Each running `toolfold serve` of yours, over standard input and output or HTTP, and each
    `toolfold proxy` is asked how it stands. Exits with 1 where none answers.

    \b
    Examples:
      toolfold status
      toolfold status --config work.yaml --json
    """
    from toolfold.serve.control.running_gateways import running_gateways

    folders = state_folders(config, state_dir)
    found = running_gateways(folders)
    if as_json:
        options.print_json({"gateways": [_as_json(gateway) for gateway in found]})
    elif found:
        for place, gateway in enumerate(found):
            say("\n" * (place > 0) + "\n".join(_lines(gateway)))
    else:
        where = " and ".join(f"`{folder}`" for folder in folders)
        say(
            f"no gateway runs with its state in {options.plain(where)}; one with a `state_dir` "
            "of its own is found with --config FILE or --state-dir DIR, and one that another user "
            "runs answers that user alone",
            err=True,
        )
    sys.exit(0 if any(gateway.report is not None for gateway in found) else 1)


def state_folders(config: str | None, state_dir: str | None = None) -> list[Path]:
    """Return the state folders to look in: the one that was named, or all that are known."""
    from toolfold.config.gateway_config import load_gateway
    from toolfold.config.serve_settings import ServeSettings

    if state_dir is not None:
        return [Path(state_dir).expanduser()]
    own = ServeSettings().state_folder
    try:
        found = load_gateway(config, strict=False).serve.state_folder
        if config is not None:
            return [found]
    except ConfigError as error:
        if config is not None or os.environ.get("TOOLFOLD_CONFIG"):
            mend = f"{error.hint}; " if error.hint else ""
            hint = f"{mend}gateways that run go on, and are found with --state-dir DIR"
            raise ConfigError(error.message, hint=hint) from None
        say(f"warning: {options.plain(error.message)}: it is passed over", err=True)
        found = own
    return list(dict.fromkeys((found, own)))


def refuse_anothers(folder: Path) -> None:
    """Refuse to write into a state folder for another user, as root could.

    Raises:
        ConfigError: It is one: its gateways could not read what was written.
    """
    if os.name != "posix" or os.geteuid() != 0 or not folder.exists():
        return
    if owner := folder.stat().st_uid:
        raise ConfigError(
            f"`{folder}` is the user {owner}'s, who could not read what root writes there",
            hint=f"run it as them, as with `setpriv --reuid {owner} --clear-groups toolfold …`",
        )


def _as_json(gateway: RunningGateway) -> dict[str, Json]:
    answers = gateway.report is not None
    return {"pid": gateway.pid, "answers": answers, "error": gateway.error} | (gateway.report or {})


def _lines(gateway: RunningGateway) -> list[str]:
    report = gateway.report
    if report is None:
        return [f"{options.bold(f'gateway {gateway.pid}')}  {options.plain(gateway.error or '')}"]
    if report.get("transport") == "proxy":
        return _proxy_lines(gateway.pid, report)
    searches = _number(report, "searches")
    words = [
        options.plain(str(report.get("address") or report.get("transport"))),
        f"since {_clock(report.get('since'))}",
        plural(_number(report, "clients"), "client"),
        _calls(report),
        "1 search" if searches == 1 else f"{searches:,} searches",
    ]
    if under_way := _number(report, "in_flight"):
        words.append(f"{under_way:,} under way")
    if report.get("stopping") is True:
        words.append(styled("stopping", "yellow"))
    lines = [f"{options.bold(f'gateway {gateway.pid}')}  {', '.join(words)}"]
    if report.get("config"):
        lines.append(options.dim(f"  {options.plain(str(report['config']))}"))
    if problem := report.get("config_problem"):
        said = options.plain(str(problem))
        lines.append(f"  {styled('the configuration stays as it was', 'yellow')}: {said}")
    servers, functions = _objects(report, "servers"), _objects(report, "functions")
    names = [options.plain(str(source.get("name"))) for source in (*servers, *functions)]
    widest = max(map(columns, names), default=0)
    for name, server in zip(names, servers, strict=False):
        lines.append(f"  {padded(name, widest)}  {server_line(server)}")
    for name, source in zip(names[len(servers) :], functions, strict=True):
        lines.append(f"  {padded(name, widest)}  {_other_line(source)}")
    for profile in _objects(report, "profiles"):
        asking = plural(_number(profile, "clients"), "client")
        lines.append(options.dim(f"  /mcp/{options.plain(str(profile.get('name')))}  {asking}"))
    return lines


def _other_line(source: dict[str, Json]) -> str:
    """Say how functions or an API stand."""
    tools = plural(_number(source, "tools"), "tool")
    kind = "openapi" if source.get("kind") == "openapi" else "functions"
    parts = [kind, tools, _calls(source)]
    if held := _number(source, "quarantined"):
        parts.append(f"{held:,} wait for approval")
    if cause := source.get("cause"):
        parts.append(options.plain(str(cause)))
    return ", ".join(parts)


def _proxy_lines(pid: int, report: dict[str, Json]) -> list[str]:
    searches = _number(report, "searches")
    saved = max(_number(report, "tokens_before") - _number(report, "tokens_after"), 0)
    words = [
        options.plain(str(report.get("address"))),
        f"since {_clock(report.get('since'))}",
        _requests(report),
        "1 search" if searches == 1 else f"{searches:,} searches",
        f"{saved:,} tokens saved",
    ]
    if under_way := _number(report, "in_flight"):
        words.append(f"{under_way:,} under way")
    if report.get("stopping") is True:
        words.append(styled("stopping", "yellow"))
    lines = [f"{options.bold(f'proxy {pid}')}  {', '.join(words)}"]
    if report.get("config"):
        lines.append(options.dim(f"  {options.plain(str(report['config']))}"))
    upstreams = _objects(report, "upstreams")
    names = [options.plain(str(each.get("name"))) for each in upstreams]
    widest = max(map(columns, names), default=0)
    for name, each in zip(names, upstreams, strict=True):
        url = options.plain(str(each.get("url")))
        lines.append(f"  {padded(name, widest)}  {url}, {_requests(each)}")
    return lines


def _requests(counted: dict[str, Json]) -> str:
    failed = _number(counted, "failed")
    made = plural(_number(counted, "requests"), "request")
    return made + (f" ({failed:,} failed)" if failed else "")


def server_line(server: dict[str, Json]) -> str:
    """Return how a server stands, in one line."""
    state = str(server.get("state"))
    style = _STYLES.get(state)
    parts = [styled(state, style) if style else options.plain(state)]
    parts += [plural(_number(server, "tools"), "tool"), _calls(server)]
    if held := _number(server, "quarantined"):
        parts.append(f"{held:,} wait for approval")
    if restarts := _number(server, "restarts"):
        parts.append(f"restarted {restarts}×")
    if cause := server.get("cause"):
        said = options.plain(str(cause))
        parts.append(f"it was: {said}" if state == "ready" else said)
    left = server.get("retry_in")
    if state == "failed" and isinstance(left, int | float):
        parts.append(f"tried again in {math.ceil(left)} s")
    return ", ".join(parts)


def _calls(counted: dict[str, Json]) -> str:
    failed = _number(counted, "failed")
    return plural(_number(counted, "calls"), "call") + (f" ({failed:,} failed)" if failed else "")


def _number(report: dict[str, Json], key: str) -> int:
    value = report.get(key)
    return value if isinstance(value, int) else 0


def _objects(report: dict[str, Json], key: str) -> list[dict[str, Json]]:
    found = report.get(key)
    return [item for item in found if is_object(item)] if is_array(found) else []


def _clock(moment: Json) -> str:
    try:
        at = datetime.fromisoformat(str(moment)).astimezone()
    except ValueError:
        return "?"
    return at.strftime("%Y-%m-%d %H:%M:%S")
