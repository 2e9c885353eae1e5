"""`toolfold inspect`."""

from __future__ import annotations

import click

from toolfold.cli import options
from toolfold.cli.status import state_folders
from toolfold.errors import ConfigError
from toolfold.scope import Scope


@click.command("inspect", short_help="Look at a catalog in the browser")
@options.live_catalog_option
@options.scope_options
@options.live_config_option
@click.option(
    "--conversations", "recorded", metavar="PATH", multiple=True,
    help="Show conversations: what `chat --transcript`, `ab` or `proxy --save` wrote, a file or a "
    "folder; repeatable",
)  # fmt: skip
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:0",
    help="Where to listen, on this machine  [default: 127.0.0.1, a free port]",
)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Print the link and open nothing")
def command(
    catalog: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    recorded: tuple[str, ...],
    listen: str,
    no_browser: bool,
) -> None:
    """Look at a catalog in the browser.

    What each tool costs, what a search finds as you type and why, and what a model would see
    under each strategy. The page comes from this machine, works without a network and is for
    whoever has the link.

    \b
    Examples:
      toolfold inspect
      toolfold inspect --config .mcp.json
      toolfold inspect --conversations traffic/
      toolfold inspect --catalog tools.json --listen 127.0.0.1:8790 --no-browser
    """
    from toolfold.inspector._run_inspector import run_inspector
    from toolfold.inspector.app import InspectorApp
    from toolfold.inspector.conversations import recorded_files
    from toolfold.inspector.inspected import Inspected

    opened = options.open_tools(catalog, config)
    found = opened.catalog(Scope(allow or ("*",), deny))
    if opened.live is not None:
        title = str(opened.live.path)
    else:
        title = "the demo catalog" if opened.file is None else opened.file
    app = InspectorApp(
        Inspected(found, opened.settings, title), state_folders(config), recorded_files(recorded)
    )
    run_inspector(app, _address(listen), opens=not no_browser)


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"--listen is {listen!r}", hint="write HOST:PORT, as 127.0.0.1:8790")
    return host.strip("[]"), int(port)
