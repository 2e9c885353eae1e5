"""The example server, and the gateway with it behind: each started, reached by an address."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FOLDING", "example", "gateway"]

FOLDING = ("off", "auto", "on")
"""How the gateway folds in the three tables; `auto` is the default."""

HERE = Path(__file__).parents[1]
TOOLFOLD = str(Path(sys.executable).parent / "toolfold")
_ADDRESS = re.compile(r"(http://[0-9.]+:\d+/mcp)")
_PATIENCE = 30


@contextmanager
def example() -> Generator[str]:
    """Run the example server; yields its address."""
    with _running([sys.executable, "-m", "conformance.example"]) as url:
        yield url


@contextmanager
def gateway(url: str, folding: str, folder: Path) -> Generator[str]:
    """Run the gateway over a server whose tools keep their own names; yields its address."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "toolfold.yaml"
    search = {} if folding == "auto" else {"enabled": folding}
    settings = {
        "mcpServers": {"example": {"url": url, "prefix": ""}},
        "serve": {"trust": "off", "state_dir": str(folder / "state")},
        "tools": {"tool_search": {"cache_dir": "off", **search}},
    }
    config.write_text(json.dumps(settings), "utf-8")  # JSON is YAML
    command = [TOOLFOLD, "serve", "--config", str(config), "--http", "127.0.0.1:0"]
    with _running(command, until="example: ready") as address:
        yield address


@contextmanager
def _running(command: Sequence[str], until: str = "") -> Generator[str]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    said: list[str] = []
    ready = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if _ADDRESS.search("".join(said)) and until in "".join(said):
                ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        match = _ADDRESS.search("".join(said)) if ready.wait(_PATIENCE) else None
        if match is None:
            raise RuntimeError(f"{command[0]} did not start:\n{''.join(said)}")
        yield match[1]
    finally:
        process.terminate()
        process.wait(_PATIENCE)
        reader.join(_PATIENCE)
        if process.stdout is not None:
            process.stdout.close()
