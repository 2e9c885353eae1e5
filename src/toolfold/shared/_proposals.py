"""What the database proposes for a query, and what it says of all tools.

Few tools are looked through one by one, and then everything is exact; of many the index over
meaning proposes some, and the index over words those with the rare words of the request.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import log1p
from typing import TYPE_CHECKING, Any, LiteralString, cast

from toolfold.scope import Scope
from toolfold.search.lexical import WordStatistics
from toolfold.search.partial import AllTools, AskedText, ToolEntry, asked, name_terms
from toolfold.shared._rows import entry_of, sparse, term_number
from toolfold.shared._scopes import ScopeFilter, scope_filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = ["Proposal", "Statistics", "proposal", "reach", "statistics"]

SCANNED_TO = 8_192
"""Up to so many tools all are looked through."""

RARE_ROWS = 6_000
"""So many tools are compared word by word in a large catalog, about: those with the rarest words
of the request."""

COMMON_ROWS = 200_000
"""A word that more tools hold is looked for only together with others."""

READINGS = 8
"""How often a query is read anew because a reading asked for more words."""

_READING_AMONG = 4
"""Of so many times as many tools with the rare words, those that change nothing are taken."""

_EF_SEARCH = 200


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


def proposal(
    connection: Connection[Any], tenant: str, query: str, all_tools: Statistics, left: ScopeFilter
) -> Proposal | None:
    """Return what comes into question for a query; None where the scope leaves nothing."""
    own = _restricted(connection, tenant, all_tools, left)
    if not own.size:
        return None
    holders = _Holders(connection, tenant, left.sources)
    texts = holders.read(query)
    is_small = own.size <= SCANNED_TO
    engine = _Engine(connection, tenant, left, own.size)
    ids: set[int] = set()
    for text in texts:
        ids.update(engine.scanned(text, holders) if is_small else engine.indexed(text, holders))
    if not any(holders.known.get(term) for text in texts for term in text.terms):
        ids.update(engine.by_letters(query))
    found = engine.entries(sorted(ids))
    if not found:
        return None
    holders.learn({term for _, entry in found for term in name_terms(entry.name)})
    if is_small:
        own = engine.exact_spread(own, texts[0])
    # Words are counted by source, and of a source less may be left than holds a word.
    counts = {term: min(n, own.size) for term, n in holders.known.items() if n}
    terms = {term for text in texts for term in text.terms}
    sources = sorted({entry.source for _, entry in found})
    whole = AllTools(
        WordStatistics(own.size, counts, own.mean_lengths),
        own.vector_sum,
        own.moment,
        own.source_count,
        engine.source_means(sources),
        engine.nearest_sources(texts),
        engine.source_terms(sources, terms),
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


def _means(lengths: Any, filled: Any) -> NDArray[np.float64]:
    import numpy as np

    return np.maximum(np.array(lengths) / np.maximum(filled, 1), 1e-9)


class _Holders:
    """How many tools hold a term, asked for in as few questions as a query's reading takes."""

    def __init__(self, connection: Connection[Any], tenant: str, sources: list[str] | None) -> None:
        self._connection = connection
        self._tenant = tenant
        self._sources = sources
        self.known: dict[str, int] = {}

    def read(self, query: str) -> list[AskedText]:
        """Return the texts of a query, read as all tools write their words."""
        texts: list[AskedText] = []
        for _ in range(READINGS):
            missing: set[str] = set()

            def is_held(term: str, missing: set[str] = missing) -> bool:
                if term not in self.known:
                    missing.add(term)
                return self.known.get(term, 0) > 0

            texts = asked(query, is_held)
            missing |= {t for text in texts for t in text.terms if t not in self.known}
            if not missing:
                break
            self.learn(missing)
        return texts

    def learn(self, terms: set[str]) -> None:
        """Ask for terms that are not known."""
        # PostgreSQL's text holds no zero.
        wanted = sorted(t for t in terms if t not in self.known and "\0" not in t)
        self.known.update(dict.fromkeys(terms - self.known.keys(), 0))
        if not wanted:
            return
        if self._sources is None:
            rows = self._connection.execute(
                "select term, holders from toolfold.terms where tenant = %s and term = any(%s)",
                (self._tenant, wanted),
            )
        else:
            rows = self._connection.execute(
                "select term, sum(holders)::int from toolfold.source_terms"
                " where tenant = %s and term = any(%s) and source = any(%s) group by term",
                (self._tenant, wanted, self._sources),
            )
        self.known.update(rows.fetchall())


