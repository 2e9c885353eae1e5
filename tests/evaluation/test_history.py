"""`toolfold eval --history`: what a memory is worth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.memories import TOPICS, UNSEEN, opaque_tools
from toolfold import Settings
from toolfold.cli.main import main
from toolfold.evaluation import load_corpus, measure_history, split_history

OPEN = Settings(enabled="on", relevance_floor=0.0, cache_dir="off")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tools = [{"name": tool.name, "description": tool.description} for tool in opaque_tools()]
    asked = [
        {"query": text, "gold": [name], "split": "before"}
        for name, texts in TOPICS.items()
        for text in texts
    ]
    asked += [{"query": text, "gold": [name], "split": "after"} for name, text in UNSEEN.items()]
    for file, rows in (("tools.jsonl", tools), ("queries.jsonl", asked)):
        (tmp_path / file).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return tmp_path


def test_requests_are_measured_after_more_and_more_of_a_history(folder: Path) -> None:
    before, after = split_history(load_corpus(folder), "before")

    result = measure_history(before, after, OPEN, orders=2)

    first, last = result.points[0], result.points[-1]
    assert (first.uses, last.uses) == (0, 30)
    assert (result.history, result.queries) == (30, 5)
    assert first.recall_1 is not None and last.recall_1 is not None
    assert first.recall_1 <= 0.2
    assert last.recall_1 == 1.0


def test_a_history_is_a_split_a_share_or_a_file(folder: Path) -> None:
    corpus = load_corpus(folder)

    split = split_history(corpus, "before")
    share = split_history(corpus, "60%", seed=3)
    file = split_history(corpus, str(folder / "queries.jsonl"))

    assert [len(part.requests) for part in split] == [30, 5]
    assert [len(part.requests) for part in share] == [21, 14]
    assert not [request for request in share[0].requests if request in share[1].requests]
    assert [len(part.requests) for part in file] == [35, 35]


def test_the_command_prints_recall_after_each_step(folder: Path) -> None:
    asked = ["eval", str(folder), "--history", "before", "--floor", "0"]

    told = CliRunner().invoke(main, [*asked, "--json"])
    shown = CliRunner().invoke(main, asked)

    assert [point["uses"] for point in json.loads(told.stdout)["after"]] == [0, 30]
    assert "recall@1" in shown.stdout


def test_a_history_that_leaves_nothing_is_an_error(folder: Path) -> None:
    done = CliRunner().invoke(main, ["eval", str(folder), "--history", "nothing like it"])

    assert done.exit_code


def test_what_was_learnt_is_kept_and_saves_round_trips_of_a_replay(folder: Path) -> None:
    kept, trace = folder / "memory.sqlite", folder / "trace.jsonl"
    turns = [
        {"user": text, "answer": "Done.", "needs": [{"search": text, "tool": name, "result": "ok"}]}
        for name, text in UNSEEN.items()
    ]
    head = {"trace": "day", "catalog": "tools.jsonl"}
    trace.write_text("\n".join(map(json.dumps, [head, *turns])), "utf-8")

    def replayed(*options: str) -> tuple[int, int]:
        arguments = ["replay", str(trace), "--strategy", "bridge", "--json", *options]
        ran = CliRunner().invoke(main, arguments)
        assert ran.exit_code == 0, ran.output
        (result,) = json.loads(ran.stdout)["results"]
        return result["met"], result["round_trips"]

    ran = CliRunner().invoke(
        main, ["eval", str(folder), "--history", "before", "--keep", str(kept)]
    )
    plain, remembered = replayed(), replayed("--memory", str(kept))

    assert ran.exit_code == 0
    assert "30 requests kept in" in ran.stderr
    assert remembered[0] >= plain[0]
    assert remembered != plain
    assert kept.read_bytes()


def test_a_memory_that_is_not_there_says_how_to_make_one(folder: Path) -> None:
    ran = CliRunner().invoke(main, ["replay", "--memory", str(folder / "none.sqlite")])
    alone = CliRunner().invoke(main, ["eval", str(folder), "--keep", str(folder / "kept.sqlite")])

    assert "there is no memory" in ran.stderr
    assert "--keep has nothing to keep: add --history SPLIT" in alone.stderr
