"""What a search does in a shorter way comes to what the longer one comes to."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Catalog
from toolfold.demo import demo_catalog
from toolfold.search import lexical
from toolfold.search._pieces import Pieces, words
from toolfold.search.hybrid import Hybrid

TOOLS = list(demo_catalog())
REQUESTS = (
    "refund a customer",
    "GitHub e-mail",
    "list open pull requests and then send the summary to the team",
    "zzqx vvkk",
    "the",
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def test_a_large_list_looks_terms_up_in_another_way_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [Hybrid().searcher(TOOLS).search(query, 25) for query in REQUESTS]
    monkeypatch.setattr(lexical, "_SPREAD_AT_MOST", 0)

    assert [Hybrid().searcher(TOOLS).search(query, 25) for query in REQUESTS] == found


@given(st.lists(st.sampled_from([*(tool.name for tool in TOOLS[:20]), "get", "?", ""]), max_size=8))
def test_what_a_name_means_does_not_depend_on_what_was_asked_before(names: list[str]) -> None:
    asked = Catalog(TOOLS)

    assert [asked.meant(name) for name in names] == [Catalog(TOOLS).meant(name) for name in names]


@given(st.text("aZb Y0_é", max_size=16))
def test_a_text_without_a_change_of_case_is_cut_as_any_other(text: str) -> None:
    plain = "".join(c if c.isascii() else "e" for c in CAMEL.sub(" ", text)).lower()

    assert words(text) == re.findall(r"[^\W_]+", plain)


@given(st.text(alphabet="abxyzé数", min_size=41, max_size=200), st.integers(1, 60))
def test_a_long_word_is_cut_no_further_than_its_rows_are_wanted(word: str, limit: int) -> None:
    pieces = Pieces(["a", "b", "x", "##a", "##b", "##xx", "##x", "##yz"])

    assert pieces.pieces(word, limit) == pieces.pieces(word)[:limit]
