"""Where it is not clear which tool is right, or whether any is, the first few are read."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfold import Settings, Tool
from toolfold.demo import CATALOG_FILE, demo_catalog
from toolfold.evaluation import load_corpus
from toolfold.search._dense import tool_arrays
from toolfold.search._reader import UNREAD, reader
from toolfold.search._reading import ToolReading
from toolfold.search.hybrid import Hybrid

SIBLINGS = [
    Tool("text_translate", "Translate a text into another language."),
    Tool("text_translation_list", "List the translations that were made of a text."),
    Tool("text_translation_delete", "Delete a translation of a text."),
    Tool("text_summarize", "Summarize a long text in a few sentences."),
    Tool("invoice_create", "Create an invoice for a customer.", source="billing"),
    Tool("invoice_send", "Send an invoice to a customer by mail.", source="billing"),
]


def logits(query: str, tools: list[Tool]) -> list[float]:
    """What the reader says of each tool."""
    reading = ToolReading(tool_arrays(tools).excerpts)
    return reading.logits(query, np.arange(len(tools))).tolist()


texts = st.text(max_size=300) | st.sampled_from([t.description for t in SIBLINGS])


@given(texts, st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_whatever_is_written_is_read_and_each_tool_by_itself(
    query: str, written: list[tuple[str, str, str]]
) -> None:
    tools = [
        Tool(name or "x", description, {"properties": {parameter: {}}}, source="s")
        for name, description, parameter in written
    ]

    together = logits(query, tools)

    assert all(np.isfinite(together))
    assert together == pytest.approx([logits(query, [tool])[0] for tool in tools], abs=0.01)
    assert logits(query, tools[::-1])[::-1] == pytest.approx(together, abs=0.01)


def test_what_has_no_word_that_is_known_is_not_judged() -> None:
    silent = Tool("ⵣⵣⵣ", "ⴰⴰ ⴱⴱ")

    assert logits("translate a text", [silent]) == [UNREAD]
    assert logits("ⵣⵣⵣ", [SIBLINGS[0]]) == [UNREAD]


def test_a_tool_is_read_in_bounded_time_however_long_it_is() -> None:
    long = Tool("x" * 60, "word " * 100_000, {"properties": {f"p{i}": {} for i in range(900)}})
    [excerpt] = tool_arrays([long]).excerpts

    assert len(reader().tool(excerpt).states) <= 44
    assert len(reader().request("word " * 100_000).units) == 32


def test_the_order_of_the_tools_is_of_no_consequence() -> None:
    query = "what did we translate so far"
    expected = Hybrid().searcher(SIBLINGS).search(query, 6)
    found = Hybrid().searcher(SIBLINGS[::-1]).search(query, 6)

    assert [5 - match.position for match in found] == [match.position for match in expected]
    assert [m.score for m in found] == pytest.approx([m.score for m in expected], abs=1e-3)


def test_of_two_that_are_close_reading_says_which() -> None:
    found = Hybrid().searcher(list(demo_catalog())).search("how do I get to the station", 2)

    names = [demo_catalog().tools[match.position].name for match in found]
    assert names == ["travel__get_directions", "travel__search_trains"]


@pytest.mark.parametrize(("size", "most"), [(1, 0.27), (4, 0.21), (8, 0.18), (60, 0.12)])
def test_few_tools_are_found_as_many_are(size: int, most: float) -> None:
    """Each request of the bundled catalog, with its tool and a few of the same source beside it."""
    demo = list(demo_catalog())
    by_name = {tool.name: tool for tool in demo}
    refused: list[bool] = []
    for request in load_corpus(CATALOG_FILE.parent).requests:
        gold = sorted(request.gold & by_name.keys())
        if not gold:
            continue
        own = by_name[gold[0]]
        others = [tool for tool in demo if tool.name not in gold]
        others.sort(key=lambda tool: (tool.source != own.source, tool.digest))
        [best] = Hybrid().searcher([own, *others[: size - 1]]).search(request.query, 1)
        refused.append(best.score < Settings().relevance_floor)

    assert sum(refused) / len(refused) <= most


def test_what_the_table_does_not_know_stays_where_words_put_it() -> None:
    tools = [*demo_catalog(), Tool("ደብዳቤ_ላክ", "ደብዳቤ ላክ")]

    [best] = Hybrid().searcher(tools).search("please use ደብዳቤ ላክ for this", 1)

    assert tools[best.position].name == "ደብዳቤ_ላክ"


def test_what_is_clear_is_not_read() -> None:
    code = (
        "from toolfold import Tool\n"
        "from toolfold.search.hybrid import Hybrid\n"
        "from toolfold.search._reader import reader\n"
        "tools = [Tool('create_invoice', 'Create an invoice for a customer.'),"
        " Tool('get_weather', 'Say what the weather will be.')]\n"
        "searcher = Hybrid().searcher(tools)\n"
        "asked = ('create an invoice for a customer', 'who are you')\n"
        "found = [searcher.search(query, 2) for query in asked]\n"
        "print(reader.cache_info().currsize, found[0][0].position)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.split() == ["0", "0"]


def test_weights_of_another_table_are_refused(tmp_path: Any) -> None:
    from toolfold.search._dense import WEIGHTS, table
    from toolfold.search._reader import PairReader

    with np.load(WEIGHTS / "reader.npz") as arrays:
        other: Any = dict(arrays) | {"version": np.array("another")}
        np.savez(tmp_path / "reader.npz", **other)

    with pytest.raises(ValueError, match="not made with the table"):
        PairReader.read(tmp_path / "reader.npz", table())
