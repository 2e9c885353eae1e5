"""Tools that are elsewhere: what an engine proposed is ranked as a search over all would have."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfold import Tool
from toolfold.demo import demo_catalog
from toolfold.search._columns import columns_of
from toolfold.search.hybrid import Hybrid
from toolfold.search.lexical import WordStatistics, mean_lengths
from toolfold.search.partial import AllTools, ToolEntry, asked, entries, impacts, matches

TOOLS = list(demo_catalog().tools)
ENTRIES = entries(TOOLS)
QUERIES = [
    "open a pull request",
    "send an email | schedule a meeting",
    "what does a refund cost",
    "restaurant table reservation",
    "serach for flihgts",
    "créer une issue",
    "GitHub pull request",
]


def whole(own: list[ToolEntry], query: str) -> AllTools:
    """What an engine would say of all tools."""
    holders: defaultdict[str, int] = defaultdict(int)
    spoken: defaultdict[str, set[str]] = defaultdict(set)
    for entry in own:
        for term in set(entry.document.terms):
            holders[term] += 1
            spoken[term].add(entry.source)
    vectors = np.stack([entry.vector for entry in own]).astype(np.float64)
    means: dict[str, np.ndarray] = {}
    for name in {entry.source for entry in own}:
        total = vectors[[entry.source == name for entry in own]].sum(axis=0)
        means[name] = (total / max(np.linalg.norm(total), 1e-6)).astype(np.float32)
    every = np.stack(list(means.values()))
    texts = asked(query, holders.__contains__)
    return AllTools(
        WordStatistics(
            len(own), dict(holders), mean_lengths(columns_of([e.document for e in own]))
        ),
        vectors.sum(axis=0),
        vectors.T @ vectors,
        len(means),
        means,
        {text.vector.tobytes(): float((every @ text.vector).max()) for text in texts},
        {term: frozenset(names) for term, names in spoken.items()},
    )


@pytest.mark.parametrize("query", QUERIES)
def test_all_tools_proposed_are_ranked_as_the_embedded_search_ranks_them(query: str) -> None:
    expected = Hybrid().searcher(TOOLS).search(query, 10)
    found = matches(query, ENTRIES, whole(ENTRIES, query), 10)

    assert [m.position for m in found] == [m.position for m in expected]
    assert [m.score for m in found] == pytest.approx([m.score for m in expected], rel=1e-3)


@pytest.mark.parametrize("query", QUERIES)
def test_some_tools_proposed_are_ranked_as_among_all(query: str) -> None:
    expected = Hybrid().searcher(TOOLS).search(query, 5)
    about = whole(ENTRIES, query)
    texts = asked(query, about.words.holders.__contains__)
    worth = impacts([entry.document for entry in ENTRIES], about.words.mean_lengths)
    proposed: set[int] = set()
    for text in texts:
        near = [float(entry.vector.astype(np.float32) @ text.vector) for entry in ENTRIES]
        said = [
            sum(
                weight * own.get(term, 0.0) * np.log1p((len(ENTRIES) - n + 0.5) / (n + 0.5))
                for term, weight in text.terms.items()
                if (n := about.words.holders.get(term, 0))
            )
            for own in worth
        ]
        for scores in (near, said):
            proposed |= set(np.argsort(scores)[-text.candidates :].tolist())
    places = sorted(proposed)

    found = matches(query, [ENTRIES[i] for i in places], about, 5)

    assert [places[m.position] for m in found] == [m.position for m in expected]
    assert [m.score for m in found] == pytest.approx([m.score for m in expected], rel=1e-3)


@given(st.text(max_size=40), st.text(max_size=200))
@settings(max_examples=50)
def test_a_packed_document_is_the_document(name: str, description: str) -> None:
    [entry] = entries([Tool(name="x" + name.replace("\n", ""), description=description)])

    assert ToolEntry.unpacked(entry.packed(), len(entry.document.terms)) == entry.document


@pytest.mark.parametrize(
    "excerpt",
    [None, np.zeros(7, np.uint16), np.full(49, 65_535, np.uint16), np.full(49, 44, np.uint16)],
    ids=["none", "short", "of other pieces", "of other fields"],
)
def test_what_another_version_kept_is_searched_and_not_read(excerpt: Any) -> None:
    old = [replace(entry, excerpt=excerpt) for entry in ENTRIES]
    query = "open an issue about the flaky test"
    found = matches(query, old, whole(old, query), 5)
    beside = matches(query, [*ENTRIES[1:], old[0]], whole(ENTRIES, query), 5)

    assert found[0].score > 0.5
    assert len(beside) == 5


def test_nothing_proposed_is_nothing_found() -> None:
    assert matches("open an issue", [], whole(ENTRIES, "open an issue"), 5) == ()
