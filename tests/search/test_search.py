"""Search: words, rankers, and the index that keeps both warm."""

import math
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Catalog, Settings, Tool, fold
from toolfold.search._document import FIELDS, document
from toolfold.search._text import raw_words, terms
from toolfold.search.lexical import BM25, FIELD_LENGTH_NORMS, FIELD_WEIGHTS, K1, query_terms

WORDS = ["issue", "mail", "send", "list", "file", "calendar", "event", "refund", "open", "close"]


def names(tools: list[Tool], query: str, k: int = 5) -> list[str]:
    searcher = BM25().searcher(tools)
    return [tools[match.position].name for match in searcher.search(query, k)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create_pull-request.v2", ["create", "pull", "request", "v2"]),
        ("getHTTPResponseCode", ["get", "http", "response", "code"]),
        ("github:repos/list", ["github", "repos", "list"]),
        ("Café ÉCOLE", ["cafe", "ecole"]),
        ("日本語の検索", ["日本", "本語", "語の", "の検", "検索"]),
        ("搜", ["搜"]),
        ("Поиск файлов", ["поиск", "фаилов"]),
        ("", []),
        ("?!… --", []),
    ],
)
def test_words_are_whole_and_unicode_aware(text: str, expected: list[str]) -> None:
    assert list(raw_words(text)) == expected


def test_english_words_are_stemmed() -> None:
    assert terms("creating repositories") == terms("create repository")


@given(st.text(max_size=200))
def test_every_text_has_words_and_the_same_text_the_same(text: str) -> None:
    once = terms(text)

    assert once == terms(text)
    assert all(term and not term.isspace() for term in once)


@given(st.text(alphabet="abcXYZ_ -.é日", max_size=60))
def test_splitting_words_again_changes_nothing(text: str) -> None:
    words = list(raw_words(text))

    assert [again for word in words for again in raw_words(word)] == words


def test_a_short_word_finds_a_whole_word_only() -> None:
    tools = [Tool("add_comment", "Say something."), Tool("get_me", "Who am I.")]

    assert names(tools, "me") == ["get_me"]


def test_a_word_in_the_name_weighs_more_than_one_in_the_description() -> None:
    tools = [
        Tool("archive", "Put a calendar away with other things in the cellar."),
        Tool("calendar", "Put things away with other things in the cellar."),
    ]

    assert names(tools, "calendar") == ["calendar", "archive"]


def test_aliases_parameters_sources_and_enums_are_searched() -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["vermilion"]}}}
    tools = [
        Tool("a", "One.", schema),
        Tool("b", "Two.", aliases=("holiday",)),
        Tool("c", "Three.", source="warehouse"),
        Tool("d", "Four."),
    ]

    assert names(tools, "colour") == ["a"]
    assert names(tools, "vermilion") == ["a"]
    assert names(tools, "holiday") == ["b"]
    assert names(tools, "warehouse") == ["c"]


def test_a_word_that_every_name_holds_still_answers() -> None:
    tools = [Tool(f"github_{word}", "x") for word in WORDS]

    assert len(names(tools, "github", 10)) == len(tools)


def test_letters_inside_a_name_are_the_last_resort() -> None:
    tools = [Tool("kitchenlights", "x"), Tool("garage", "y")]

    assert names(tools, "lights") == ["kitchenlights"]
    assert names(tools, "xyzzy") == []


def test_chinese_and_japanese_queries_find_their_tools() -> None:
    tools = [Tool("a", "创建日历事件"), Tool("b", "メールを送信する"), Tool("c", "send mail")]

    assert names(tools, "日历") == ["a"]
    assert names(tools, "送信") == ["b", "c"]


