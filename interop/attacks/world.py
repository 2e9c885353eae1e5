"""What attacks are made of: servers that mean harm or none, and configurations that name them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attacks.product import STRANGER

__all__ = ["TEXT", "Stranger", "configured", "found", "peak_mb", "resident_mb", "tool"]

TEXT = {"type": "object", "properties": {"x": {"type": "string"}}}


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    """Return a tool as a server lists it."""
    about = description or f"{name.replace('_', ' ').capitalize()}."
    return {"name": name, "description": about, "inputSchema": TEXT, **more}


@dataclass(frozen=True)
class Stranger:
    """A server of the stranger's, and what it was made to run."""

    name: str
    folder: Path

    @classmethod
    def made(cls, folder: Path, name: str, tools: list[Any] | None = None, **does: Any) -> Stranger:
        """Write a server down."""
        own = cls(name, folder)
        own.become(tools=tools if tools is not None else [tool("echo")], **does)
        return own

    @property
    def script(self) -> Path:
        """What it does."""
        return self.folder / f"{self.name.encode().hex()}.json"

    @property
    def calls(self) -> Path:
        """What it ran."""
        return self.folder / f"{self.name.encode().hex()}.calls"

    def become(self, **does: Any) -> None:
        """Do something else from now on."""
        known = json.loads(self.script.read_text()) if self.script.exists() else {}
        content = {"name": self.name, "calls": str(self.calls), **known, **does}
        new = self.script.with_suffix(".new")
        new.write_text(json.dumps(content), encoding="utf-8")
        os.replace(new, self.script)

    def entry(self, **more: Any) -> dict[str, Any]:
        """Return how a configuration names it."""
        args = ["-S", "-E", str(STRANGER), str(self.script)]
        return {"command": sys.executable, "args": args, **more}

    def ran(self) -> list[dict[str, Any]]:
        """Return the calls that it ran."""
        if not self.calls.exists():
            return []
        return [json.loads(line) for line in self.calls.read_text().splitlines()]


def configured(
    folder: Path,
    *strangers: Stranger,
    more: dict[str, Any] | None = None,
    serve: dict[str, Any] | None = None,
    fold: str | dict[str, Any] = "on",
) -> Path:
    """Write a configuration that names some servers."""
    servers = {stranger.name: stranger.entry() for stranger in strangers} | (more or {})
    search = fold if isinstance(fold, dict) else {"enabled": fold}
    content = {
        "mcpServers": servers,
        "serve": {"state_dir": str(folder / "state"), **(serve or {})},
        "tools": {"tool_search": search},
    }
    path = folder / "gateway.json"
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def found(folder: Path, *tools: dict[str, Any]) -> Path:
    """Write a catalog down, of plain records."""
    path = folder / "catalog.json"
    plain = [{"parameters": own.get("inputSchema"), **own} for own in tools]
    for own in plain:
        own.pop("inputSchema", None)
    path.write_text(json.dumps(plain), encoding="utf-8")
    return path


def resident_mb(pid: int) -> float:
    """Return what a process holds in memory now."""
    return _status(pid, "VmRSS")


def peak_mb(pid: int) -> float:
    """Return the most that a process has held in memory."""
    return _status(pid, "VmHWM")


def _status(pid: int, key: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1_024