class _Engine:
    """Asks the database for the tools that come into question."""

    def __init__(
        self, connection: Connection[Any], tenant: str, left: ScopeFilter, size: int
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._sources = left.sources
        self._left = left
        self._values = left.values(tenant)
        self._size = size
        self._where = left.condition

    def _ids(self, ordered: str, most: int, **values: Any) -> list[int]:
        return [
            row[0]
            for row in self._execute(
                f"select id from toolfold.tools where {self._where} {ordered} limit %(most)s",
                most=most,
                **values,
            )
        ]

    def _execute(self, statement: str, **values: Any) -> list[Any]:
        fixed = cast("LiteralString", statement)  # made of the texts of this package alone
        return self._connection.execute(fixed, self._values | values).fetchall()

    def scanned(self, text: AskedText, holders: _Holders) -> list[int]:
        """Return the nearest tools of all, by meaning and by words."""
        from pgvector import HalfVector

        near = self._ids(
            "order by (vector <#> %(query)s) + 0, digest",
            text.candidates,
            query=HalfVector(text.vector),
        )
        worth = self._worth(text, holders)
        if not worth:
            return near
        said = self._ids(
            "and terms && %(terms)s order by words <#> %(query)s, digest",
            text.candidates,
            terms=[term_number(self._tenant, term) for term in worth],
            query=sparse(self._tenant, worth),
        )
        return near + said

    def indexed(self, text: AskedText, holders: _Holders) -> list[int]:
        """Return near tools by the index over meaning, and those with the rare words."""
        from pgvector import HalfVector

        self._connection.execute(
            "select set_config('hnsw.ef_search', %s, true),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', true)",
            (str(_EF_SEARCH),),
        )
        near = self._ids(
            "order by vector <#> %(query)s", text.candidates, query=HalfVector(text.vector)
        )
        worth = self._worth(text, holders)
        if not worth:
            return near
        rare, together = self._chosen(worth, holders)
        said = self._execute(
            "select id from toolfold.by_words("
            "%(query)s, %(any)s::int[], %(all)s::int[], %(sources)s, %(scope)s::jsonb, %(most)s)",
            query=sparse(self._tenant, worth),
            any=[term_number(self._tenant, term) for term in rare],
            all=[term_number(self._tenant, term) for term in together] or None,
            most=text.candidates * (_READING_AMONG if self._left.read_only else 1),
        )
        return near + [row[0] for row in said]

    def _worth(self, text: AskedText, holders: _Holders) -> dict[str, float]:
        """Return the request's side of BM25: what each of its terms is worth where it stands."""
        return {
            term: weight * log1p((self._size - n + 0.5) / (n + 0.5))
            for term, weight in text.terms.items()
            if (n := holders.known.get(term, 0))
        }

    def _chosen(self, worth: dict[str, float], holders: _Holders) -> tuple[list[str], list[str]]:
        """Return the rare terms, and the terms to be looked for together where none is rare."""
        by_holders = sorted(worth, key=lambda term: holders.known[term])
        rare: list[str] = []
        rows = 0
        for term in by_holders:
            rows += holders.known[term]
            if rows > RARE_ROWS and rare:
                break
            if holders.known[term] <= COMMON_ROWS:
                rare.append(term)
        said = [term for term in by_holders if term not in rare]
        return rare, [] if rare and rows <= RARE_ROWS else [*rare, *said][:2]

    def by_letters(self, query: str) -> list[int]:
        """Return tools whose names hold the letters of a query, of which no word is known."""
        # PostgreSQL's text holds no zero.
        words = [w for w in query.lower().split() if len(w) > 3 and "\0" not in w][:4]
        if not words:
            return []
        return self._ids("and lower(name) like any(%(words)s)", 40, words=[f"%{w}%" for w in words])

    def entries(self, ids: Sequence[int]) -> list[tuple[int, ToolEntry]]:
        """Return what search knows of some tools."""
        rows = self._execute(
            "select id, name, source, digest, document, term_count, vector"
            f" from toolfold.tools where id = any(%(ids)s) and {self._where}",
            ids=list(ids),
        )
        return [(row[0], entry_of(*row[1:])) for row in rows]

    def exact_spread(self, own: Statistics, text: AskedText) -> Statistics:
        """Return statistics whose spread is that of a text over the tools of the scope."""
        import numpy as np
        from pgvector import HalfVector

        if self._sources is None and self._left.is_by_source:
            return own
        [(size, total, square)] = self._execute(
            "select count(*), sum(c), sum(c * c) from (select -(vector <#> %(query)s) as c"
            f" from toolfold.tools where {self._where}) as cosines",
            query=HalfVector(text.vector),
        )
        if not size:
            return own
        vector = text.vector.astype(np.float64)
        length = max(float(vector @ vector), 1e-9)
        # Any sums will do that give this text its own mean and deviation.
        return replace(
            own,
            size=size,
            vector_sum=vector * (total / length),
            moment=np.outer(vector, vector) * (square / length**2),
        )

    def source_means(self, sources: Sequence[str]) -> dict[str, Any]:
        """Return the unit means of some sources."""
        import numpy as np

        rows = self._execute(
            "select source, mean from toolfold.sources"
            " where tenant = %(tenant)s and source = any(%(names)s)",
            names=list(sources),
        )
        return {name: np.asarray(_array(mean), dtype=np.float32) for name, mean in rows}

    def nearest_sources(self, texts: Sequence[AskedText]) -> dict[bytes, float]:
        """Return the cosine of the nearest source, for each text."""
        from pgvector import Vector

        where = "tenant = %(tenant)s"
        if self._sources is not None:
            where += " and source = any(%(sources)s)"
        return {
            text.vector.tobytes(): self._execute(
                f"select max(-(mean <#> %(query)s)) from toolfold.sources where {where}",
                query=Vector(text.vector),
            )[0][0]
            for text in texts
        }

    def source_terms(self, sources: Sequence[str], terms: set[str]) -> dict[str, frozenset[str]]:
        """Return which of some sources hold which terms."""
        rows = self._execute(
            "select term, array_agg(source) from toolfold.source_terms where tenant = %(tenant)s"
            " and term = any(%(terms)s) and source = any(%(names)s) group by term",
            terms=sorted(t for t in terms if "\0" not in t),
            names=list(sources),
        )
        return {term: frozenset(names) for term, names in rows}


def _array(value: Any) -> Any:
    return value.to_numpy() if hasattr(value, "to_numpy") else value