def independent_bm25(tools: list[Tool], query: str) -> list[float]:
    """BM25F written out term by term, to compare with."""
    documents = [document(tool) for tool in tools]
    means: list[float] = []
    for field in range(len(FIELDS)):
        lengths = [d.lengths[field] for d in documents if d.lengths[field]]
        means.append(sum(lengths) / len(lengths) if lengths else 1.0)
    scores = [0.0] * len(tools)
    for term, weight in query_terms(query).items():
        holders = sum(term in d.terms for d in documents)
        idf = math.log(1 + (len(tools) - holders + 0.5) / (holders + 0.5))
        for i, own in enumerate(documents):
            tf = 0.0
            for held, field, count in zip(own.terms, own.fields, own.counts, strict=True):
                if held == term:
                    b = FIELD_LENGTH_NORMS[FIELDS[field]]
                    norm = 1 - b + b * own.lengths[field] / means[field]
                    tf += FIELD_WEIGHTS[FIELDS[field]] * count / norm
            scores[i] += weight * idf * tf * (K1 + 1) / (tf + K1)
    return scores


@given(st.integers(0, 10_000))
def test_scores_agree_with_an_independent_bm25(seed: int) -> None:
    draw = random.Random(seed)
    tools = [
        Tool(f"tool{i}", " ".join(draw.choices(WORDS, k=draw.randint(1, 12)))) for i in range(12)
    ]
    query = " ".join(draw.choices(WORDS, k=3))

    found = BM25().searcher(tools).search(query, 12)

    expected = independent_bm25(tools, query)
    for match in found:
        assert match.score == pytest.approx(expected[match.position], rel=1e-4)
    assert len(found) == sum(score > 0 for score in expected)


@given(st.permutations(range(10)), st.sampled_from(WORDS))
def test_scores_do_not_depend_on_the_order_of_the_tools(order: list[int], word: str) -> None:
    tools = [Tool(f"t{i}", " ".join(WORDS[i % 3 : i % 7 + 3])) for i in range(10)]
    shuffled = [tools[i] for i in order]

    before = {tools[m.position].name: m.score for m in BM25().searcher(tools).search(word, 10)}
    after = {shuffled[m.position].name: m.score for m in BM25().searcher(shuffled).search(word, 10)}

    assert before == after


def test_ties_stand_in_the_order_of_the_catalog() -> None:
    tools = [Tool(name, "send mail") for name in ("b", "a", "c")]

    assert names(tools, "mail") == ["b", "a", "c"]


def test_a_changed_description_is_searched_at_once() -> None:
    tool = {"name": "a", "description": "about cats"}
    settings = Settings(enabled="on", ranker="bm25", relevance_floor=0)
    fold([tool], settings=settings).resolve("tool_search", {"query": "cats"})

    tool["description"] = "about dogs"

    folded = fold([tool], settings=settings)
    assert [hit.name for hit in folded.bridge.search("dogs", 5)] == ["a"]
    assert folded.bridge.search("cats", 5) == ()


def test_results_are_the_same_in_another_process() -> None:
    code = (
        "from toolfold import fold, Settings\n"
        "from toolfold.demo import demo_catalog\n"
        "b = fold(demo_catalog(), settings=Settings(enabled='on')).bridge\n"
        "print([(h.name, round(h.score, 5)) for q in ('refund a customer', 'book a room')"
        " for h in b.search(q, 5)])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip

    assert len(runs) == 1


def test_a_ranker_of_ones_own_takes_the_place_of_ours() -> None:
    class Backwards:
        name = "backwards"
        calibrated = False

        def searcher(self, tools):  # type: ignore[no-untyped-def]
            class Searcher:
                def search(self, query: str, limit: int):  # type: ignore[no-untyped-def]
                    from toolfold.search import Match

                    return [Match(len(tools) - 1, 1.0)]

                def explain(self, query: str, position: int) -> str:
                    return "it is the last"

            return Searcher()

    catalog = Catalog([Tool("a"), Tool("b")])

    folded = fold(catalog, settings=Settings(enabled="on"), ranker=Backwards())

    assert [hit.name for hit in folded.bridge.search("anything", 5)] == ["b"]
