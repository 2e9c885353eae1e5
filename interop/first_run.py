"""The first run, as the guide has it, on a machine that knows nothing of toolfold.

The commands are read out of the guide, so what is measured is what is written there. They
run in a home folder of their own, in which two clients have one real server each.

    .interop/venv/bin/python interop/first_run.py
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers import World

__all__ = ["Step", "documented", "first_run"]

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guides" / "gateway.md"
_BLOCK = re.compile(r"^## The first run\n+```sh\n(.*?)```", re.MULTILINE | re.DOTALL)
_INSTALL = "'toolfold[mcp]'"
_SECRET = "sk-not-to-be-copied-0123456789"


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the first run."""

    command: str
    seconds: float
    output: str


def documented() -> list[str]:
    """Return the commands that the guide gives for the first run."""
    found = _BLOCK.search(GUIDE.read_text())
    assert found, f"{GUIDE} has no block of commands under `The first run`"
    return found[1].strip().splitlines()


def first_run(folder: Path) -> list[Step]:
    """Run the guide's commands from nothing; each must succeed.

    Args:
        folder: An empty one, for the home folder and the environment.
    """
    home, environment = folder / "home", folder / "venv"
    _furnish(home, folder)
    venv.create(environment, with_pip=True)
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    kept = ("LANG", "PIP_CACHE_DIR", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE", "TMPDIR")
    env = {key: os.environ[key] for key in kept if key in os.environ}
    env |= {"HOME": str(home), "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    env.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    return [_step(command, env, home) for command in documented()]


def _furnish(home: Path, folder: Path) -> None:
    """Give two clients a server each, in the files that they keep them in."""
    world = World(folder / "world", "")
    world.folder.mkdir()
    world.build()
    entries = world.entries
    entries["memory"]["env"]["MEMORY_API_KEY"] = _SECRET
    files = {".cursor/mcp.json": "time", ".config/Claude/claude_desktop_config.json": "memory"}
    for name, server in files.items():
        path = home / name
        path.parent.mkdir(parents=True)
        content: dict[str, Any] = {"mcpServers": {server: entries[server]}}
        path.write_text(json.dumps(content, indent=2))


def _step(command: str, env: dict[str, str], home: Path) -> Step:
    # What is installed is this checkout, not what an index has.
    run = command.replace(_INSTALL, f"'{ROOT}[mcp]'")
    began = time.perf_counter()
    done = subprocess.run(
        run, shell=True, cwd=home, env=env, capture_output=True, encoding="utf-8", timeout=600
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return Step(command, seconds, done.stdout)


def main() -> int:
    """Print the seconds of each command, and their sum."""
    folder = Path(tempfile.mkdtemp(prefix="first-run-"))
    try:
        steps = first_run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for step in steps:
        print(f"{step.seconds:6.1f} s  {step.command}")
    print(f"{sum(step.seconds for step in steps):6.1f} s  {len(steps)} commands")
    print(steps[-1].output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
