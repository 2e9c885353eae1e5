"""Searches, one after the other, and how long each takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["timed"]

_Found = TypeVar("_Found")

_WARM = 10
"""How many searches go before those that count."""


def timed(
    search: Callable[[str], _Found], queries: Sequence[str]
) -> tuple[list[_Found], list[float]]:
    """Return what was found for each query, and in how many milliseconds."""
    for query in queries[:_WARM]:
        search(query)
    found: list[_Found] = []
    times: list[float] = []
    for query in queries:
        began = time.perf_counter()
        found.append(search(query))
        times.append((time.perf_counter() - began) * 1e3)
    return found, times
