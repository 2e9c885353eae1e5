"""`toolfold.search.enriched`: words that an author wrote, and how little bad ones can do."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfold import Settings, Tool, fold
from toolfold.catalog import Catalog
from toolfold.demo import demo_catalog
from toolfold.search import Searcher, chosen_ranker
from toolfold.search._tool_words import (
    PHRASE_LIMIT,
    PHRASES_AT_MOST,
    BadLine,
    ToolWords,
    WordsEntry,
    content_digest,
    read_words,
    written_line,
)
from toolfold.search.enriched import WEIGHTS_TRIED, Enriched, EnrichedSearcher
from toolfold.search.hybrid import Hybrid
from toolfold.search.lexical import BM25
from toolfold.settings.model import StrategyName

TOOLS = demo_catalog().tools
REFUND = next(tool for tool in TOOLS if tool.name == "billing__refund_payment")


def words_for(by_name: Mapping[str, Sequence[str]], tools: Sequence[Tool] = TOOLS) -> ToolWords:
    return ToolWords.of(
        WordsEntry(tool.name, content_digest(tool), tuple(by_name[tool.name]))
        for tool in tools
        if tool.name in by_name
    )


def names(searcher: Searcher, query: str, limit: int = 5) -> list[str]:
    return [TOOLS[match.position].name for match in searcher.search(query, limit)]


def own_sentences() -> dict[str, list[str]]:
    """What a faithful author writes: the tool's own sentence, said in three ways."""
    return {
        tool.name: [
            tool.description.split(".")[0],
            f"please {tool.description.split('.')[0].lower()}",
            f"I need to {' '.join(tool.name.split('__')[-1].split('_'))}",
        ]
        for tool in TOOLS
    }


def test_what_an_author_wrote_finds_the_tool_that_its_own_texts_do_not_name() -> None:
    strange = "make good the punter"
    written = {**own_sentences(), REFUND.name: [
        "give a customer the money back", strange, "return a payment", "send the money back",
    ]}  # fmt: skip

    plain = Hybrid().searcher(TOOLS)
    enriched = Enriched(Hybrid(), words_for(written)).searcher(TOOLS)

    assert REFUND.name not in names(plain, strange)
    assert names(enriched, strange)[0] == REFUND.name
    assert enriched.search(strange, 1)[0].score == 0.5


def test_a_phrase_takes_nothing_from_a_tool_whose_own_texts_answer_it() -> None:
    asked = "send a message to a channel"
    written = {**own_sentences(), REFUND.name: [
        "give a customer the money back", "return a payment", "refund", asked,
    ]}  # fmt: skip

    plain = Hybrid().searcher(TOOLS)
    enriched = Enriched(Hybrid(), words_for(written)).searcher(TOOLS)

    assert plain.search(asked, 1)[0].score > 0.5
    assert names(enriched, asked)[0] == names(plain, asked)[0] != REFUND.name


def test_too_few_phrases_to_learn_from_change_no_order() -> None:
    few = dict(list(own_sentences().items())[:7])
    plain = Hybrid().searcher(TOOLS)
    enriched = Enriched(Hybrid(), words_for(few)).searcher(TOOLS)

    assert isinstance(enriched, EnrichedSearcher)
    assert enriched.weight == 0
    assert names(enriched, "open an issue about a crash") == names(
        plain, "open an issue about a crash"
    )


def test_words_for_no_tool_of_the_list_change_nothing() -> None:
    words = ToolWords.of([WordsEntry("elsewhere", "0" * 16, ("send a mail",))])

    plain, enriched = Hybrid().searcher(TOOLS), Enriched(Hybrid(), words).searcher(TOOLS)

    for query in ("send a mail", "refund a customer", "gibberish flurb"):
        assert enriched.search(query, 10) == plain.search(query, 10)


def test_words_of_a_tool_that_changed_are_stale_and_told_of_and_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed = [replace(t, description="Other.") if t is REFUND else t for t in TOOLS]
    words = words_for({REFUND.name: ["give the money back", "return a payment"]})

    assert words.stale(TOOLS) == []
    assert words.stale(changed) == [REFUND.name]
    with caplog.at_level(logging.WARNING):
        searcher = Enriched(Hybrid(), words).searcher(changed)

    assert not isinstance(searcher, EnrichedSearcher)
    assert f"the words of '{REFUND.name}' are stale" in caplog.text


def test_aliases_and_hints_do_not_make_words_stale() -> None:
    words = words_for({REFUND.name: ["give the money back"]})
    told = replace(REFUND, aliases=("chargeback",), annotations={"readOnlyHint": False})

    assert words.entry(told) == words.entry(REFUND) != None  # noqa: E711


AUTHORS = ("another tool's", "random", "the same for all", "one tool takes all")


def bad_words(author: str) -> dict[str, list[str]]:
    good, draw = own_sentences(), random.Random(1)
    if author == "another tool's":
        others = list(good)
        draw.shuffle(others)
        return {name: good[other] for name, other in zip(good, others, strict=True)}
    if author == "random":
        vocabulary = sorted({word for t in TOOLS for word in t.description.split()})
        return {name: [" ".join(draw.choices(vocabulary, k=6)) for _ in range(8)] for name in good}
    if author == "the same for all":
        return {name: ["create a report", "list all users", "send a message"] for name in good}
    taken = [sentence for sentences in list(good.values())[:6] for sentence in sentences]
    return {REFUND.name: taken[:PHRASES_AT_MOST]}


