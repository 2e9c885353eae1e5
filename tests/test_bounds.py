"""Texts from strangers: short, visible, on one line where they must be."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.bounds import cut, first_sentence, one_line, visible
from toolfold.memo import Memo

texts = st.text(st.characters(), max_size=60) | st.text("a.\n \u200b\x00… Z", max_size=60)


@given(texts)
def test_what_is_visible_is_kept_and_nothing_else(text: str) -> None:
    shown = visible(text)

    assert shown == "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c)[0] != "C")
    assert visible(shown) == shown


@given(texts, st.integers(1, 30))
def test_one_line_is_one_line_and_short(text: str, limit: int) -> None:
    line = one_line(text, limit)

    assert len(line) <= limit
    assert line == line.strip() and len(line.split("\n")) == 1
    assert "  " not in line


@given(texts, st.integers(0, 30))
def test_a_cut_text_is_its_own_beginning(text: str, limit: int) -> None:
    shorter = cut(text, limit)

    assert shorter == text or (
        shorter.endswith("…") and text.startswith(shorter[:-1]) and len(shorter) <= max(limit, 1)
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Open an issue. Needs access.", "Open an issue."),
        ("Use e.g. Python to run. Then stop.", "Use e.g. Python to run."),
        ("One line\nof two\n\nNext paragraph.", "One line of two"),
        ("Version 1.2 is out", "Version 1.2 is out"),
        ("Really? Yes.", "Really?"),
        ("", ""),
        ("x" * 50, "x" * 19 + "…"),
    ],
)
def test_the_first_sentence_is_found(text: str, sentence: str) -> None:
    assert first_sentence(text, 200 if len(text) < 50 else 20) == sentence


def test_a_memo_holds_so_many_entries_and_drops_the_oldest() -> None:
    memo: Memo[int, str] = Memo(2)
    for i in range(3):
        memo.get_or(i, lambda i=i: str(i))

    assert (len(memo), memo.get(0), memo.get(1), memo.get(2)) == (2, None, "1", "2")
    assert memo.get_or(2, lambda: "other") == "2"
    memo.clear()
    assert len(memo) == 0
