"""Whether anybody listens at an address of this machine."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

__all__ = ["is_listening", "is_loopback"]

_PATIENCE = 0.5
_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str | None) -> bool:
    """Whether a host is this machine by its name."""
    return host in ("localhost", "::1") or (host or "").startswith("127.")


def is_listening(url: str) -> bool | None:
    """Return whether a loopback address is listened at; None for others, which are not asked."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return False
    if not is_loopback(host) or host is None:
        return None
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False
