"""Where the words that were written for tools are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolfold.config import load_gateway
from toolfold.config.proxy_config import load_proxy
from toolfold.errors import ConfigError
from toolfold.settings import load_settings
from toolfold.settings.words_file import words_beside


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("toolfold.yaml", "toolfold.words.jsonl"),
        ("a/tools.jsonl", "a/tools.words.jsonl"),
        ("tools.json.gz", "tools.words.jsonl"),
        (".mcp.json", ".mcp.words.jsonl"),
    ],
)
def test_the_file_of_words_is_named_for_what_it_stands_beside(file: str, words: str) -> None:
    assert words_beside(Path(file)) == Path(words)


def test_the_file_beside_the_configuration_is_taken_by_every_door(tmp_path: Path) -> None:
    Path("toolfold.yaml").write_text("tools: {tool_search: {enabled: on}}\n")
    before = load_settings(environ={}).enriched
    beside = tmp_path / "toolfold.words.jsonl"
    beside.write_text("")

    assert before == "auto"
    assert load_settings(environ={}).enriched == str(beside)
    assert load_gateway("toolfold.yaml", {}).settings.enriched == str(beside)
    assert load_proxy("toolfold.yaml", {}, needs_upstream=False).settings.enriched == str(beside)


def test_a_configuration_without_settings_has_words_beside_it_too(tmp_path: Path) -> None:
    Path("mcp.json").write_text('{"mcpServers": {"a": {"command": "a"}}}')
    Path("mcp.words.jsonl").write_text("")

    assert load_gateway("mcp.json", {}).settings.enriched == str(tmp_path / "mcp.words.jsonl")


def test_off_is_off() -> None:
    Path("toolfold.words.jsonl").write_text("")
    Path("toolfold.yaml").write_text("tools: {tool_search: {enriched: off}}\n")

    assert load_settings("toolfold.yaml", environ={}).enriched == "off"


def test_a_relative_path_in_a_file_begins_where_the_file_stands(tmp_path: Path) -> None:
    Path("conf").mkdir()
    Path("conf/toolfold.yaml").write_text("tools: {tool_search: {enriched: mine.jsonl}}\n")

    found = load_settings("conf/toolfold.yaml", environ={}).enriched
    said = load_settings("conf/toolfold.yaml", environ={"TOOLFOLD_ENRICHED": "w.jsonl"}).enriched

    assert found == str(tmp_path / "conf" / "mine.jsonl")
    assert said == "w.jsonl"


def test_a_file_that_nobody_named_may_not_say_which_file_is_read() -> None:
    Path("toolfold.yaml").write_text("tools: {tool_search: {enriched: /etc/passwd}}\n")

    with pytest.raises(ConfigError, match="nobody named the file in which `enriched` stands"):
        load_settings(environ={})
