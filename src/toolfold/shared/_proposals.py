"""What the database proposes for a query, and what it says of all tools.

Few tools are looked through one by one, and then everything is exact; of many the index over
meaning proposes some, and the index over words those with the rare words of the request.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolfold.scope import Scope
from toolfold.search.lexical import WordStatistics
from toolfold.search.partial import (
    AllTools,
    AskedText,
    ToolEntry,
    compares_sources,
    name_terms,
)
from toolfold.shared._engine import Engine, Holders
from toolfold.shared._scopes import ScopeFilter, scope_filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = [
    "SCANNED_TO",
    "Proposal",
    "Statistics",
    "lacks_indexes",
    "proposal",
    "reach",
    "statistics",
]

SCANNED_TO = 8_192
"""Up to so many tools all are looked through."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of all tools that a scope reaches."""

    version: int
    size: int
    mean_lengths: NDArray[np.float64]
    vector_sum: NDArray[np.float64]
    moment: NDArray[np.float64]
    source_count: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """The tools that come into question, and what is known of all."""

    ids: list[int]
    entries: list[ToolEntry]
    whole: AllTools


def reach(
    connection: Connection[Any],
    tenant: str,
    scope: Scope,
    sources: Collection[str] | None = None,
    *,
    read_only: bool = False,
) -> ScopeFilter:
    """Return what is left of a catalog.

    Args:
        connection: To the database.
        tenant: Whose catalog it is.
        scope: What the caller may know of.
        sources: The sources that there are for the caller; None for all.
        read_only: Whether only tools that say they change nothing are left.
    """
    if scope.holds_everything and sources is None:
        return ScopeFilter(None, None, read_only)
    rows = connection.execute(
        "select source, toolsets from toolfold.sources where tenant = %s", (tenant,)
    ).fetchall()
    there = {source: toolsets for source, toolsets in rows if sources is None or source in sources}
    left = scope_filter(scope, there)
    if left.sources is None and len(there) < len(rows):
        left = left._replace(sources=list(there))
    return left._replace(read_only=read_only)


def statistics(
    connection: Connection[Any], tenant: str, known: Statistics | None
) -> Statistics | None:
    """Return what is known of a tenant's whole catalog; None where there is none.

    Args:
        connection: To the database.
        tenant: Whose it is.
        known: What was known before; the same comes back where nothing changed.
    """
    import numpy as np

    row = connection.execute(
        "select version, size from toolfold.catalogs where tenant = %s", (tenant,)
    ).fetchone()
    if row is None or not row[1]:
        return None
    if known is not None and known.version == row[0]:
        return known
    row = connection.execute(
        "select version, size, lengths, filled, vector_sum, moment,"
        " (select count(*) from toolfold.sources s where s.tenant = c.tenant)"
        " from toolfold.catalogs c where tenant = %s",
        (tenant,),
    ).fetchone()
    assert row is not None
    vectors = np.frombuffer(row[4])
    moment = np.frombuffer(row[5]).reshape(len(vectors), len(vectors))
    return Statistics(row[0], row[1], _means(row[2], row[3]), vectors, moment, row[6])


def lacks_indexes(connection: Connection[Any], tenant: str) -> bool:
    """Whether a tenant's catalog is large, and there are no indexes to search it by."""
    row = connection.execute(
        "select size > %s and not toolfold.has_large_indexes() from toolfold.catalogs"
        " where tenant = %s",
        (SCANNED_TO, tenant),
    ).fetchone()
    return row is not None and row[0]


def proposal(
    connection: Connection[Any], tenant: str, query: str, all_tools: Statistics, left: ScopeFilter
) -> Proposal | None:
    """Return what comes into question for a query; None where the scope leaves nothing."""
    own = _restricted(connection, tenant, all_tools, left)
    if not own.size:
        return None
    holders = Holders(connection, tenant, left.sources, all_tools.source_count)
    texts = holders.read(query)
    is_small = own.size <= SCANNED_TO
    engine = Engine(connection, tenant, left, own.size)
    if not is_small:
        engine.prepare()
    ids: set[int] = set()
    for text in texts:
        ids.update(engine.scanned(text, holders) if is_small else engine.indexed(text, holders))
    if not any(holders.known.get(term) for text in texts for term in text.terms):
        ids.update(engine.by_letters(query))
    found = engine.entries(sorted(ids))
    if not found:
        return None
    holders.learn({term for _, entry in found for term in name_terms(entry.name)})
    if is_small and (cosines := engine.cosines(texts[0])) is not None:
        own = _spread_as(own, texts[0], *cosines)
    # Words are counted by source, and of a source less may be left than holds a word.
    counts = {term: min(n, own.size) for term, n in holders.known.items() if n}
    terms = {term for text in texts for term in text.terms}
    sources = sorted({entry.source for _, entry in found})
    compares = compares_sources(own.source_count)
    whole = AllTools(
        WordStatistics(own.size, counts, own.mean_lengths),
        own.vector_sum,
        own.moment,
        own.source_count,
        engine.source_means(sources) if compares else {},
        engine.nearest_sources(texts) if compares else {},
        engine.source_terms(sources, terms) if compares else {},
    )
    return Proposal([id for id, _ in found], [entry for _, entry in found], whole)


def _restricted(
    connection: Connection[Any], tenant: str, own: Statistics, left: ScopeFilter
) -> Statistics:
    """Return what is known of the sources that a scope reaches."""
    import numpy as np

    if left.sources is None:
        return own
    rows = connection.execute(
        "select size, lengths, filled, vector_sum from toolfold.sources"
        " where tenant = %s and source = any(%s)",
        (tenant, left.sources),
    ).fetchall()
    if not rows:
        return replace(own, size=0)
    size = sum(row[0] for row in rows)
    lengths, filled = (np.array([row[i] for row in rows]).sum(axis=0) for i in (1, 2))
    vectors = np.stack([np.frombuffer(row[3]) for row in rows]).sum(axis=0)
    # How far cosines lie apart is taken from all tools; where they lie, from these.
    mean, every = vectors / size, own.vector_sum / own.size
    covariance = own.moment / own.size - np.outer(every, every)
    return replace(
        own,
        size=size,
        mean_lengths=_means(lengths, filled),
        vector_sum=vectors,
        moment=size * (covariance + np.outer(mean, mean)),
        source_count=len(rows),
    )


def _spread_as(
    own: Statistics, text: AskedText, size: int, total: float, square: float
) -> Statistics:
    """Return statistics that give a text the mean and deviation of these sums of its cosines."""
    import numpy as np

    vector = text.vector.astype(np.float64)
    length = max(float(vector @ vector), 1e-9)
    return replace(
        own,
        size=size,
        vector_sum=vector * (total / length),
        moment=np.outer(vector, vector) * (square / length**2),
    )


def _means(lengths: Any, filled: Any) -> NDArray[np.float64]:
    import numpy as np

    return np.maximum(np.array(lengths) / np.maximum(filled, 1), 1e-9)
