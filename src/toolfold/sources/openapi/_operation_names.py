"""What an API's operations are called: each has a name of its own, whatever the document says.

An `operationId` is taken where there is one, with what no client takes in a name put as `_`
(`repos/list-for-org` is `repos_list-for-org`); else method and path make one
(`get_users_by_id`). Where two come to the same name, both have method and path behind it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Named", "operation_names"]

_LIMIT = 200
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")
_RUNS = re.compile(r"_{2,}")
_PARAMETER = re.compile(r"\{([^{}]*)\}")


class Named(NamedTuple):
    """What an operation may be called by."""

    operation_id: str
    method: str
    path: str


def operation_names(operations: Sequence[Named]) -> list[str]:
    """Return a name for each operation, all of them different."""
    first = [_plain(o.operation_id) or _from_path(o) for o in operations]
    often = Counter(first)
    names = [
        name if often[name] == 1 or not _plain(o.operation_id) else f"{name}_{_from_path(o)}"
        for name, o in zip(first, operations, strict=True)
    ]
    used: set[str] = set()
    for place, name in enumerate(names):
        number = 1
        # Paths that differ in punctuation alone: the order of the document counts them.
        while names[place] in used:
            number += 1
            names[place] = f"{name}_{number}"
        used.add(names[place])
    return names


def _plain(text: str) -> str:
    # A single `_`: what stands before two is taken for the name of a source.
    return _RUNS.sub("_", _NOT_ALLOWED.sub("_", text[:_LIMIT])).strip("_-")


def _from_path(operation: Named) -> str:
    path = _PARAMETER.sub(r"by \1", operation.path[:_LIMIT])
    return _plain(f"{operation.method.lower()} {path}")
