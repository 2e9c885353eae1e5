"""Keywords that nothing says: by a tool, by its source, by any tool of the list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfold import Tool
from toolfold.search._columns import columns_of
from toolfold.search._dense import table
from toolfold.search._document import document
from toolfold.search._sources import SourceMeans
from toolfold.search._unmet import Unmet, UnmetShares, keywords_in
from toolfold.search.hybrid import Hybrid
from toolfold.search.lexical import Words, query_terms

STORAGE = [
    Tool("storage_table_list", "List the tables of a storage account.", source="storage"),
    Tool("storage_blob_upload", "Upload a local file as a blob.", source="storage"),
    Tool("calendar_event_create", "Put an event on a calendar.", source="calendar"),
]
WORDS = Words(columns_of([document(tool) for tool in STORAGE]))
EVERY = np.arange(len(STORAGE))


def shares(query: str, sources: tuple[int, ...] | None = (0, 0, 1)) -> UnmetShares:
    names = [str(number) for number in sources or (0, 0, 0)]
    means = SourceMeans(np.eye(len(STORAGE), dtype=np.float32), names)
    said = WORDS.coverage([query_terms(query, WORDS.__contains__)], EVERY)
    return Unmet(WORDS, table().weight, means).shares(query, said, EVERY)


def test_keywords_of_another_world_are_no_close_match_though_one_of_them_is_met() -> None:
    searcher = Hybrid().searcher(STORAGE)

    assert searcher.search("restaurant table reservation", 1)[0].score < 0.25
    assert searcher.search("list storage tables", 1)[0].score > 0.75


def test_a_word_that_the_tool_lacks_is_met_by_its_source() -> None:
    found = shares("blob tables")

    assert np.asarray(found.tool)[0] > 0.2
    assert np.asarray(found.source) == pytest.approx([0, 0, 1], abs=1e-6)
    assert found.everywhere == pytest.approx(0, abs=1e-6)


def test_without_several_sources_the_list_is_the_source() -> None:
    found = shares("blob restaurant", None)

    assert found.source == found.everywhere > 0.3


def test_of_a_sentence_nothing_is_said() -> None:
    assert shares("could you please find me a table in a restaurant") == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        ("list virtual machines", 1, 1),
        ("current weather in Oslo", 0.5, 0.9),
        ("what is the weather like in Oslo", 0, 0),
        ("", 0, 0),
    ],
)
def test_keywords_are_told_from_sentences(query: str, least: float, most: float) -> None:
    assert least <= keywords_in(query) <= most


def test_a_word_weighs_the_same_whatever_the_tools() -> None:
    assert table().weight("reservation") > table().weight("get")
    assert table().weight("zzqxvv") < table().weight("list")


@given(
    st.text(max_size=40)
    | st.lists(st.sampled_from("table blob event tax of".split())).map(" ".join)
)
@settings(max_examples=80)
def test_what_all_lack_the_source_lacks_and_what_the_source_lacks_the_tool_lacks(
    query: str,
) -> None:
    keywords, tool, source, everywhere = shares(query)

    assert -1e-5 <= everywhere <= np.min(source) + 1e-5
    assert (np.asarray(source) <= np.asarray(tool) + 1e-5).all()
    assert np.max(tool) <= keywords + 1e-5 <= 1 + 2e-5
