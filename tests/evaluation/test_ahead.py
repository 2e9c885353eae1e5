"""`toolfold.evaluation.ahead`: what naming tools behind the user's message saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolfold import Settings
from toolfold.catalog import Catalog
from toolfold.cli import main
from toolfold.evaluation import Corpus, LabelledRequest, measure_prefetch
from toolfold.tool import Tool

TOOLS = [
    Tool("send_fax", "Send a fax to a number."),
    Tool("post_letter", "Post a letter to an address."),
    Tool("tool_search", "Look for a lost tool in the shed."),
]
SETTINGS = Settings(cache_dir="off")


def corpus(*requests: LabelledRequest) -> Corpus:
    return Corpus("post", Catalog(TOOLS), requests)


def asked(query: str, *gold: str, later: bool = False) -> LabelledRequest:
    return LabelledRequest(query, frozenset(gold), later=later)


def test_a_note_with_all_that_is_needed_saves_the_search_and_its_answer() -> None:
    metrics = measure_prefetch(
        corpus(asked("Send a fax to Bob", "send_fax")), SETTINGS, "sure"
    ).metrics

    assert (metrics["spoken"], metrics["right"], metrics["complete"]) == (1, 1, 1)
    assert (metrics["trips_before"], metrics["trips"]) == (1, 0)
    assert metrics["tokens"] == metrics["note_tokens"] < metrics["tokens_before"]


def test_a_note_without_it_costs_its_tokens_and_saves_nothing() -> None:
    metrics = measure_prefetch(
        corpus(asked("Send a fax to Bob", "post_letter")), SETTINGS, "sure"
    ).metrics

    assert metrics["complete"] == 0
    assert metrics["trips"] == metrics["trips_before"]
    assert metrics["tokens"] == metrics["tokens_before"] + metrics["note_tokens"]


def test_what_no_tool_serves_counts_apart_and_by_its_place_in_the_conversation() -> None:
    metrics = measure_prefetch(
        corpus(asked("Thanks!"), asked("Did you send the fax?", later=True)), SETTINGS, "always"
    ).metrics

    assert metrics == {"unserved_spoken": 0}


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_tells_it_behind_its_own_figures(tmp_path: Path, as_json: bool) -> None:
    rows = [{"name": tool.name, "description": tool.description} for tool in TOOLS]
    (tmp_path / "tools.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    lines = [
        {"query": "Send a fax to Bob", "gold": ["send_fax"]},
        {"query": "Which one?", "gold": [], "later": True},
    ]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")

    ran = CliRunner().invoke(
        main, ["eval", str(tmp_path), "--prefetch", *(["--json"] if as_json else [])]
    )

    assert ran.exit_code == 0
    if as_json:
        told = json.loads(ran.stdout)["prefetch"]
        assert told["sure"]["complete"] == 1 and told["always"]["unserved_spoken"] == 0
    else:
        assert "what naming tools behind the user's message saves" in ran.stdout
        assert f"{tmp_path.name} sure" in ran.stdout
