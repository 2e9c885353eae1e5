"""The proxy as a user runs it: `toolfold proxy` over a configuration file."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from processes import TOOLFOLD, listening

__all__ = ["Proxy", "before"]

_PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Proxy:
    """One configuration of the proxy, in a folder of its own."""

    config: Path

    @contextmanager
    def listening(self, port: int = 0) -> Generator[str]:
        """Have it stand on this machine; yields its address.

        Args:
            port: Where; a free one by default.
        """
        command = [TOOLFOLD, "proxy", "--config", str(self.config)]
        command += ["--listen", f"127.0.0.1:{port}"]
        with listening(command, patience=_PATIENCE) as address:
            yield address.rstrip("/")


def before(
    upstream: str,
    folder: Path,
    *,
    store: Literal["memory", "file"] = "memory",
    **entry: Any,
) -> Proxy:
    """Write a configuration with one upstream.

    Args:
        upstream: Its address.
        folder: Where; also the proxy's state.
        store: Where hidden turns are kept.
        entry: More of the upstream's entry.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "proxy": {"upstreams": [{"name": "scripted", "url": upstream, **entry}], "store": store},
        "serve": {"state_dir": str(folder / "state")},
        "tools": {"tool_search": {"enabled": "on", "cache_dir": "off"}},
    }
    config = folder / "proxy.json"
    config.write_text(json.dumps(document, indent=2))
    return Proxy(config)
