"""The proxy as a user runs it: `toolfold proxy` over a configuration file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gateways import TOOLFOLD

__all__ = ["Proxy", "before"]

_ADDRESS = re.compile(r"listening on (http://\S+)")
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
        process = subprocess.Popen(
            [TOOLFOLD, "proxy", "--config", str(self.config), "--listen", f"127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=dict(os.environ),
            encoding="utf-8",
        )
        log: list[str] = []
        heard, found = threading.Event(), []

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                log.append(line)
                if not found and (match := _ADDRESS.search(line)):
                    found.append(match[1].rstrip("/"))
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
            process.wait(_PATIENCE)
            reader.join(_PATIENCE)
            if process.stderr is not None:
                process.stderr.close()
            assert not [line for line in log if "Traceback" in line], "".join(log)


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
