"""Searching more tools than are at hand: an engine proposes some, and they are ranked as ever.

Whoever keeps tools elsewhere, a database say, keeps an `ToolEntry` of each. For a query it is asked
twice: which of some words any tool holds (`asked` reads the query with the answer), and which
tools come into question, with a few numbers about all of them (`AllTools`). What `matches` makes of
those is what a search over all tools would have said, so far as the engine proposed what such a
search would have looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from toolfold.search._clauses import clauses
from toolfold.search._columns import Columns, columns_of
from toolfold.search._dense import table, tool_arrays
from toolfold.search._document import FIELDS, Document, document
from toolfold.search._excerpts import check_excerpts
from toolfold.search._lexicon import readings
from toolfold.search._reading import ToolReading
from toolfold.search._scorer import scorer
from toolfold.search._sources import SOURCES_AT_MOST
from toolfold.search._spelling import Spelling
from toolfold.search._text import raw_words, stem
from toolfold.search._vectors import LEADING, SHORTLIST, Vectors, spread_of
from toolfold.search.hybrid import CANDIDATES, CLAUSE_CANDIDATES, HybridSearcher
from toolfold.search.lexical import K1, Words, WordStatistics, frequencies, query_terms
from toolfold.search.ranker import Match
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolfold.search.lexical import Posting

    Floats = NDArray[np.float32]

__all__ = [
    "FIELD_COUNT",
    "SHORTLIST",
    "AllTools",
    "AskedText",
    "ToolEntry",
    "asked",
    "compares_sources",
    "dimensions",
    "entries",
    "impacts",
    "leading",
    "matches",
    "name_terms",
    "version",
]

FIELD_COUNT = len(FIELDS)
"""How many fields of a tool are counted apart."""

_SEPARATOR = "\n"
_MADE_AS = 2
"""Which form entries have: the second has excerpts."""


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """What a search has to know of one tool."""

    name: str
    source: str
    """Where it comes from; empty where it says nothing."""
    digest: str
    document: Document
    vector: NDArray[np.float16]
    excerpt: NDArray[np.uint16] | None
    """What is read of it together with a request; none where another version kept it."""

    def packed(self) -> bytes:
        """Return the document as bytes, from which `unpacked` makes it again."""
        import numpy as np

        lengths = np.array(self.document.lengths, dtype="<u4").tobytes()
        words = _SEPARATOR.join(self.document.terms).encode()
        return lengths + self.document.fields + self.document.counts + words

    @staticmethod
    def unpacked(content: bytes, count: int) -> Document:
        """Return the document that was packed.

        Args:
            content: The bytes.
            count: How many terms it has.
        """
        import numpy as np

        start = 4 * len(FIELDS)
        fields, counts = start + count, start + 2 * count
        words = content[counts:].decode()
        return Document(
            tuple(words.split(_SEPARATOR)) if count else (),
            content[start:fields],
            content[fields:counts],
            tuple(np.frombuffer(content[:start], dtype="<u4").tolist()),
        )


class AskedText(NamedTuple):
    """A text that is looked for: a reading of the query, or one need of it."""

    vector: Floats
    """Its unit vector; zero where no word of it is known."""
    terms: Mapping[str, float]
    """Its terms, with their weights."""
    candidates: int
    """How many tools come into question by its words, and as many by its meaning."""


@dataclass(frozen=True, slots=True)
class AllTools:
    """What is known of all tools, for one query."""

    words: WordStatistics
    vector_sum: NDArray[np.float64]
    """The sum of all vectors."""
    moment: NDArray[np.float64]
    """The sum of their outer products."""
    source_count: int
    """How many sources there are."""
    source_means: Mapping[str, Floats]
    """The unit mean of the vectors of each source that a proposed tool comes from."""
    nearest_source: Mapping[bytes, float]
    """The cosine of the nearest of all sources, by the bytes of a text's vector."""
    source_terms: Mapping[str, frozenset[str]]
    """Which sources hold a term, of those that a proposed tool comes from."""

    def spread(self, query: Floats) -> tuple[float, float]:
        """Return mean and standard deviation of a query's cosine over all tools."""
        import numpy as np

        own = query.astype(np.float64)
        square = float(own @ self.moment @ own)
        return spread_of(self.words.size, float(self.vector_sum @ own), square)


def version() -> str:
    """Return what entries were made by: those of another version say something else."""
    return f"{table().version}-{_MADE_AS}"


def dimensions() -> int:
    """Return the length of a vector."""
    return table().dimensions


