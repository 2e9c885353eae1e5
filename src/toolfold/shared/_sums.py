"""What is known of all tools together, kept as tools come and go.

Sums can be added to and taken from, so a change costs what it changes and not the catalog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolfold.search.partial import FIELD_COUNT, ToolEntry, dimensions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = ["SourceSums", "Sums", "apply"]


def _no_counts() -> NDArray[np.int64]:
    import numpy as np

    return np.zeros(FIELD_COUNT, dtype=np.int64)


def _no_vector() -> NDArray[np.float64]:
    import numpy as np

    return np.zeros(dimensions())


@dataclass(slots=True)
class SourceSums:
    """The sums of some tools, of one source or of all."""

    size: int = 0
    lengths: NDArray[np.int64] = field(default_factory=_no_counts)
    filled: NDArray[np.int64] = field(default_factory=_no_counts)
    vectors: NDArray[np.float64] = field(default_factory=_no_vector)
    holders: Counter[str] = field(default_factory=Counter[str])

    def add(self, entry: ToolEntry, sign: int) -> None:
        """Add an entry, or take it away."""
        import numpy as np

        own = np.array(entry.document.lengths, dtype=np.int64)
        self.size += sign
        self.lengths += sign * own
        self.filled += sign * (own > 0)
        self.vectors += sign * entry.vector.astype(np.float64)
        for term in set(entry.document.terms):
            self.holders[term] += sign


@dataclass(slots=True)
class Sums:
    """What a push changes: the sums of what comes, less those of what goes."""

    sources: dict[str, SourceSums] = field(default_factory=dict[str, SourceSums])
    moment: Any = None

    def add(self, entries: Iterable[ToolEntry], sign: int = 1) -> None:
        """Add entries, or take them away."""
        import numpy as np

        entries = list(entries)
        for entry in entries:
            self.sources.setdefault(entry.source, SourceSums()).add(entry, sign)
        if self.moment is None:
            self.moment = np.zeros((dimensions(), dimensions()))
        if entries:
            vectors = np.stack([entry.vector for entry in entries]).astype(np.float64)
            self.moment += sign * (vectors.T @ vectors)


def apply(connection: Connection[Any], tenant: str, sums: Sums) -> None:
    """Write what a push changed. The caller holds the catalog's row."""
    import numpy as np

    _apply_sources(connection, tenant, sums.sources)
    whole = SourceSums()
    for own in sums.sources.values():
        whole.size += own.size
        whole.lengths += own.lengths
        whole.filled += own.filled
        whole.vectors += own.vectors
        whole.holders.update(own.holders)
    by_source = [
        (term, source, n)
        for source, own in sums.sources.items()
        for term, n in own.holders.items()
        if n
    ]
    # In one order, so that two who change different catalogs never wait for each other.
    by_source.sort()
    _count(connection, tenant, by_source)
    totals = sorted((term, n) for term, n in whole.holders.items() if n)
    connection.execute(
        "insert into toolfold.terms (tenant, term, holders)"
        " select %s, * from unnest(%s::text[], %s::int[])"
        " on conflict (tenant, term) do update set holders = terms.holders + excluded.holders",
        (tenant, [t for t, _ in totals], [n for _, n in totals]),
    )
    connection.execute(
        "delete from toolfold.terms where tenant = %s and term = any(%s) and holders <= 0",
        (tenant, [t for t, n in totals if n < 0]),
    )
    row = connection.execute(
        "select lengths, filled, vector_sum, moment from toolfold.catalogs where tenant = %s",
        (tenant,),
    ).fetchone()
    assert row is not None
    vectors = np.frombuffer(row[2]) + whole.vectors
    moment = np.frombuffer(row[3]) + sums.moment.ravel()
    connection.execute(
        "update toolfold.catalogs set version = version + 1, size = size + %s, lengths = %s,"
        " filled = %s, vector_sum = %s, moment = %s where tenant = %s",
        (
            whole.size,
            _summed(row[0], whole.lengths),
            _summed(row[1], whole.filled),
            vectors.tobytes(),
            moment.tobytes(),
            tenant,
        ),
    )


def _count(
    connection: Connection[Any], tenant: str, counts: Sequence[tuple[str, str, int]]
) -> None:
    connection.execute(
        "insert into toolfold.source_terms (tenant, term, source, holders)"
        " select %s, * from unnest(%s::text[], %s::text[], %s::int[])"
        " on conflict (tenant, term, source)"
        " do update set holders = source_terms.holders + excluded.holders",
        (tenant, *([count[i] for count in counts] for i in range(3))),
    )
    gone = [(term, source) for term, source, n in counts if n < 0]
    connection.execute(
        "delete from toolfold.source_terms s using unnest(%s::text[], %s::text[]) g (term, source)"
        " where s.tenant = %s and s.term = g.term and s.source = g.source and s.holders <= 0",
        ([term for term, _ in gone], [source for _, source in gone], tenant),
    )


def _apply_sources(
    connection: Connection[Any], tenant: str, sources: Mapping[str, SourceSums]
) -> None:
    """Write the sums of some sources; one that has no tool left is gone."""
    import numpy as np
    from pgvector import Vector

    rows = connection.execute(
        "select source, size, lengths, filled, vector_sum from toolfold.sources"
        " where tenant = %s and source = any(%s)",
        (tenant, list(sources)),
    ).fetchall()
    before = {row[0]: row[1:] for row in rows}
    rows = connection.execute(
        "select source, array_agg(distinct toolset) from toolfold.tools"
        " where tenant = %s and source = any(%s) and toolset is not null group by source",
        (tenant, list(sources)),
    ).fetchall()
    toolsets = dict(rows)
    nothing = (0, [0] * FIELD_COUNT, [0] * FIELD_COUNT, np.zeros(dimensions()).tobytes())
    gone: list[str] = []
    written: list[tuple[Any, ...]] = []
    for source, own in sources.items():
        size, lengths, filled, total = before.get(source, nothing)
        if size + own.size <= 0:
            gone.append(source)
            continue
        vectors = np.frombuffer(total) + own.vectors
        mean = vectors / max(float(np.linalg.norm(vectors)), 1e-6)
        written.append((
            tenant, source, toolsets.get(source, []), size + own.size,
            _summed(lengths, own.lengths), _summed(filled, own.filled), vectors.tobytes(),
            Vector(mean.astype(np.float32)),
        ))  # fmt: skip
    if written:
        connection.cursor().executemany(
            "insert into toolfold.sources"
            " (tenant, source, toolsets, size, lengths, filled, vector_sum, mean)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s)"
            " on conflict (tenant, source) do update set toolsets = excluded.toolsets,"
            " size = excluded.size, lengths = excluded.lengths, filled = excluded.filled,"
            " vector_sum = excluded.vector_sum, mean = excluded.mean",
            written,
        )
    if gone:
        connection.execute(
            "delete from toolfold.sources where tenant = %s and source = any(%s)", (tenant, gone)
        )


def _summed(before: Sequence[int], change: NDArray[np.int64]) -> list[int]:
    return [old + new for old, new in zip(before, change.tolist(), strict=True)]
