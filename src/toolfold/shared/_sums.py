"""What is known of all tools together, kept as tools come and go.

Sums can be added to and taken from, so a change costs what it changes and not the catalog.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolfold.search.partial import FIELD_COUNT, ToolEntry, dimensions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = ["SourceSums", "Sums", "apply"]

_SEPARATOR = "\n"
"""Stands between terms, which are words."""


def _no_counts() -> NDArray[np.int64]:
    import numpy as np

    return np.zeros(FIELD_COUNT, dtype=np.int64)


def _no_vector() -> NDArray[np.float64]:
    import numpy as np

    return np.zeros(dimensions())


def _no_moment() -> NDArray[np.float64]:
    import numpy as np

    return np.zeros((dimensions(), dimensions()))


@dataclass(slots=True)
class SourceSums:
    """The sums of some tools, of one source or of all."""

    size: int = 0
    lengths: NDArray[np.int64] = field(default_factory=_no_counts)
    filled: NDArray[np.int64] = field(default_factory=_no_counts)
    vectors: NDArray[np.float64] = field(default_factory=_no_vector)
    holders: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: SourceSums) -> None:
        """Add the sums of other tools."""
        self.size += other.size
        self.lengths += other.lengths
        self.filled += other.filled
        self.vectors += other.vectors
        for term, count in other.holders.items():
            self.holders[term] += count

    @staticmethod
    def of(entries: Sequence[ToolEntry], sign: int) -> SourceSums:
        """Return the sums of some tools; those to take away where the sign is -1."""
        import numpy as np

        own = np.array([entry.document.lengths for entry in entries], dtype=np.int64)
        vectors = np.stack([entry.vector for entry in entries])
        holders = Counter(term for entry in entries for term in set(entry.document.terms))
        if sign < 0:
            holders = Counter({term: -count for term, count in holders.items()})
        # Half-precision numbers add up exactly in double precision, in whatever order.
        total = vectors.sum(axis=0, dtype=np.float64)
        return SourceSums(
            sign * len(entries), sign * own.sum(axis=0), sign * (own > 0).sum(axis=0),
            sign * total, holders,
        )  # fmt: skip


@dataclass(slots=True)
class Sums:
    """What a push changes: the sums of what comes, less those of what goes."""

    sources: dict[str, SourceSums] = field(default_factory=dict[str, SourceSums])
    moment: NDArray[np.float64] = field(default_factory=_no_moment)

    def add(self, entries: Sequence[ToolEntry], sign: int = 1) -> None:
        """Add entries, or take them away."""
        import numpy as np

        if not entries:
            return
        by_source: defaultdict[str, list[ToolEntry]] = defaultdict(list)
        for entry in entries:
            by_source[entry.source].append(entry)
        for source, own in by_source.items():
            self.sources.setdefault(source, SourceSums()).add(SourceSums.of(own, sign))
        vectors = np.stack([entry.vector for entry in entries]).astype(np.float64)
        self.moment += sign * (vectors.T @ vectors)


def apply(connection: Connection[Any], tenant: str, sums: Sums) -> None:
    """Write what a push changed. The caller holds the catalog's row."""
    import numpy as np

    _apply_sources(connection, tenant, sums.sources)
    whole = SourceSums()
    for own in sums.sources.values():
        whole.add(own)
    _count(connection, tenant, whole.holders)
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


def _count(connection: Connection[Any], tenant: str, holders: Mapping[str, int]) -> None:
    """Write how many tools hold a term."""
    changed = {term: n for term, n in holders.items() if n}
    if not changed:
        return
    counted = {"tenant": tenant, "terms": _SEPARATOR.join(changed)}
    counted["counts"] = ",".join(map(str, changed.values()))
    connection.execute(
        "insert into toolfold.terms (tenant, term, holders)"
        " select %(tenant)s, term, holders from unnest(string_to_array(%(terms)s, chr(10)),"
        " string_to_array(%(counts)s, ',')::int[]) as counted (term, holders)"
        ' order by term collate "C"'
        " on conflict (tenant, term) do update set holders = terms.holders + excluded.holders",
        counted,
    )
    if any(n < 0 for n in changed.values()):
        connection.execute(
            "delete from toolfold.terms where tenant = %(tenant)s and holders <= 0"
            " and term = any(string_to_array(%(terms)s, chr(10)))",
            counted,
        )


def _apply_sources(
    connection: Connection[Any], tenant: str, sources: Mapping[str, SourceSums]
) -> None:
    """Write the sums of some sources; one that has no tool left is gone."""
    import numpy as np
    from pgvector import Vector

    # Long lists go as one text each, which is far quicker to write and to read than an array.
    rows = connection.execute(
        "select source, size, lengths, filled, vector_sum, array_to_string(terms, chr(10)),"
        " array_to_string(holders, ',') from toolfold.sources"
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
    nothing = (0, [0] * FIELD_COUNT, [0] * FIELD_COUNT, np.zeros(dimensions()).tobytes(), "", "")
    gone: list[str] = []
    written: list[tuple[Any, ...]] = []
    for source, own in sources.items():
        size, lengths, filled, total, terms, holders = before.get(source, nothing)
        if size + own.size <= 0:
            gone.append(source)
            continue
        vectors = np.frombuffer(total) + own.vectors
        mean = vectors / max(float(np.linalg.norm(vectors)), 1e-6)
        held = _held(terms, holders, own.holders)
        written.append((
            tenant, source, toolsets.get(source, []), size + own.size,
            _summed(lengths, own.lengths), _summed(filled, own.filled), vectors.tobytes(),
            Vector(mean.astype(np.float32)), _SEPARATOR.join(held),
            ",".join(map(str, held.values())),
        ))  # fmt: skip
    if written:
        connection.cursor().executemany(
            "insert into toolfold.sources"
            " (tenant, source, toolsets, size, lengths, filled, vector_sum, mean, terms, holders)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, string_to_array(%s, chr(10)),"
            " string_to_array(%s, ',')::int[])"
            " on conflict (tenant, source) do update set toolsets = excluded.toolsets,"
            " size = excluded.size, lengths = excluded.lengths, filled = excluded.filled,"
            " vector_sum = excluded.vector_sum, mean = excluded.mean, terms = excluded.terms,"
            " holders = excluded.holders",
            written,
        )
    if gone:
        connection.execute(
            "delete from toolfold.sources where tenant = %s and source = any(%s)", (tenant, gone)
        )


def _held(terms: str, holders: str, change: Mapping[str, int]) -> dict[str, int]:
    """Return how many tools hold each term, after a change."""
    if not terms:
        return {term: n for term, n in change.items() if n}
    counts = map(int, holders.split(","))
    held = dict(zip(terms.split(_SEPARATOR), counts, strict=True))
    for term, n in change.items():
        held[term] = held.get(term, 0) + n
    return {term: n for term, n in held.items() if n}


def _summed(before: Sequence[int], change: NDArray[np.int64]) -> list[int]:
    return [old + new for old, new in zip(before, change.tolist(), strict=True)]