@pytest.mark.parametrize("author", AUTHORS)
def test_bad_words_change_nothing(author: str) -> None:
    plain = Hybrid().searcher(TOOLS)
    enriched = Enriched(Hybrid(), words_for(bad_words(author))).searcher(TOOLS)

    for tool in TOOLS[::9]:
        query = tool.description.split(".")[0]
        assert names(enriched, query) == names(plain, query)


def test_no_words_raise_a_score_by_more_than_the_largest_weight() -> None:
    plain = Hybrid().searcher(TOOLS)
    enriched = Enriched(Hybrid(), words_for(own_sentences())).searcher(TOOLS)
    assert isinstance(enriched, EnrichedSearcher)

    assert enriched.weight in WEIGHTS_TRIED
    for tool in TOOLS[::20]:
        query = tool.description.split(".")[0]
        # The first keeps its probability: words alone never make an unserved need a served one.
        assert enriched.search(query, 1)[0].score >= plain.search(query, 1)[0].score


def test_a_request_that_no_tool_serves_stays_one() -> None:
    plain = Hybrid().searcher(TOOLS)
    enriched = Enriched(Hybrid(), words_for(own_sentences())).searcher(TOOLS)

    for query in ("tune a piano", "what is the capital of France", "thanks a lot"):
        assert enriched.search(query, 1)[0].score == plain.search(query, 1)[0].score


@given(order=st.permutations(range(40)))
@settings(max_examples=10, deadline=None)
def test_the_order_of_the_tools_changes_no_answer(order: list[int]) -> None:
    tools = list(TOOLS[:40])
    words = words_for(own_sentences())
    straight = Enriched(BM25(), words).searcher(tools)
    turned = Enriched(BM25(), words).searcher([tools[i] for i in order])

    for query in ("create an issue", "merge a pull request"):
        first = {tools[m.position].name: round(m.score, 4) for m in straight.search(query, 40)}
        second = {
            tools[order[m.position]].name: round(m.score, 4) for m in turned.search(query, 40)
        }
        assert first == second


def test_words_that_are_another_tools_name_are_not_taken() -> None:
    other = TOOLS[0].name
    words = words_for({REFUND.name: [other, TOOLS[1].name.upper()]})

    assert not isinstance(Enriched(Hybrid(), words).searcher(TOOLS), EnrichedSearcher)


def test_explain_names_the_phrase_that_speaks_for_a_tool() -> None:
    enriched = Enriched(Hybrid(), words_for(own_sentences())).searcher(TOOLS)
    assert isinstance(enriched, EnrichedSearcher)

    why = enriched.explain("refund a payment to a customer", TOOLS.index(REFUND))

    assert "; written for it: " in why


def test_a_line_that_cannot_be_used_is_left_out_and_told_of() -> None:
    content = b'{"name": "a", "digest": "1", "requests": ["do"]}\n[]\n{\n{"name": "b"}\n'
    content += b'{"name": "c", "digest": "1", "requests": "x"}\n'

    words = read_words(content)

    assert list(words.by_name) == ["a"]
    assert [line.number for line in words.bad_lines] == [2, 3, 4, 5]
    assert words.bad_lines[0] == BadLine(2, "no JSON object")
    assert words.bad_lines[-1] == BadLine(5, "`requests` is no list of texts")


def test_what_is_read_is_bounded_and_visible() -> None:
    long, many = "x" * 9_999, [f"request {i}" for i in range(99)]
    line = written_line(
        WordsEntry("a", "1", (long, *many), ("zero\u200bwidth", "\u202e", "B", "b"))
    )

    (entry,) = read_words(line).by_name.values()

    assert len(entry.requests) == PHRASES_AT_MOST
    assert len(entry.requests[0]) == PHRASE_LIMIT
    assert entry.words == ("zerowidth", "B")


def saved(path: Path, by_name: Mapping[str, Sequence[str]]) -> str:
    entries = words_for(by_name).by_name.values()
    path.write_bytes(b"\n".join(map(written_line, entries)))
    return str(path)


def test_tools_listings_and_guidance_are_the_same_with_and_without_words(tmp_path: Path) -> None:
    file = saved(tmp_path / "w.jsonl", own_sentences())
    strategies: tuple[StrategyName, ...] = ("bridge", "reveal", "stub")

    for strategy in strategies:
        asked = Settings(enabled="on", strategy=strategy)
        plain = fold(TOOLS, settings=asked, core={TOOLS[0].name})
        told = fold(TOOLS, settings=replace(asked, enriched=file), core={TOOLS[0].name})
        assert told.tools == plain.tools
        assert told.guidance == plain.guidance
        assert told.report == plain.report
        assert told.catalog.fingerprint == Catalog(TOOLS).fingerprint


def test_a_changed_file_is_read_anew_and_a_missing_one_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "w.jsonl"
    asked = Settings(enriched=str(path))

    assert chosen_ranker(asked, "hybrid") == Hybrid("auto")
    assert chosen_ranker(asked, "hybrid") == Hybrid("auto")
    assert caplog.text.count("are not used: No such file") == 1
    saved(path, {REFUND.name: ["one"]})
    first = chosen_ranker(asked, "hybrid")
    saved(path, {REFUND.name: ["one", "and another"]})
    second = chosen_ranker(asked, "hybrid")

    assert isinstance(first, Enriched)
    assert isinstance(second, Enriched)
    assert first != second
    assert first == Enriched(Hybrid("auto"), first.words)


def test_the_simple_ranker_knows_no_words(tmp_path: Path) -> None:
    file = saved(tmp_path / "w.jsonl", {REFUND.name: ["one"]})

    assert chosen_ranker(Settings(enriched=file), "keyword").name == "keyword"
    assert not isinstance(chosen_ranker(Settings(enriched=file), "keyword"), Enriched)
