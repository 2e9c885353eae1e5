"""`toolfold.evaluation.answers`: what the answers to a model hold and cost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolfold import Settings
from toolfold.catalog import Catalog
from toolfold.cli import main
from toolfold.evaluation import Corpus, LabelledRequest, measure_answers
from toolfold.tool import Tool

POST = [
    Tool(f"letter_{i}", f"Post a letter of kind {i} to somebody.", source="post") for i in range(12)
]
SETTINGS = Settings(enabled="on", ranker="bm25", cache_dir="off")


def corpus(*requests: tuple[str, set[str]]) -> Corpus:
    labelled = tuple(LabelledRequest(query, frozenset(gold)) for query, gold in requests)
    return Corpus("post", Catalog([*POST, Tool("fax", "Send a fax.")]), labelled)


def test_every_name_in_the_answer_counts_and_signatures_are_told_apart() -> None:
    result = measure_answers(corpus(("post a letter", {"letter_0", "letter_7"})), SETTINGS)

    assert result.metrics["answer_recall"] == 1
    assert result.metrics["signature_recall"] == 0.5
    assert result.metrics["plain_recall"] == 0.5
    assert result.metrics["first_five_recall"] == 0.5
    assert result.metrics["first_hit"] == 1
    assert result.metrics["first_hit_recall"] == 0.5


def test_what_stands_beyond_a_share_of_the_plain_answers_tokens_does_not_count_there() -> None:
    metrics = measure_answers(corpus(("post a letter", {"letter_9"})), SETTINGS).metrics

    within = [metrics[f"recall_within_{share}"] for share in (100, 110, 125)]
    assert within == sorted(within)
    assert metrics["answer_tokens"] > metrics["plain_tokens"]
    assert metrics["plain_recall"] == 0


def test_needs_between_bars_each_have_a_first_hit() -> None:
    metrics = measure_answers(corpus(("nothing such | fax", {"fax"})), SETTINGS).metrics

    assert metrics["first_hit"] == 1


def test_an_answer_to_what_nothing_serves_counts_where_it_has_hits() -> None:
    metrics = measure_answers(corpus(("letter", set()), ("submarine", set())), SETTINGS).metrics

    assert metrics["unserved_hit"] == metrics["unserved_close"] == 0.5
    assert "answer_recall" not in metrics


def test_hits_that_are_called_weak_are_told_from_close_ones() -> None:
    near = Corpus("near", Catalog(POST), (LabelledRequest("mail a parcel", frozenset()),))
    settings = Settings(enabled="on", cache_dir="off", relevance_floor=0.0)

    metrics = measure_answers(near, settings).metrics

    assert (metrics["unserved_hit"], metrics["unserved_close"]) == (1, 0)


def test_a_request_with_tools_of_its_own_is_asked_of_those() -> None:
    own = Catalog([Tool("sink_ship", "Sink a submarine.")])
    request = LabelledRequest("sink a submarine", frozenset({"sink_ship"}), catalog=own)

    metrics = measure_answers(Corpus("own", Catalog(()), (request,)), SETTINGS).metrics

    assert metrics["answer_recall"] == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_tells_it_behind_its_own_figures(tmp_path: Path, as_json: bool) -> None:
    tools = [{"name": t.name, "description": t.description} for t in POST]
    (tmp_path / "tools.jsonl").write_text("\n".join(map(json.dumps, tools)), "utf-8")
    row = {"query": "post a letter", "gold": ["letter_0"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(row), "utf-8")

    flags = ["--json"] if as_json else []
    ran = CliRunner().invoke(main, ["eval", str(tmp_path), "--answers", "--ranker", "bm25", *flags])

    assert ran.exit_code == 0, ran.output
    if as_json:
        (line,) = ran.stdout.splitlines()
        assert json.loads(line)["answers"]["answer_recall"] == 1.0
    else:
        table = ran.stdout.partition("what the answers hold and cost\n")[2]
        heads = re.split(r" {2,}", table.splitlines()[0].strip())
        assert len(set(heads)) == len(heads) > 3
