"""A transcript that `toolfold chat` wrote, held again by `toolfold replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.chatting import Ran, prepare
from toolfold.cli import main

HOUSE_CALLS = """
turns:
  - user: Look at the wall, then paint it.
    replies:
      - calls: [{look: {at: wall}}]
      - calls: [{paint: {what: wall}}]
      - Painted.
  - user: Thanks.
    replies: [You are welcome.]
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, monkeypatch)


def run(*arguments: str) -> Ran:
    result = CliRunner().invoke(main, arguments)
    return Ran(result.exit_code, result.stdout, result.stderr)


def results(*arguments: str) -> dict[str, dict[str, Any]]:
    ran = run("replay", "t.jsonl", "--json", *arguments)
    assert ran.code == 0, ran.err
    return {result["strategy"]: result for result in json.loads(ran.out)["results"]}


def test_a_chat_over_the_bundled_tools_is_replayed_as_it_stands() -> None:
    assert run("chat", "--script", "demo", "--transcript", "t.jsonl").code == 0

    by_strategy = results()

    assert {(r["trace"], r["turns"], r["needs"]) for r in by_strategy.values()} == {("t", 4, 7)}
    assert [r["met"] for r in by_strategy.values()] == [7] * len(by_strategy)
    assert by_strategy["unfolded"]["round_trips"] < by_strategy["bridge"]["round_trips"]
    assert by_strategy["bridge"]["prompt_tokens"] < by_strategy["unfolded"]["prompt_tokens"] / 10


def test_a_chat_over_tools_of_a_python_file_is_replayed_over_that_file() -> None:
    Path("script.yaml").write_text(HOUSE_CALLS, encoding="utf-8")
    chat = ("chat", "--script", "script.yaml", "--tools", "tools.py", "--transcript", "t.jsonl")
    assert run(*chat).code == 0

    bridge = results("--tools", "tools.py", "--strategy", "bridge")["bridge"]

    assert (bridge["turns"], bridge["needs"], bridge["met"]) == (2, 2, 2)


def test_a_chat_over_other_tools_says_which_is_not_there_and_how_to_give_it() -> None:
    Path("script.yaml").write_text(HOUSE_CALLS, encoding="utf-8")
    run("chat", "--script", "script.yaml", "--tools", "tools.py", "--transcript", "t.jsonl")

    assert run("replay", "t.jsonl") == Ran(
        2,
        "",
        "error: `t.jsonl`, turn 1: the catalog has no 'look'\n\n"
        "hint: give the tools that the conversation had, with --catalog or --tools\n",
    )


def test_a_line_that_is_no_message_is_named() -> None:
    lines = [{"role": "user", "text": "Hi."}, {"role": "tool", "text": "seen"}]
    Path("t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    assert run("replay", "t.jsonl") == Ran(
        2,
        "",
        "error: `t.jsonl`, line 2: a message has the role 'tool'\n\n"
        "hint: give a file that `toolfold chat` wrote\n",
    )
