"""`toolfold inspect`."""

from __future__ import annotations

import click

from toolfold.cli import options
from toolfold.cli.status import state_folders
from toolfold.errors import ConfigError
from toolfold.scope import Scope
from toolfold.sources.catalog_file import load_catalog


@click.command("inspect", short_help="Look at a catalog in the browser")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@options.live_catalog_option
@options.scope_options
@options.live_config_option
@click.option(
    "--beside", metavar="FILE", multiple=True,
    help="A catalog to compare with the first in Search; repeatable",
)  # fmt: skip
@click.option(
    "--conversations", "recorded", metavar="PATH", multiple=True,
    help="Show conversations: what `chat --transcript`, `ab` or `proxy --save` wrote, or an audit "
    "log, a file or a folder; repeatable",
)  # fmt: skip
@click.option(
    "--running", is_flag=True,
    help="Look at the tools that the running gateway has now, without starting a server",
)  # fmt: skip
@options.memory_option
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:0",
    help="Where to listen, on this machine  [default: 127.0.0.1, a free port]",
)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Print the link and open nothing")
def command(
    paths: tuple[str, ...],
    catalog: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    beside: tuple[str, ...],
    recorded: tuple[str, ...],
    running: bool,
    memory: str | None,
    listen: str,
    no_browser: bool,
) -> None:
    """Look at a catalog in the browser.

    What each tool costs, what a search finds as you type and why, what a model would see
    under each strategy, what was said and called in recorded conversations, and the gateways
    and proxies that run now. The page comes from this machine, works without a network and is
    for whoever has the link.

    A PATH is a catalog, a configuration, saved traffic, a transcript or an audit log: what it
    holds says which. A second catalog is compared with the first; saved traffic alone shows the
    tools that its clients sent.

    \b
    Examples:
      toolfold inspect
      toolfold inspect .mcp.json
      toolfold inspect tools.json other-tools.json
      toolfold inspect traffic/ audit.jsonl
      toolfold inspect --running
      toolfold inspect --catalog tools.json --listen 127.0.0.1:8790 --no-browser
    """
    from toolfold.inspector._run_inspector import refuse_reachable, run_inspector
    from toolfold.inspector.app import InspectorApp
    from toolfold.inspector.conversations import recorded_files
    from toolfold.inspector.inspected import Inspected
    from toolfold.inspector.live import tools_of_running
    from toolfold.inspector.named_paths import sorted_paths, tools_of_traffic

    address = _address(listen)
    refuse_reachable(address[0])  # before a server is started
    given = sorted_paths(paths)
    named = [*([catalog] if catalog else ()), *given.catalogs]
    # A configuration that was named is what is looked at, and a catalog stands beside it.
    first = None if given.config and not catalog else next(iter(named), None)
    others = [*(name for name in named if name != first), *beside]
    config = config or given.config
    scope = Scope(allow or ("*",), deny)
    files = recorded_files((*given.recorded, *recorded))
    opened = options.open_tools(first, config)
    states = state_folders(config)
    is_open = first is not None or opened.live is not None
    if running:
        if first is not None:
            raise ConfigError(f"`{first}` and --running name two catalogs", hint="use --beside")
        shown, title = tools_of_running(states)
    elif given.recorded and not is_open and (sent := tools_of_traffic(files)) is not None:
        shown, title = sent, "the tools of saved traffic"
    else:
        shown, title = opened.catalog(scope), _title(opened)
    found = shown.within(scope)
    remembered = options.read_memory(memory) if memory else opened.memory()
    inspected = Inspected(found, opened.settings, title, remembered)
    compared = [Inspected(load_catalog(n).within(scope), opened.settings, n) for n in others]
    app = InspectorApp(inspected, states, files, compared)
    run_inspector(app, address, opens=not no_browser)


def _title(opened: options.OpenedTools) -> str:
    if opened.live is not None:
        return str(opened.live.path)
    return "the demo catalog" if opened.file is None else opened.file


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"--listen is {listen!r}", hint="write HOST:PORT, as 127.0.0.1:8790")
    return host.strip("[]"), int(port)
