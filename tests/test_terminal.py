"""`toolfold._terminal`: widths, cuts, tables and colours."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolfold._terminal import columns, erase_lines, fitted, padded, styled, table

lines = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp")) | st.sampled_from("a日\u0301\ufe0f")
)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("plain", 5),
        ("", 0),
        ("日本語", 6),
        ("한글", 4),
        ("ｆｕｌｌ", 8),
        ("e\u0301", 1),
        ("é", 1),
        ("קָ", 1),
        ("👍", 2),
        ("❤", 1),
        ("❤\ufe0f", 2),
        ("日\ufe0f", 2),
        ("●✗…", 3),
    ],
)
def test_a_text_takes_as_many_columns_as_a_terminal_gives_it(text: str, taken: int) -> None:
    assert columns(text) == taken


def test_a_sign_of_several_is_never_narrower_than_it_is_drawn() -> None:
    assert columns("👩\u200d👩\u200d👧") >= 2
    assert columns("\ufe0f" * 100_000) == 0


@given(lines, st.integers(1, 40))
@example("日本語", 4)
@example("e\u0301" * 9, 5)
def test_what_is_cut_fits_and_begins_like_the_whole(text: str, room: int) -> None:
    cut = fitted(text, room)

    assert columns(cut) <= room
    if columns(text) <= room:
        assert cut == text
    else:
        assert cut.endswith("…") and text.startswith(cut[:-1])


def test_a_cut_uses_the_room_that_is_there() -> None:
    assert fitted("日本語", 5) == "日本…"
    assert fitted("日本語", 4) == "日…"
    assert fitted("a cat sat", 6) == "a cat…"
    assert fitted("a cat sat", 0) == ""


@given(lines, st.integers(0, 40), st.booleans())
def test_a_padded_text_is_as_wide_as_asked_or_as_it_was(text: str, room: int, right: bool) -> None:
    assert columns(padded(text, room, right=right)) == max(room, columns(text))


def test_cells_stand_below_each_other_words_to_the_left_numbers_to_the_right() -> None:
    rows = [["name", "tools", "tokens"], ["日本", "3", "1,200"], ["github", "26", "90"]]

    assert table(rows) == [
        "name    tools  tokens",
        "日本        3   1,200",
        "github     26      90",
    ]


@given(st.lists(st.tuples(lines.map(str.strip), st.integers()), min_size=1, max_size=6))
def test_the_lines_of_a_table_that_ends_in_numbers_are_equally_wide(
    rows: list[tuple[str, int]],
) -> None:
    made = table([(name, str(number)) for name, number in rows])

    assert len({columns(line) for line in made}) == 1


def test_a_style_is_there_unless_the_person_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert styled("x", "red", "bold") == "\x1b[31m\x1b[1mx\x1b[0m"
    assert styled("x") == "x"

    monkeypatch.setenv("NO_COLOR", "")
    assert styled("x", "dim") != "x"

    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("x", "dim") == "x"


def test_no_line_is_erased_where_none_was_drawn() -> None:
    assert erase_lines(0) == ""
    assert erase_lines(3) == "\r\x1b[3A\x1b[J"
