"""The headers of a request: read once, asked for by name."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

__all__ = ["headers_of"]

_READ = "toolfold.headers"


def headers_of(scope: MutableMapping[str, Any], name: bytes) -> list[str]:
    """Return the values of a header, in their order; nothing where the request has none.

    Args:
        scope: The request, in the words of ASGI. What was read is kept in it.
        name: The header's name, in small letters.
    """
    read: dict[bytes, list[str]] | None = scope.get(_READ)
    if read is None:
        read = scope[_READ] = {}
        for key, value in scope["headers"]:
            read.setdefault(key.lower(), []).append(value.decode("latin-1"))
    return read.get(name, [])
