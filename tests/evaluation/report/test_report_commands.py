"""`--page` and `--out` as they are typed: what the commands write, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from support.html_page import HtmlPage
from toolfold.cli import main


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_page_names_the_command_that_made_it() -> None:
    ran = CliRunner().invoke(
        main,
        [
            "ab",
            "--scripted",
            "--scenario",
            "no_tool_needed",
            "--arms",
            "folded,stub",
            "--out",
            "a b",
        ],
    )

    page = HtmlPage(Path("a b/report.html").read_text(encoding="utf-8"))
    assert ran.exit_code == 0
    assert page.within("code")[0] == (
        "toolfold ab --scripted --scenario no_tool_needed --arms folded,stub --out 'a b'"
    )
    assert "The model follows a plan" in page.words


def test_the_command_that_a_page_names_holds_no_secrets(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 12
    corpus = tmp_path / key
    corpus.mkdir()
    (corpus / "tools.jsonl").write_text('{"name": "a", "description": "Mail."}', encoding="utf-8")
    (corpus / "queries.jsonl").write_text('{"query": "mail", "gold": ["a"]}', encoding="utf-8")

    CliRunner().invoke(main, ["eval", str(corpus), "--page", "page.html"])

    assert key not in HtmlPage(Path("page.html").read_text("utf-8")).within("code")[0]


def test_replay_writes_a_page_with_its_turns() -> None:
    trace = (
        '{"trace": "evening"}\n{"user": "Open an issue", "needs": [{"search": "open an issue", '
        '"tool": "forge__create_issue", "arguments": {"repo": "a/b", "title": "t"}}], '
        '"answer": "Opened it."}\n'
    )
    Path("evening.jsonl").write_text(trace, encoding="utf-8")

    ran = CliRunner().invoke(
        main,
        ["replay", "evening.jsonl", "--strategy", "unfolded", "--strategy", "bridge",
         "--page", "page.html"],
    )  # fmt: skip

    assert ran.exit_code == 0, ran.output
    page = HtmlPage(Path("page.html").read_text(encoding="utf-8"))
    assert page.words.count("Opened it.") == 2
    assert "forge__create_issue" in page.within("code")
    assert any(
        summary.startswith("tool_search: open an issue") for summary in page.within("summary")
    )


def test_a_page_that_cannot_be_written_is_an_error_with_its_name() -> None:
    ran = CliRunner().invoke(
        main, ["replay", "--growth", "g.svg", "--turns", "2", "--page", "no/p"]
    )

    assert ran.exit_code == 2
    assert "error: cannot write `no/p`: No such file or directory" in ran.stderr


def test_a_page_of_what_it_does_not_show_is_refused() -> None:
    ran = CliRunner().invoke(main, ["eval", "--history", "60%", "--page", "page.html"])

    assert ran.exit_code == 2
    assert "--page and --plot show no history" in ran.stderr
