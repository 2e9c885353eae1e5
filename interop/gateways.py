"""The gateway as a user runs it: `toolfold serve` over a configuration file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["TOOLFOLD", "Gateway", "configured"]

TOOLFOLD = str(Path(sys.executable).parent / "toolfold")
_ADDRESS = re.compile(r"listening on (http://\S+)")
_PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Gateway:
    """One configuration of the gateway, in a folder of its own."""

    config: Path

    @property
    def command(self) -> list[str]:
        """What a client is told to start."""
        return [TOOLFOLD, "serve", "--config", str(self.config)]

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The calls that were written down."""
        path = self.config.parent / "state" / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    @contextmanager
    def listening(self, env: Mapping[str, str] | None = None) -> Generator[str]:
        """Serve over HTTP on a free port; yields the address."""
        process = subprocess.Popen(
            [*self.command, "--http", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            encoding="utf-8",
        )
        log: list[str] = []
        heard, found = threading.Event(), []

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                log.append(line)
                if not found and (match := _ADDRESS.search(line)):
                    found.append(match[1])
                    heard.set()
            heard.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            heard.wait(_PATIENCE)
            assert found, "".join(log)
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.stdout.read() if process.stdout else "", process.wait(_PATIENCE)
            reader.join(_PATIENCE)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            assert out == "", out
            assert not [line for line in log if "Traceback" in line], "".join(log)


def configured(
    folder: Path,
    entries: Mapping[str, Any],
    *,
    fold: str = "on",
    core: tuple[str, ...] = (),
    **serve: Any,
) -> Gateway:
    """Write a configuration over some servers.

    Args:
        folder: Where; also the gateway's state.
        entries: The servers.
        fold: Whether tools are folded: `on`, `off` or `auto`.
        core: Tools that are never folded.
        serve: More of the block `serve`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "mcpServers": dict(entries),
        "serve": {"state_dir": str(folder / "state"), **serve},
        "tools": {"tool_search": {"enabled": fold, "core": list(core), "cache_dir": "off"}},
    }
    config = folder / "mcp.json"
    config.write_text(json.dumps(document, indent=2))
    return Gateway(config)
