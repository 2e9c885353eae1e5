"""Asks the database: how many tools hold a word, and which tools come into question."""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p
from typing import TYPE_CHECKING, Any, LiteralString, cast

from toolfold.search.partial import SHORTLIST, AskedText, ToolEntry, asked, leading, version
from toolfold.shared._chosen_words import chosen_words
from toolfold.shared._rows import entry_of, sparse, strong_number, term_number
from toolfold.shared._scopes import ScopeFilter

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["EF_SEARCH", "Engine", "Holders"]

LOOKED_AT = 40_000
"""So many tools at most are compared word by word, in a large catalog."""

EF_SEARCH = 800
"""How many tools the index over meaning keeps in view: four times the shortlist."""

WORDS_MORE = 1.5
"""So many times as many as come into question are taken by words. What a word is worth in a tool
was told when it was written, by the lengths of the tools of that time, and is told anew then."""

READINGS = 8
"""How often a query is read anew because a reading asked for more words."""

_READING_AMONG = 4
"""Of so many times as many tools by words, those that change nothing are taken."""


class Holders:
    """How many tools hold a term, asked for in as few questions as a query's reading takes.

    Args:
        connection: To the database.
        tenant: Whose tools they are.
        sources: The sources that are looked at; None where all are.
        source_count: How many there are in all.
    """

    def __init__(
        self,
        connection: Connection[Any],
        tenant: str,
        sources: list[str] | None,
        source_count: int,
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._sources = sources
        self._source_count = source_count
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
            self.known.update(self._of_all(wanted))
        elif 2 * len(self._sources) <= self._source_count:
            self.known.update(self._of_sources("s.source = any(%s)", wanted))
        else:
            # Of most sources: what all hold, less what the others do.
            others = self._of_sources("s.source <> all(%s)", wanted)
            counts = self._of_all(wanted).items()
            self.known.update({term: n - others.get(term, 0) for term, n in counts})

    def _of_all(self, terms: list[str]) -> dict[str, int]:
        rows = self._connection.execute(
            "select term, holders from toolfold.terms where tenant = %s and term = any(%s)",
            (self._tenant, terms),
        )
        return dict(rows.fetchall())

    def _of_sources(self, which: str, terms: list[str]) -> dict[str, int]:
        statement = (
            "select held.term, sum(held.n)::int from toolfold.sources s,"
            " unnest(s.terms, s.holders) as held (term, n)"
            f" where s.tenant = %s and {which} and held.term = any(%s) group by held.term"
        )
        fixed = cast("LiteralString", statement)  # made of the texts of this module alone
        rows = self._connection.execute(fixed, (self._tenant, self._sources, terms))
        return dict(rows.fetchall())


class Engine:
    """Asks the database for the tools that come into question."""

    def __init__(
        self, connection: Connection[Any], tenant: str, left: ScopeFilter, size: int
    ) -> None:
        self._connection = connection
        self._tenant = tenant
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

    def scanned(self, text: AskedText, holders: Holders) -> list[int]:
        """Return the nearest tools of all, by meaning and by words."""
        from pgvector import HalfVector

        near = self._ids(
            "order by (vector <#> %(query)s) + 0, digest",
            text.candidates,
            query=HalfVector(text.vector),
        )
        worth = self.worth(text, holders)
        if not worth:
            return near
        said = self._ids(
            "and terms && %(terms)s order by words <#> %(query)s, digest",
            text.candidates,
            terms=[term_number(self._tenant, term) for term in worth],
            query=sparse(self._tenant, worth),
        )
        return near + said

    def indexed(self, text: AskedText, holders: Holders) -> list[int]:
        """Return near tools by the index over meaning, and those with telling words."""
        return [*self.near(text), *self.said(text, holders)]

    def prepare(self, ef_search: int = EF_SEARCH) -> None:
        """Set what searches by the indexes go by, for this transaction."""
        self._connection.execute(
            "select set_config('hnsw.ef_search', %s, true),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', true),"
            # A plan for this scope and these words; and compiling it would take longer than it.
            " set_config('plan_cache_mode', 'force_custom_plan', true),"
            " set_config('jit', 'off', true)",
            (str(ef_search),),
        )

    def near(self, text: AskedText) -> list[int]:
        """Return the nearest tools by meaning: of those that a first look leaves."""
        from pgvector import HalfVector

        first = leading(text.vector)
        found = self._execute(
            "select id from (select id, digest, vector from toolfold.tools"
            f" where {self._where} order by subvector(vector, 1, {len(first)})"
            f"::halfvec({len(first)}) <#> %(leading)s limit %(shortlist)s) as short"
            " order by vector <#> %(query)s, digest limit %(most)s",
            leading=HalfVector(first),
            shortlist=SHORTLIST,
            query=HalfVector(text.vector),
            most=text.candidates,
        )
        return [row[0] for row in found]

    def said(self, text: AskedText, holders: Holders) -> list[int]:
        """Return the best tools by their words, of those that hold the telling ones."""
        worth = self.worth(text, holders)
        if not worth:
            return []
        chosen = chosen_words(worth, holders.known, self._size)
        found = self._execute(
            "select id from toolfold.by_words(%(query)s, %(any)s::int[], %(pairs)s::int[],"
            " %(sources)s, %(scope)s::jsonb, %(looked_at)s, %(most)s)",
            query=sparse(self._tenant, worth),
            any=[
                *(term_number(self._tenant, term) for term in chosen.rare),
                *(strong_number(self._tenant, term) for term in chosen.strong),
            ],
            pairs=[term_number(self._tenant, term) for pair in chosen.pairs for term in pair],
            looked_at=LOOKED_AT,
            most=int(text.candidates * WORDS_MORE)
            * (_READING_AMONG if self._left.read_only else 1),
        )
        return [row[0] for row in found]

    def worth(self, text: AskedText, holders: Holders) -> dict[str, float]:
        """Return the request's side of BM25: what each of its terms is worth where it stands."""
        return {
            term: weight * log1p((self._size - n + 0.5) / (n + 0.5))
            for term, weight in text.terms.items()
            if (n := holders.known.get(term, 0))
        }

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
            "select id, name, source, digest, document, term_count, vector,"
            " case when made_by = %(made_by)s then excerpt end"
            f" from toolfold.tools where id = any(%(ids)s) and {self._where}",
            ids=list(ids),
            made_by=version(),
        )
        return [(row[0], entry_of(*row[1:])) for row in rows]

    def cosines(self, text: AskedText) -> tuple[int, float, float] | None:
        """Return number, sum and sum of squares of a text's cosines over the tools of a scope.

        None is said where it reaches all tools, of which that is known.
        """
        from pgvector import HalfVector

        if self._left.sources is None and self._left.is_by_source:
            return None
        [(size, total, square)] = self._execute(
            "select count(*), sum(c), sum(c * c) from (select -(vector <#> %(query)s) as c"
            f" from toolfold.tools where {self._where}) as cosines",
            query=HalfVector(text.vector),
        )
        return (size, total, square) if size else None

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
        if self._left.sources is not None:
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
            "select held.term, array_agg(s.source) from toolfold.sources s,"
            " unnest(s.terms) as held (term) where s.tenant = %(tenant)s"
            " and s.source = any(%(names)s) and held.term = any(%(terms)s) group by held.term",
            terms=sorted(t for t in terms if "\0" not in t),
            names=list(sources),
        )
        return {term: frozenset(names) for term, names in rows}


def _array(value: Any) -> Any:
    return value.to_numpy() if hasattr(value, "to_numpy") else value
