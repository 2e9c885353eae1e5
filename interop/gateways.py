"""The gateway as a user runs it: `toolfold serve` over a configuration file."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import TOOLFOLD, listening

__all__ = ["TOOLFOLD", "Gateway", "configured"]

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
        command = [*self.command, "--http", "127.0.0.1:0"]
        with listening(command, patience=_PATIENCE, env=env, is_heard=True) as address:
            yield address


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
