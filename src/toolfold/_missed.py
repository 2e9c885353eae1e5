"""Which of the sources that are not there now a search would have found something of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from toolfold.absent import AbsentSource
from toolfold.catalog import Catalog
from toolfold.search import Ranker, index_of

__all__ = ["missed"]


def missed(
    absent: Sequence[AbsentSource],
    needs: Iterable[str],
    catalog: Catalog,
    found: Collection[str],
    ranker: Ranker,
    *,
    floor: float,
    limit: int,
) -> tuple[AbsentSource, ...]:
    """Return the sources that a search speaks of, finds, or would find if they were there.

    Args:
        absent: The sources that are not there, as the caller may know of them.
        needs: What was searched for.
        catalog: The tools that were searched.
        found: The sources of the hits.
        ranker: How to rank; one that only computes.
        floor: How probable a hit must be, where the ranker knows.
        limit: How many hits a need gets.
    """
    needs = list(needs)

    def is_missed(away: AbsentSource) -> bool:
        # A call of a listed tool waits for the first start of its server.
        if away.name in found and not away.is_starting:
            return True
        if any(away.is_named_in(need) for need in needs):
            return True
        return any(_would_be_found(away, need, catalog, ranker, floor, limit) for need in needs)

    return tuple(away for away in absent if is_missed(away))


def _would_be_found(
    away: AbsentSource, need: str, catalog: Catalog, ranker: Ranker, floor: float, limit: int
) -> bool:
    """Whether a tool of a source would be among the first hits of a need."""
    best = _scores(Catalog({t.wire_name: t for t in away.tools}.values()), need, ranker, 1)
    if not best or (ranker.calibrated and best[0] < floor):
        return False
    there = _scores(catalog, need, ranker, limit)
    return len(there) < limit or best[0] >= there[-1]


def _scores(catalog: Catalog, need: str, ranker: Ranker, limit: int) -> list[float]:
    if not len(catalog):
        return []
    index = index_of(catalog.tools, catalog.fingerprint, ranker)
    return [match.score for match in index.search(need, limit)]
