"""Six real servers from npm and PyPI, each over a world that is the same every time.

What a call answers depends on nothing but the world: files, a repository, a graph and a web
page, all built by `World.build` with fixed contents and dates. So the same calls, made once
at the server itself and once through the gateway, must answer the same.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PARTS", "World", "everything_entry", "tapped"]

PARTS = Path(__file__).resolve().parent.parent / ".interop"
"""Where `make interop` puts the servers and clients."""

_BIN = Path(sys.executable).parent
_NPM = PARTS / "node_modules" / "@modelcontextprotocol"
_WHEN = "2026-01-02T03:04:05+0000"
_SILENCE = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _node(package: str, *arguments: str, **environment: str) -> dict[str, Any]:
    script = _NPM / package / "dist" / "index.js"
    return {"command": "node", "args": [str(script), *arguments], "env": environment}


def everything_entry(*arguments: str, **environment: str) -> dict[str, Any]:
    """An entry for the server that has something of everything in the protocol."""
    return _node("server-everything", *arguments, **environment)


@dataclass(frozen=True, slots=True)
class World:
    """What the servers look at, and their entries."""

    folder: Path

    web: str
    """The address of a web site."""

    @property
    def files(self) -> Path:
        """The folder that the file server may see."""
        return self.folder / "files"

    @property
    def repository(self) -> Path:
        """The repository of the git server."""
        return self.folder / "repository"

    @property
    def graph(self) -> Path:
        """The memory server's file."""
        return self.folder / "graph.jsonl"

    def build(self) -> None:
        """Make everything anew."""
        for path in (self.files, self.repository):
            shutil.rmtree(path, ignore_errors=True)
        self.graph.unlink(missing_ok=True)
        self._build_files()
        self._build_repository()

    def _build_files(self) -> None:
        inner = self.files / "inner"
        inner.mkdir(parents=True)
        (self.files / "notes.md").write_text("# Notes\n\nfirst line\nsecond line ✓\n")
        (inner / "deep.txt").write_text("deep\n")
        (self.files / "pixel.png").write_bytes(_PIXEL)
        (self.files / "silence.wav").write_bytes(_SILENCE)

    def _build_repository(self) -> None:
        self.repository.mkdir()
        (self.repository / "readme.txt").write_text("one\n")
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("add", "readme.txt")
        self._git("commit", "--quiet", "--message=first")
        (self.repository / "readme.txt").write_text("one\ntwo\n")
        (self.repository / "new.txt").write_text("new\n")

    def _git(self, *arguments: str) -> None:
        environment = {**os.environ, **_git_environment()}
        subprocess.run(["git", *arguments], cwd=self.repository, env=environment, check=True)

    @property
    def entries(self) -> dict[str, dict[str, Any]]:
        """All six, as `mcpServers` has them."""
        return {
            "everything": everything_entry(),
            "filesystem": _node("server-filesystem", str(self.files)),
            "memory": _node("server-memory", MEMORY_FILE_PATH=str(self.graph)),
            "time": {
                "command": str(_BIN / "mcp-server-time"),
                "args": ["--local-timezone", "Etc/UTC"],
            },
            "git": {
                "command": str(_BIN / "mcp-server-git"),
                "args": ["--repository", str(self.repository)],
                "env": _git_environment(),
            },
            "fetch": {
                "command": str(_BIN / "mcp-server-fetch"),
                "args": ["--ignore-robots-txt", "--allow-private-ips"],
            },
        }


def _git_environment() -> dict[str, str]:
    who = {"NAME": "A Person", "EMAIL": "person@example.com", "DATE": _WHEN}
    own = {f"GIT_{role}_{key}": v for role in ("AUTHOR", "COMMITTER") for key, v in who.items()}
    # Whatever is configured on this machine must not show in what git answers.
    return {**own, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def tapped(entry: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """An entry whose server's input is written down."""
    tap = str(Path(__file__).with_name("tap.py"))
    command = [str(log), entry["command"], *entry.get("args", ())]
    return {**entry, "command": sys.executable, "args": [tap, *command]}