def entries(tools: Sequence[Tool]) -> list[ToolEntry]:
    """Return the entries of tools."""
    rows = zip(tools, *tool_arrays(tools), strict=True)
    return [
        ToolEntry(tool.name, tool.source or "", tool.digest, document(tool), vector, excerpt)
        for tool, vector, excerpt in rows
    ]


def impacts(documents: Sequence[Document], lengths: NDArray[np.float64]) -> list[dict[str, float]]:
    """Return what each term of each document is worth, but for how rare it is.

    Args:
        documents: The documents.
        lengths: The mean length of each field over all tools.
    """
    import numpy as np

    columns = columns_of(documents)
    found = frequencies(columns, lengths)
    worth = found.counts * np.float32(K1 + 1) / (found.counts + np.float32(K1))
    own: list[dict[str, float]] = [{} for _ in documents]
    rows = zip(found.terms.tolist(), found.tools.tolist(), worth.tolist(), strict=True)
    for term, tool, value in rows:
        own[tool][columns.vocabulary[term]] = value
    return own


def compares_sources(count: int) -> bool:
    """Whether so many sources are compared with a request: one is not, and very many are not."""
    return 2 <= count <= SOURCES_AT_MOST


def leading(vector: Floats) -> Floats:
    """Return the part of a vector that a first look at many tools takes."""
    return vector[:LEADING]


def name_terms(name: str) -> set[str]:
    """Return the terms of a name."""
    return {stem(word) for word in raw_words(name)}


def asked(query: str, is_held: Callable[[str], bool]) -> list[AskedText]:
    """Return the texts that a query stands for.

    Args:
        query: The request.
        is_held: Whether any tool holds a term.
    """
    model = table()
    spelling = Spelling(is_held, model.has_word)
    found: list[AskedText] = []
    for text in dict.fromkeys(map(spelling.spelt, readings(query, is_held))):
        needs = clauses(text)
        for i, own in enumerate([text, *needs] if len(needs) > 1 else [text]):
            count = CLAUSE_CANDIDATES if i else CANDIDATES
            found.append(AskedText(model.query(own), query_terms(own, is_held), count))
    return found


def matches(
    query: str, proposed: Sequence[ToolEntry], whole: AllTools, limit: int
) -> Sequence[Match]:
    """Return the best of the proposed tools, as a search over all would have ranked them."""
    if not proposed:
        return ()
    return _searcher(proposed, whole).search(query, limit)


def _searcher(proposed: Sequence[ToolEntry], whole: AllTools) -> HybridSearcher:
    import numpy as np

    columns: Columns = columns_of([entry.document for entry in proposed])
    vectors = np.stack([entry.vector for entry in proposed]).astype(np.float32)
    return HybridSearcher(
        Words(columns, whole.words),
        Vectors(vectors, whole.spread),
        [entry.name for entry in proposed],
        sorted(range(len(proposed)), key=lambda i: proposed[i].digest),
        table(),
        scorer(),
        _ProposedSources(whole, [entry.source for entry in proposed]),
        _reading(proposed),
    )


def _reading(proposed: Sequence[ToolEntry]) -> ToolReading | None:
    """Return what reads the proposed tools; nothing where one was kept by another version."""
    import numpy as np

    excerpts = [entry.excerpt for entry in proposed if entry.excerpt is not None]
    if len(excerpts) < len(proposed):
        return None
    try:
        stacked = np.stack(excerpts)
        check_excerpts(stacked, len(proposed), table().pieces)
    except ValueError:
        return None
    return ToolReading(stacked)


class _ProposedSources:
    """The sources of the proposed tools, among all sources."""

    def __init__(self, whole: AllTools, sources: Sequence[str]) -> None:
        import numpy as np

        self._whole = whole
        self._names = sorted(set(sources))
        self.numbers: NDArray[np.intp] | None = None
        if compares_sources(whole.source_count):
            places = {name: i for i, name in enumerate(self._names)}
            self.numbers = np.array([places[name] for name in sources], dtype=np.intp)

    def gaps(self, queries: Floats, places: NDArray[np.intp]) -> Floats:
        import numpy as np

        if self.numbers is None:
            return np.zeros(len(places), dtype=np.float32)
        means = np.stack([self._whole.source_means[name] for name in self._names])
        near = queries @ means.T
        best = near.max(axis=1)
        for i, query in enumerate(queries):
            best[i] = max(best[i], self._whole.nearest_source.get(query.tobytes(), best[i]))
        near -= best[:, None]
        return near[:, self.numbers[places]].max(axis=0)

    def holding(self, term: str, posting: Posting | None) -> Floats:
        import numpy as np

        held = self._whole.source_terms.get(term, frozenset())
        return np.array([name in held for name in self._names], dtype=np.float32)
