"""Texts from strangers: short, visible, on one line where they must be."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Settings, Tool, fold
from toolfold._bounds import cut, first_sentence, one_line, visible
from toolfold._memo import Memo
from toolfold.invisible import shown

BLANKS = "\u034f\u2800\u3164\uffa0\ufe00\ufe0f\U000e0100"
JOINERS = "\u200c\u200d"
texts = st.text(st.characters(), max_size=60) | st.text("a.\n \u200b\x00… Z", max_size=60)
odd_texts = st.text(f"aé1☺️👩कم\u17b4\r\n\u2028\u200b{BLANKS}{JOINERS}", max_size=12)


def is_controlled(character: str) -> bool:
    return character not in "\t\n\r" and unicodedata.category(character)[0] == "C"


@given(texts)
def test_what_is_visible_is_kept_and_nothing_else(text: str) -> None:
    text = text.translate(dict.fromkeys(map(ord, BLANKS + JOINERS)))

    assert visible(text) == "".join(c for c in text if not is_controlled(c))


@given(texts | odd_texts)
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    shorter = visible(text)

    assert visible(shorter) == shorter
    assert not [c for c in shorter if is_controlled(c) and c not in JOINERS]


@given(texts | odd_texts)
def test_the_same_characters_are_dropped_for_a_model_and_written_out_for_a_person(
    text: str,
) -> None:
    text = text.replace("\r", "").replace("\u2028", "").replace("\u2029", "")

    assert (visible(text) == text) == (shown(text) == text)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("pay\u3164me", "payme"),
        ("pay\u2800me", "payme"),
        ("a\ufe00b\U000e0100c", "abc"),
        ("A\ufe0f", "A"),
        ("☺\ufe0f 1\ufe0f\u20e3", "☺\ufe0f 1\ufe0f\u20e3"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("p\u200day", "pay"),
        ("a\ufe0f\u200d👧", "a👧"),
        ("one\u2028two", "one\u2028two"),
    ],
)
def test_what_is_drawn_as_nothing_is_dropped_where_it_does_nothing(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_a_model_reads_no_character_that_is_drawn_as_nothing() -> None:
    tool = Tool("pay", "Pay.\u3164\u2800\ufe01", {"description": "Now.\U000e0101"})
    folded = fold([tool], settings=Settings(enabled="on", ranker="bm25"))

    told = folded.resolve("tool_describe", {"name": "pay"}).text  # type: ignore[union-attr]

    assert told == '{"name":"pay","description":"Pay.","parameters":{"description":"Now."}}'


def test_a_long_text_with_something_hidden_takes_time_that_grows_with_its_length() -> None:
    long = "".join(map(chr, range(0xE000, 0xF000))) * 250

    assert visible(long + "é") == "é"
    assert shown(long).startswith("[1024000 invisible characters: U+E000 … ")


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
