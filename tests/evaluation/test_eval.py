"""`toolfold eval`: which requests are drawn, what counts as found, and the floor's curve."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.html_page import HtmlPage
from toolfold import Settings
from toolfold.evaluation import Corpus, load_corpus, measure
from toolfold.evaluation.measure import FloorPoint, mean_curve
from toolfold.evaluation.report.eval_page import eval_html

TOOLS = [
    {"name": "create_issue", "description": "Open an issue in a repository."},
    {"name": "close_issue", "description": "Close an issue of a repository."},
    {"name": "send_mail", "description": "Send an e-mail to somebody."},
    {"name": "convert_currency", "description": "Convert money from one currency to another."},
    {"name": "play_music", "description": "Play a song."},
]


def corpus(folder: Path, *requests: dict[str, Any]) -> Corpus:
    """A corpus of the tools above with these requests."""
    (folder / "tools.jsonl").write_text("\n".join(map(json.dumps, TOOLS)), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, requests)), encoding="utf-8")
    return load_corpus(folder)


def metrics(own: Corpus) -> dict[str, float | None]:
    return measure(own, Settings(enabled="on", relevance_floor=0.0)).metrics


@given(seed=st.integers(), count=st.integers(1, 40))
def test_a_draw_is_the_same_for_the_same_seed_and_holds_so_many(seed: int, count: int) -> None:
    own = load_corpus(Path(__file__).parents[2] / "src" / "toolfold" / "demo")

    drawn = own.drawn(count, None, seed)

    assert drawn == own.drawn(count, None, seed)
    assert len(drawn.requests) == count
    assert set(map(id, drawn.requests)) <= set(map(id, own.requests))


def test_different_seeds_draw_different_requests_and_not_the_first() -> None:
    own = load_corpus(Path(__file__).parents[2] / "src" / "toolfold" / "demo")

    drawn = [own.drawn(20, None, seed).requests for seed in range(3)]

    assert len({tuple(r.query for r in requests) for requests in drawn}) == 3
    assert all(requests != own.requests[:20] for requests in drawn)


def test_drawn_tools_keep_those_that_serve(tmp_path: Path) -> None:
    own = corpus(tmp_path, {"query": "open an issue", "gold": ["create_issue"]})

    drawn = own.drawn(None, 2, 0)

    assert len(drawn.catalog) == 2
    assert "create_issue" in drawn.catalog


def test_needs_between_bars_are_searched_one_by_one(tmp_path: Path) -> None:
    own = corpus(
        tmp_path, {"query": "open issue | play song", "gold": ["create_issue", "play_music"]}
    )

    assert metrics(own)["recall@1"] == 1.0


@pytest.mark.parametrize(
    "alternatives",
    [[["play_music"]], ["play_music"], {"convert_currency": ["play_music"]}],
    ids=["sets", "names", "by gold"],
)
def test_an_alternative_serves_as_well_as_gold(tmp_path: Path, alternatives: Any) -> None:
    asked = {"query": "play a song", "gold": ["convert_currency"]}
    without = metrics(corpus(tmp_path, asked))
    own = corpus(tmp_path, {**asked, "gold_alternatives": alternatives})

    assert without["recall@1"] == 0.0
    assert metrics(own)["recall@1"] == 1.0
    assert metrics(own)["ndcg@5"] == metrics(own)["mrr"] == 1.0


def test_grades_say_how_well_a_tool_serves(tmp_path: Path) -> None:
    def graded(grades: Any) -> float | None:
        asked = {"query": "create issue", "gold": ["create_issue"], "graded": grades}
        return metrics(corpus(tmp_path, asked))["ndcg@5"]

    assert graded({"create_issue": 2, "close_issue": 1}) == 1.0
    assert (graded([["create_issue", 1], {"name": "close_issue", "grade": 2}]) or 0) < 1.0


def test_without_gold_the_best_grades_are_gold(tmp_path: Path) -> None:
    asked = {"query": "play a song", "graded": {"play_music": 2, "send_mail": 1}}

    assert corpus(tmp_path, asked).requests[0].gold == {"play_music"}


def test_requests_may_bring_their_own_tools(tmp_path: Path) -> None:
    rows = [
        {"query": "play a song", "gold": ["play_music"], "tools": TOOLS[3:]},
        {"query": "open an issue", "gold": [], "tools": TOOLS[3:]},
    ]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    own = load_corpus(tmp_path)
    result = measure(own, Settings(enabled="on"))

    assert not own.unknown
    assert result.metrics["recall@1"] == 1.0
    assert result.metrics["false_hit_rate"] == 0.0


def test_the_curve_falls_and_agrees_with_the_floor(tmp_path: Path) -> None:
    own = corpus(
        tmp_path,
        {"query": "open an issue", "gold": ["create_issue"]},
        {"query": "money exchange", "gold": ["convert_currency"]},
        {"query": "feed the cat", "gold": []},
    )

    result = measure(own, Settings(enabled="on"))

    recalls = [point.recall or 0 for point in result.curve]
    false = [point.false_hit_rate or 0 for point in result.curve]
    assert recalls == sorted(recalls, reverse=True)
    assert false == sorted(false, reverse=True)
    default = Settings().relevance_floor
    at_default = next(p for p in result.curve if p.floor == default)
    assert at_default.recall == result.metrics["recall@5"]
    assert at_default.false_hit_rate == result.metrics["false_hit_rate"]


def test_a_mean_curve_takes_each_number_from_those_that_have_it() -> None:
    served, unserved = [FloorPoint(0.2, 0.8, None)], [FloorPoint(0.2, None, 0.1)]

    assert mean_curve([served, unserved, []]) == [FloorPoint(0.2, 0.8, 0.1)]


def test_the_page_compares_runs_and_escapes_names(tmp_path: Path) -> None:
    own = corpus(
        tmp_path,
        {"query": "open an issue", "gold": ["create_issue"]},
        {"query": "feed the cat", "gold": []},
    )
    row = measure(own, Settings(enabled="on")).as_json()

    page = eval_html({"<before>": [row], "this run": [{**row, "recall@5": 0.5}]})

    assert "<before>" not in page
    read = HtmlPage(page)
    assert [caption.partition(":")[0] for caption in read.within("caption")][:3] == [
        "Recall@5",
        "Recall@1",
        "Requests that no tool serves and that get a hit",
    ]
    assert "Recall against false hits, floor by floor" in page
    assert "0.500" in page


def test_the_page_tells_of_answers_where_a_run_measured_them(tmp_path: Path) -> None:
    own = corpus(tmp_path, {"query": "open an issue", "gold": ["create_issue"]})
    row = measure(own, Settings(enabled="on")).as_json()
    answers = {"answer_recall": 0.75, "first_hit": 0.25, "answer_tokens": 311.6}

    without = eval_html({"before": [row]})
    page = eval_html({"before": [row], "this run": [{**row, "answers": answers}]})

    title = "Right tools that the whole answer names"
    assert "in the answer" not in without and title not in without
    cells = HtmlPage(page).within("td")
    place = cells.index("312")
    assert cells[place - 2 : place + 1] == ["0.750", "0.250", "312"]
    assert title in page
