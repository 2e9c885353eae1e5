"""Markdown on a terminal, as it streams in: what is shown, and that it does not hang on pieces."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from support.terminals import ran_on_terminal, visible_lines
from toolfold._terminal import columns
from toolfold.chat.markdown import MarkdownStream
from toolfold.cli import main

EVERYTHING = """\
# A heading with `code`

Some *emphasis*, some **strong words that go on and on**, `code spans`, snake_case_names and
2 * 3 * 4. A [link](https://example.org/a_(b)) and <https://example.org>. Done!

## Second ##
- first item that is long enough to be wrapped here
  1. nested, which also goes on for quite a while
- [x] done

> A quote that goes on and on until it is wrapped.

```python
def f(x):
    return x * 2  # **not bold**, and a long line that is not ours to wrap
```

| name | count |
|:--|--:|
| a | 1 |
| **b** | 22,000 |

---
日本語の文章は空白がないので、どこで折り返しても構いません。
***both***, ~~gone~~, \\*escaped\\*
**unclosed and *unclosed"""

SHOWN = """\
A heading with code

Some emphasis, some strong words that go
on and on, code spans, snake_case_names
and
2 * 3 * 4. A link
(https://example.org/a_(b)) and
https://example.org. Done!

Second
• first item that is long enough to be
  wrapped here
  1. nested, which also goes on for quite
     a while
• [x] done

│ A quote that goes on and on until it is
│ wrapped.

  python
  def f(x):
      return x * 2  # **not bold**, and a long line that is not ours to wrap

name   count
a          1
b     22,000

────────────────────────────────────────
日本語の文章は空白がないので、どこで折り
返しても構いません。
both, gone, *escaped*
**unclosed and *unclosed"""


@pytest.fixture(autouse=True)
def _with_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def rendered(text: str, pieces: list[int] | None = None, width: int = 41) -> str:
    """Return what a terminal is sent for a text that comes in pieces of these lengths."""
    stream = MarkdownStream(lambda: width)
    out, at = "", 0
    for length in pieces or []:
        out += stream.feed(text[at : at + length])
        at += length
    return out + stream.feed(text[at:]) + stream.end()


def test_headings_emphasis_code_lists_quotes_tables_and_links_are_shown() -> None:
    assert visible_lines(rendered(EVERYTHING)) == SHOWN.split("\n")


def test_emphasis_is_a_style_and_not_its_marks() -> None:
    assert rendered("**two words**, *one* and `x`") == (
        "\x1b[1mtwo\x1b[0m \x1b[1mwords\x1b[0m, \x1b[3mone\x1b[0m and \x1b[36mx\x1b[0m"
    )


def test_where_there_are_no_colours_the_marks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert rendered("# Title\n**two words** and `x`\n") == "# Title\n**two words** and `x`\n"


@given(st.lists(st.integers(1, 12)))
@example([1] * 1_000)
def test_what_is_shown_does_not_hang_on_the_pieces_it_came_in(pieces: list[int]) -> None:
    assert rendered(EVERYTHING, pieces) == rendered(EVERYTHING)


SIGNS = [*"ab *_`#>-+.[](){}|~!\\<1\n", "**", "```", "| ", "- "]
marks = st.lists(st.sampled_from(SIGNS)).map("".join)


@given(marks, st.lists(st.integers(1, 9), max_size=60), st.integers(16, 60))
@example("*a**b*", [1] * 6, 40)
@example("|a|\n|-|\n|b|", [3, 4], 40)
def test_no_text_breaks_it_and_its_pieces_do_not_matter(
    text: str, pieces: list[int], width: int
) -> None:
    shown = rendered(text, pieces, width)

    assert shown == rendered(text, None, width)
    # Every letter and digit of the text is there, in its order.
    assert re.findall(r"[ab1]", re.sub(r"\x1b\[\d+m", "", shown)) == re.findall(r"[ab1]", text)


@given(st.lists(st.sampled_from(["word", "**bold**", "`x`", "日本", "*a b*", "[l](u)"])))
def test_a_line_of_short_words_is_never_wider_than_the_terminal(words: list[str]) -> None:
    assert all(columns(line) <= 20 for line in visible_lines(rendered(" ".join(words), None, 20)))


def test_words_are_shown_as_they_come_and_do_not_wait_for_the_line() -> None:
    stream = MarkdownStream(lambda: 80)

    pieces = ("The ans", "wer is", " **for", "ty", "-two** or", " s")
    assert [stream.feed(piece) for piece in pieces] == [
        "The", " answer", " is", "", " \x1b[1mforty-two\x1b[0m", " or",
    ]  # fmt: skip
    assert stream.end() == " s"


def test_a_table_that_is_too_wide_is_a_block_for_each_row() -> None:
    table = "| city | population | area in km² |\n|---|---|---|\n| Reykjavík | 139,875 | 244 |\n"

    assert rendered(table, width=30) == "Reykjavík\n  population 139,875\n  area in km² 244"


@pytest.mark.parametrize("text", ["**a " * 5_000, "[" * 50_000, "`" * 50_000 + "a", "|" * 50_000])
def test_a_hostile_answer_costs_little_time(text: str) -> None:
    began = time.process_time()
    rendered(text, [7] * 2_000)

    assert time.process_time() - began < 5


SCRIPT = """
turns:
  - user: Show me.
    replies:
      - text: "# Plan\\n\\nSome **bold** words and \\e[31mred\\e]0;t\\x07 ones that go on.\\n- one"
"""


def test_chat_shows_it_on_a_terminal_with_a_models_own_escape_codes_inert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    file = tmp_path / "script.yaml"
    file.write_text(SCRIPT, encoding="utf-8")

    shown = ran_on_terminal(40, "chat", "--script", str(file))

    answer = shown.text[shown.text.index("Show me.") :].replace("\r", "").split("\n")[1:6]
    assert answer == [
        "\x1b[1m\x1b[4mPlan\x1b[0m",
        "",
        "Some \x1b[1mbold\x1b[0m words and [31mred]0;t ones",
        "that go on.",
        "• one",
    ]
    assert shown.too_wide(40) == []


def test_plain_and_a_pipe_show_an_answer_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(SCRIPT, encoding="utf-8")

    plain = ran_on_terminal(100, "chat", "--script", str(file), "--plain").lines
    piped = CliRunner().invoke(main, ["chat", "--script", str(file)]).stdout.splitlines()

    written = ["# Plan", "", "Some **bold** words and [31mred]0;t ones that go on.", "- one"]
    assert plain[plain.index("# Plan") :][:4] == piped[piped.index("# Plan") :][:4] == written
