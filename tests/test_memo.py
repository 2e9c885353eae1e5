"""What is kept is bounded, in number and in size."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfold import Settings, Tool, fold
from toolfold._memo import Memo
from toolfold._signature import _SIGNATURES, signature  # pyright: ignore[reportPrivateUsage]
from toolfold.arguments import _VALIDATORS  # pyright: ignore[reportPrivateUsage]
from toolfold.catalog import _FORMS  # pyright: ignore[reportPrivateUsage]
from toolfold.search._dense import _ARRAYS  # pyright: ignore[reportPrivateUsage]
from toolfold.search._document import _DOCUMENTS  # pyright: ignore[reportPrivateUsage]
from toolfold.search._pieces import Pieces
from toolfold.search._text import stem
from toolfold.search.index import _INDEXES  # pyright: ignore[reportPrivateUsage]
from toolfold.wire.read import _LISTS, _READINGS  # pyright: ignore[reportPrivateUsage]

MEBIBYTE = 1024 * 1024


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60))))
def test_a_memo_holds_no_more_than_its_room_beside_the_newest(puts: list[tuple[int, int]]) -> None:
    memo: Memo[int, str] = Memo(6, room=100, size=len)

    for key, length in puts:
        memo.put(key, "x" * length)

        assert memo.get(key) == "x" * length
        assert len(memo) <= 6
        assert memo.held == sum(len(memo.get(k) or "") for k in range(10))
        assert memo.held <= 100 or len(memo) == 1

    memo.clear()
    assert (len(memo), memo.held) == (0, 0)


def test_what_is_dropped_makes_room() -> None:
    memo: Memo[str, str] = Memo(9, room=10, size=len)
    memo.put("a", "x" * 8)
    memo.drop("a")
    memo.put("b", "x" * 8)

    assert (memo.held, memo.get("b")) == (8, "x" * 8)


@pytest.mark.slow
def test_lists_that_keep_changing_are_not_all_kept() -> None:
    folding = Settings(enabled="on", ranker="bm25", cache_dir="off")
    long = "The words of a description that a stranger has made long. " * 200

    for n in range(120):
        schema = {"properties": {f"p{i}_{n}": {"description": long[:500]} for i in range(40)}}
        tools = [
            {"name": f"t{n}_{i}", "description": f"{n} {i} {long}", "inputSchema": schema}
            for i in range(5)
        ]
        folded = fold(tools, settings=folding)
        folded.resolve("tool_search", {"query": "words"})
        folded.resolve("tool_call", {"name": f"t{n}_0", "arguments": {}})

    for memo in (_LISTS, _READINGS):
        assert 12 * MEBIBYTE < memo.held <= 24 * MEBIBYTE
    assert _VALIDATORS.held <= 4 * MEBIBYTE
    assert _DOCUMENTS.held <= 32 * MEBIBYTE
    assert _INDEXES.held <= 64 * MEBIBYTE
    assert _FORMS.held <= 16 * MEBIBYTE


@pytest.mark.slow
def test_vectors_and_lines_of_ever_new_tools_are_kept_by_their_bytes() -> None:
    folding = Settings(enabled="on", cache_dir="off")

    for n in range(40):
        tools = [{"name": f"tool_{n}_{i}", "description": f"Thing {n}{i}."} for i in range(500)]
        fold(tools, settings=folding).resolve("tool_search", {"query": "thing"})
    for n in range(12_000):
        signature(Tool(f"tool_{n}", "", {"properties": {f"p{i}": {} for i in range(9)}}))

    assert 11 * MEBIBYTE < _ARRAYS.held <= 12 * MEBIBYTE
    assert 3 * MEBIBYTE < _SIGNATURES.held <= 4 * MEBIBYTE


def test_words_of_any_length_are_not_kept() -> None:
    pieces = Pieces(["long", "##word"])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n in range(500):
            word = f"{n}word" * 2_000
            stem(word)
            pieces.pieces(word)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < MEBIBYTE / 4
