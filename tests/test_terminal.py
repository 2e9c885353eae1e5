"""`toolfold._terminal`: widths, cuts, tables and colours."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolfold._terminal import (
    columns,
    erase_lines,
    fitted,
    keep_writable,
    padded,
    pairs,
    styled,
    table,
    wrapped,
)

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


@given(lines, st.integers(16, 60))
@example("日" * 40, 17)
@example("  a list of words", 16)
def test_what_is_wrapped_fits_and_loses_no_word(text: str, room: int) -> None:
    found = wrapped(text, room)

    assert all(columns(line) <= room for line in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_line_goes_on_as_far_in_as_it_began_and_hangs_further() -> None:
    assert wrapped("  one two three four", 16, hang="  ") == ["  one two three", "    four"]
    assert wrapped("a_name_longer_than_the_line", 16) == ["a_name_longer_th", "an_the_line"]
    assert wrapped("fits", 16) == ["fits"]


def test_colours_take_no_room_where_a_line_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = f"{styled('sixteen', 'bold')} {styled('columns.', 'dim')} {styled('more', 'red')}"

    assert wrapped(text, 16) == [
        "\x1b[1msixteen\x1b[0m \x1b[2mcolumns.\x1b[0m",
        "\x1b[31mmore\x1b[0m",
    ]


def test_a_head_stays_with_its_number_where_a_table_is_a_block_a_row() -> None:
    rows = [["corpus", "recall", "p50 ms"], ["mine", "0.912", "1.5"], ["", "", "2.5"]]

    assert pairs(rows, 20) == ["mine", "  recall 0.912", "  p50 ms 1.5", "  p50 ms 2.5"]


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("latin-1", b"-> ? ... \xe9 |"), ("ascii", b"-> ? ... ? |"), ("utf-8", "→ 日 … é │".encode())],
)
def test_a_stream_that_lacks_a_sign_writes_another(encoding: str, written: bytes) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)

    keep_writable(stream, None)
    stream.write("→ 日 … é │")
    stream.flush()

    assert raw.getvalue() == written
