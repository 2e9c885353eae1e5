"""A gateway over small real servers, which can die, change and wait for approval."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from browser.driving import toolfold

__all__ = ["RunningGateway", "serving"]

_SERVER = Path(__file__).with_name("small_server.py")
_DYING = "import sys; print('no <b>licence</b> was found', file=sys.stderr); sys.exit(3)"


class RunningGateway:
    """A gateway that runs, and the files of its servers' tools.

    Args:
        folder: Where all of it is.
    """

    def __init__(self, folder: Path) -> None:
        self.config = folder / "gateway.json"
        self._folder = folder

    def change(self, server: str, tools: Sequence[Mapping[str, Any]]) -> None:
        """Have a server list other tools from its next start on."""
        (self._folder / f"{server}.json").write_text(json.dumps(tools), encoding="utf-8")

    def report(self) -> dict[str, Any]:
        """Return how the gateway stands."""
        asked = toolfold("status", "--json", "--config", str(self.config))
        said = subprocess.run(asked, capture_output=True, text=True)
        found = json.loads(said.stdout or "{}").get("gateways", [])
        return found[0] if found else {}

    def call(self, *calls: tuple[str, dict[str, Any]]) -> None:
        """Call tools as a client does, one after the other; what fails, fails."""
        from mcp import Client

        async def each() -> None:
            async with Client(self.report()["address"]) as client:
                for name, arguments in calls:
                    await client.call_tool(name, arguments)

        # The browser's driver runs a loop of its own in this thread.
        caller = Thread(target=lambda: asyncio.run(each()))
        caller.start()
        caller.join()


@contextmanager
def serving(
    folder: Path,
    servers: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    dying: Sequence[str] = (),
    trust: str = "changes",
) -> Iterator[RunningGateway]:
    """Serve some tools; yield once every server has been tried.

    Args:
        folder: Where to put what it needs.
        servers: The tools of each server.
        dying: The names of servers that end before they are ready.
        trust: Which tools wait for a person.
    """
    gateway = RunningGateway(folder)
    entries: dict[str, Any] = {}
    for name, tools in servers.items():
        gateway.change(name, tools)
        args = [str(_SERVER), str(folder / f"{name}.json")]
        entries[name] = {"command": sys.executable, "args": args}
    entries |= {name: {"command": sys.executable, "args": ["-c", _DYING]} for name in dying}
    serve = {"state_dir": str(folder / "state"), "trust": trust}
    search = {"tool_search": {"enabled": "on"}}
    value = {"tools": search, "serve": serve, "mcpServers": entries}
    gateway.config.write_text(json.dumps(value), encoding="utf-8")
    command = toolfold("serve", "--http", "127.0.0.1:0", "--config", str(gateway.config))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(gateway, process, len(entries))
            yield gateway
        finally:
            process.terminate()


def _wait(gateway: RunningGateway, process: subprocess.Popen[bytes], count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        servers = gateway.report().get("servers", [])
        if len(servers) == count and all(s["state"] != "starting" for s in servers):
            return
        time.sleep(0.2)
    raise AssertionError("the gateway does not start")
