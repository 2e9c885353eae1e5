"""The headers of a request: read once, asked for by name."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

__all__ = ["headers_of"]

_READ = "toolfold.headers"


def headers_of(scope: MutableMapping[str, Any], name: bytes) -> list[str]:
    """Return the values of a header, in their order; nothing where the request has none.

    Args:
        scope: The request, in the words of ASGI. What was read is kept in it, beside the very
            headers that it was read from: whoever takes some away puts a new list there.
        name: The header's name, in small letters.
    """
    kept: tuple[object, dict[bytes, list[str]]] | None = scope.get(_READ)
    if kept is None or kept[0] is not scope["headers"]:
        read: dict[bytes, list[str]] = {}
        for key, value in scope["headers"]:
            read.setdefault(key.lower(), []).append(value.decode("latin-1"))
        kept = scope[_READ] = (scope["headers"], read)
    return kept[1].get(name, [])
