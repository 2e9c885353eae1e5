"""The tool search block of Hermes Agent's newer releases, as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolfold import ConfigError, Settings, Tool, fold, load_settings


def _read(folder: Path, block: str) -> Settings:
    """Return the settings of a configuration of that host with some lines in its block."""
    lines = "".join(f"    {line}\n" for line in block.splitlines())
    file = folder / "config.yaml"
    file.write_text(f"model: some-model\ntools:\n  tool_search:\n{lines}", encoding="utf-8")
    return load_settings(file, environ={})


def test_its_block_reads_as_it_stands(tmp_path: Path) -> None:
    block = """\
enabled: Auto
threshold_pct: 5
search_default_limit: 5
max_search_limit: 25
listing: auto
listing_max_tokens: 4000
defer: [computer_use, session_search]"""

    assert _read(tmp_path, block) == Settings(
        enabled="auto",
        threshold_pct=5,
        max_search_limit=25,
        listing="names",
        listing_max_tokens=4000,
        defer=("computer_use", "session_search"),
    )


@pytest.mark.parametrize(
    ("written", "enabled"),
    [
        ("Auto", "auto"), ("AUTO", "auto"), ("' auto '", "auto"),
        ("On", "on"), ("'ON'", "on"), ("'yes'", "on"), ("'True'", "on"), ("1", "on"), ("'1'", "on"),
        ("OFF", "off"), ("'No'", "off"), ("'false'", "off"), ("0", "off"),
    ],
)  # fmt: skip
def test_enabled_is_read_whatever_its_case(tmp_path: Path, written: str, enabled: str) -> None:
    assert _read(tmp_path, f"enabled: {written}").enabled == enabled


@pytest.mark.parametrize(
    ("written", "listing"),
    [
        ("auto", "names"), ("Auto", "names"), ("on", "names"), ("true", "names"),
        ("'Yes'", "names"), ("1", "names"), ("off", "off"), ("'OFF'", "off"),
        ("false", "off"), ("0", "off"),
        ("Sources", "sources"), ("names", "names"),
    ],
)  # fmt: skip
def test_its_listing_means_the_names_or_nothing(tmp_path: Path, written: str, listing: str) -> None:
    assert _read(tmp_path, f"listing: {written}").listing == listing


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("enabled: maybe", "`enabled` is 'maybe'"),
        ("enabled: 2", "`enabled` is 2"),
        ("listing: [auto]", "`listing` is ['auto']"),
        ("defer: todo_list", "`defer` is the text 'todo_list', not a list"),
    ],
)
def test_what_that_host_would_pass_over_is_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(tmp_path, line)

    assert caught.value.message.startswith(message)
    assert "line 4" in caught.value.message


def _hidden(tools: list[Tool], **settings: object) -> tuple[str, ...]:
    return fold(tools, settings=Settings(enabled="on", **settings)).hidden  # type: ignore[arg-type]


TOOLS = [Tool("terminal"), Tool("session_search"), Tool("todo", policy="never"), Tool("mail")]


def test_what_defer_names_is_folded_though_it_is_core() -> None:
    core = ("preset:hermes",)

    assert _hidden(TOOLS, core=core) == ("mail",)
    assert _hidden(TOOLS, core=core, defer=("session_search",)) == ("session_search", "mail")
    assert _hidden(TOOLS, core=core, defer=()) == ("mail",)
    assert _hidden(TOOLS, defer=("todo",)) == ("terminal", "session_search", "todo", "mail")


def test_never_defer_wins_over_defer() -> None:
    assert _hidden(TOOLS, core=("*",), defer=("*",), never_defer=("preset:hermes",)) == ("mail",)


def test_defer_alone_does_not_fold_below_the_gate() -> None:
    settings = Settings(core=("terminal",), defer=("terminal",))

    assert not fold(TOOLS, settings=settings, context_length=100_000).active
