"""Settings: where values come from, and what is said about those that cannot be used."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from support.outcomes import invoked
from toolfold import ConfigError, MemorySettings, Reranker, Settings, Tool, fold, load_settings
from toolfold.settings import ENVIRONMENT, PRESETS


def written(folder: Path, text: str, name: str = "toolfold.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(
    file: Path | None = None, environ: dict[str, str] | None = None, **arguments: Any
) -> Any:
    with pytest.raises(ConfigError) as caught:
        load_settings(file, environ=environ or {}, **arguments)
    place = str(file) if file else "no file"
    return caught.value.message.replace(place, "FILE"), caught.value.hint


def test_the_defaults_are_those_of_the_reference_and_the_issue() -> None:
    assert load_settings(environ={}) == Settings()
    assert Settings() == Settings(
        enabled="auto",
        threshold_pct=10,
        search_default_limit=5,
        max_search_limit=20,
        strategy="auto",
        core=(),
        never_defer=(),
        always_defer=(),
        threshold=15,
        listing="sources",
        listing_max_tokens=2_000,
        bridge_texts="full",
        search_max_tokens=1_500,
        describe_max_tokens=8_000,
        aliases={},
        ranker="default",
        reranker=Reranker(enabled=False),
    )


def test_the_block_of_the_reference_system_is_read_as_it_stands(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
tools:
  tool_search:
    enabled: auto            # auto | on | off
    threshold_pct: 10        # 0-100, fractions too: 0.5 is right for a 1M window
    search_default_limit: 5
    max_search_limit: 20     # 1-50
    reranker:
      enabled: false
      endpoint: http://localhost:11434/v1/embeddings
      mode: rerank
      model: "nomic-embed-text-v2-moe"
""",
        "config.yaml",
    )

    assert load_settings(file, environ={}) == Settings()


def test_an_argument_wins_over_the_environment_over_the_file_over_the_default(
    tmp_path: Path,
) -> None:
    file = written(
        tmp_path,
        "tools: {tool_search: {threshold: 20, threshold_pct: 30, max_search_limit: 40}}",
    )
    environ = {"TOOLFOLD_THRESHOLD_PCT": "31", "TOOLFOLD_MAX_SEARCH_LIMIT": "41"}

    found = load_settings(file, environ=environ, max_search_limit=42)

    assert (found.threshold, found.threshold_pct, found.max_search_limit) == (20, 31, 42)
    assert found.search_default_limit == 5


def test_an_argument_of_none_is_not_given(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: {threshold: 20}}")

    assert load_settings(file, environ={}, threshold=None).threshold == 20


@pytest.mark.parametrize("key", ["core", "never_defer"])
def test_the_lists_of_open_tools_are_united(tmp_path: Path, key: str) -> None:
    file = written(tmp_path, f"tools: {{tool_search: {{{key}: [a, b]}}}}")
    environ = {f"TOOLFOLD_{key.upper()}": "b, c"}

    found = load_settings(file, environ=environ, **{key: ["d", "a"]})

    assert getattr(found, key) == ("a", "b", "c", "d")


def test_the_core_of_a_fold_is_united_with_that_of_its_settings() -> None:
    tools = [Tool("a"), Tool("b"), Tool("c")]

    folded = fold(tools, core={"b"}, settings=Settings(enabled="on", core=("a",)))

    assert folded.report.deferred == 1
    assert invoked(folded.resolve("c", {})).tool.name == "c"


def test_a_bare_string_as_the_core_of_a_fold_is_refused_with_the_fix() -> None:
    with pytest.raises(ConfigError) as caught:
        fold([Tool("a")], core="read_file")

    assert caught.value.message == "`core` is the text 'read_file', not a list"
    assert caught.value.hint == "write ['read_file']"


def test_other_lists_are_replaced_by_the_stronger_one(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: {always_defer: [a]}}")

    assert load_settings(file, environ={}, always_defer=["b"]).always_defer == ("b",)


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("enabled: auto", "auto"),
        ("enabled: on", "on"),
        ("enabled: off", "off"),
        ("enabled: 'on'", "on"),
        ("enabled: true", "on"),
        ("enabled: false", "off"),
        ("enabled: yes", "on"),
    ],
)
def test_under_enabled_true_means_on_and_false_off(tmp_path: Path, text: str, enabled: str) -> None:
    file = written(tmp_path, f"tools:\n  tool_search:\n    {text}\n")

    assert load_settings(file, environ={}).enabled == enabled


@pytest.mark.parametrize(
    ("value", "enabled"),
    [("true", "auto"), ("on", "auto"), ("false", "off"), ("off", "off"), ("", "auto")],
)
def test_as_the_bare_value_true_means_auto_and_false_off(
    tmp_path: Path, value: str, enabled: str
) -> None:
    file = written(tmp_path, f"tools:\n  tool_search: {value}\n")

    assert load_settings(file, environ={}).enabled == enabled


def test_any_other_bare_value_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "tools:\n  tool_search: 3\n")

    assert refused(file) == (
        "`tools.tool_search` is 3 in `FILE`, line 2",
        "write true, false, or a block of settings",
    )


def test_off_as_the_listing_is_read_though_yaml_makes_it_false(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: {listing: off}}")

    assert load_settings(file, environ={}).listing == "off"
    assert load_settings(environ={"TOOLFOLD_LISTING": "off"}).listing == "off"


def test_a_fraction_of_a_per_cent_is_a_threshold(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: {threshold_pct: 0.5}}")

    assert load_settings(file, environ={}).threshold_pct == 0.5


def test_every_kind_of_setting_can_stand_in_a_file(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
tools:
  tool_search:
    strategy: stub
    core: [read_file, "@files", preset:hermes]
    aliases:
      create_issue: [ticket, bug report]
      send_mail: letter
    reranker:
      enabled: true
      timeout: 0.5
""",
    )

    found = load_settings(file, environ={})

    assert found.strategy == "stub"
    assert found.core == ("read_file", "@files", "preset:hermes")
    assert dict(found.aliases) == {
        "create_issue": ("ticket", "bug report"),
        "send_mail": ("letter",),
    }
    assert found.reranker == Reranker(enabled=True, timeout=0.5)


def test_an_unknown_key_at_the_top_of_our_file_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "# ours\ntolls:\n  tool_search: true\n")

    assert refused(file) == ("unknown key `tolls` in `FILE`, line 2", "did you mean `tools`?")


def test_a_setting_at_the_top_of_our_file_is_told_its_place(tmp_path: Path) -> None:
    file = written(tmp_path, "enabled: on\n")

    assert refused(file) == (
        "unknown key `enabled` in `FILE`, line 1",
        "write it under `tools:` and `tool_search:`, as `enabled`",
    )


def test_an_unknown_key_beside_our_block_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "tools:\n  tool_serch:\n    enabled: on\n")

    assert refused(file) == (
        "unknown key `tools.tool_serch` in `FILE`, line 2",
        "did you mean `tools.tool_search`?",
    )


def test_an_unknown_key_in_our_block_is_refused_with_the_nearest(tmp_path: Path) -> None:
    file = written(
        tmp_path, "tools:\n  tool_search:\n    enabled: on\n    treshold: 3\n", "host.yaml"
    )

    assert refused(file) == (
        "unknown key `treshold` in `FILE`, line 4",
        "did you mean `threshold`?",
    )


def test_an_unknown_key_like_none_we_know_is_refused_with_all_of_them(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: {zzz: 3}}")

    message, hint = refused(file)

    assert message == "unknown key `zzz` in `FILE`, line 1"
    assert hint.startswith("the keys are aliases, always_defer, ")
    assert all(field.name in hint for field in fields(Settings))


def test_an_unknown_key_of_the_reranker_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "tools:\n  tool_search:\n    reranker:\n      modell: x\n")

    assert refused(file) == (
        "unknown key `reranker.modell` in `FILE`, line 4",
        "did you mean `reranker.model`?",
    )


def test_other_keys_of_a_foreign_hosts_file_are_ignored(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
model: {default: x, temperature: 3}
model: twice
secrets: !vault abc
1: {2: 3}
tools:
  disabled: [a]
  disabled: [b]
  tool_search: {threshold: 9}
""",
        "config.yaml",
    )

    assert load_settings(file, environ={}).threshold == 9


@pytest.mark.parametrize("text", ["", "tools: [a, b]\n", "other: 1\n", "tools:\n  browser: 1\n"])
def test_a_foreign_hosts_file_may_lack_our_block(tmp_path: Path, text: str) -> None:
    assert load_settings(written(tmp_path, text, "config.yaml"), environ={}) == Settings()


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "tools:\n  tool_search:\n    enabled: on\n    enabled: off\n")

    assert refused(file) == ("the key `enabled` stands twice in `FILE`, line 4", "leave one out")


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("enabled: maybe", "`enabled` is 'maybe'", "write auto | on | off"),
        ("threshold_pct: 101", "`threshold_pct` is 101", "write a number from 0 to 100"),
        ("threshold_pct: -1", "`threshold_pct` is -1", "write a number from 0 to 100"),
        ("threshold_pct: ten", "`threshold_pct` is 'ten'", "write a number from 0 to 100"),
        ("threshold_pct: true", "`threshold_pct` is True", "write a number from 0 to 100"),
        ("threshold_pct: .nan", "`threshold_pct` is nan", "write a number from 0 to 100"),
        ("max_search_limit: 51", "`max_search_limit` is 51", "write a whole number from 1 to 50"),
        ("max_search_limit: 0", "`max_search_limit` is 0", "write a whole number from 1 to 50"),
        ("max_search_limit: 2.5", "`max_search_limit` is 2.5", "write a whole number from 1 to 50"),
        (
            "strategy: magic",
            "`strategy` is 'magic'",
            "write auto | bridge | native | reveal | stub | hosted",
        ),
        ("core: read_file", "`core` is the text 'read_file', not a list", "write [read_file]"),
        ("core: 3", "`core` is 3", "write a list of names or patterns"),
        ("core: [3]", "`core` is 3", "write a text"),
        (
            "core: [preset:x]",
            "`core` names the unknown preset 'preset:x'",
            "use preset:hermes, preset:small, preset:claude-code, preset:codex, preset:opencode, "
            "preset:goose",
        ),
        ("bridge_texts: long", "`bridge_texts` is 'long'", "write full | short"),
        ("listing: all", "`listing` is 'all'", "write off | sources | names"),
        (
            "aliases: [a]",
            "`aliases` is ['a']",
            "write a mapping from a tool's name to a list of words",
        ),
        ("reranker: true", "`reranker` is True", "write a block"),
        ("threshold:", "`threshold` is None", "write a whole number from 1 to 100,000"),
        ("ranker: best", "`ranker` is 'best'", None),
        ("relevance_floor: 2", "`relevance_floor` is 2", "write a number from 0 to 1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_place_and_fix(
    tmp_path: Path, line: str, message: str, hint: str | None
) -> None:
    file = written(tmp_path, f"tools:\n  tool_search:\n    {line}\n")

    said, fix = refused(file)

    assert said == f"{message} in `FILE`, line 3"
    assert hint is None or fix == hint


def test_a_value_of_any_size_is_refused_in_a_short_text(tmp_path: Path) -> None:
    file = written(tmp_path, f"tools: {{tool_search: {{threshold: {'9' * 4000}}}}}")

    said, _ = refused(file)

    assert len(said) < 150


def test_a_default_limit_above_the_maximum_is_refused(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "tools:\n  tool_search:\n    search_default_limit: 9\n    max_search_limit: 8\n",
    )

    assert refused(file) == (
        "`search_default_limit` is 9, above `max_search_limit`, which is 8 in `FILE`, line 3",
        "lower the first or raise the second",
    )
    with pytest.raises(ConfigError):
        Settings(search_default_limit=21)


def test_a_maximum_below_the_built_in_default_lowers_it() -> None:
    assert load_settings(environ={}, max_search_limit=3).search_default_limit == 3


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("TOOLFOLD_ENABLED", "on", "enabled", "on"),
        ("TOOLFOLD_ENABLED", "off", "enabled", "off"),
        ("TOOLFOLD_ENABLED", "auto", "enabled", "auto"),
        ("TOOLFOLD_ENABLED", "", "enabled", "auto"),
        ("TOOLFOLD_THRESHOLD_PCT", "0.5", "threshold_pct", 0.5),
        ("TOOLFOLD_CORE", "a, b ,c", "core", ("a", "b", "c")),
        ("TOOLFOLD_CORE", "[a, 'b,c']", "core", ("a", "b,c")),
        ("TOOLFOLD_CORE", "", "core", ()),
        ("TOOLFOLD_ALIASES", "{a: [b]}", "aliases", {"a": ("b",)}),
    ],
)
def test_a_setting_can_stand_in_the_environment(
    variable: str, text: str, key: str, value: Any
) -> None:
    assert getattr(load_settings(environ={variable: text}), key) == value


def test_the_rerankers_settings_can_stand_in_the_environment() -> None:
    environ = {"TOOLFOLD_RERANKER_ENABLED": "true", "TOOLFOLD_RERANKER_QUERY_PREFIX": ""}

    assert load_settings(environ=environ).reranker == Reranker(enabled=True, query_prefix="")


def test_every_setting_has_a_variable() -> None:
    assert set(ENVIRONMENT) == {
        *(
            f"TOOLFOLD_{f.name.upper()}"
            for f in fields(Settings)
            if f.name not in ("reranker", "memory")
        ),
        *(f"TOOLFOLD_RERANKER_{f.name.upper()}" for f in fields(Reranker)),
        *(f"TOOLFOLD_MEMORY_{f.name.upper()}" for f in fields(MemorySettings)),
    }


@pytest.mark.parametrize("variable", ENVIRONMENT)
def test_every_variable_is_read(variable: str) -> None:
    try:
        found = load_settings(environ={variable: "7"})
    except ConfigError as error:
        assert error.message.endswith(f"in the environment variable {variable}")
    else:
        assert found != Settings()


def test_a_variable_that_cannot_be_used_is_refused_by_its_name() -> None:
    assert refused(environ={"TOOLFOLD_THRESHOLD_PCT": "many"}) == (
        "`threshold_pct` is 'many' in the environment variable TOOLFOLD_THRESHOLD_PCT",
        "write a number from 0 to 100",
    )
    assert refused(environ={"TOOLFOLD_THRESHHOLD": "3"}) == (
        "unknown environment variable `TOOLFOLD_THRESHHOLD`",
        "did you mean `TOOLFOLD_THRESHOLD`?",
    )


@pytest.mark.parametrize("name", ["TOOLFOLD_STORE", "TOOLFOLD_ADMIN"])
def test_a_variable_that_the_guides_have_people_set_is_no_setting(name: str) -> None:
    assert load_settings(environ={name: "postgresql://app@db/tools"}) == Settings()


def test_an_unknown_argument_is_refused() -> None:
    assert refused(treshold=3) == ("unknown key `treshold`", "did you mean `threshold`?")


def test_the_file_can_be_named_in_the_environment(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: {threshold: 9}}", "host.yaml")

    assert load_settings(environ={"TOOLFOLD_CONFIG": str(file)}).threshold == 9


def test_our_file_in_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "tools: {tool_search: {threshold: 9}}")
    monkeypatch.chdir(tmp_path)

    assert load_settings(environ={}).threshold == 9


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.yaml") == (
        "cannot read `FILE`: No such file or directory",
        "check the path given as the configuration",
    )
    bytes_ = tmp_path / "b.yaml"
    bytes_.write_bytes(b"\xff\xfe\x00")
    assert refused(bytes_)[0] == "cannot read `FILE`: it is not UTF-8"


@pytest.mark.parametrize(
    ("text", "start", "line"),
    [
        ("tools:\n  tool_search: [\n", "cannot read `FILE`, line 3: ", 3),
        ("- a\n", "the file is no mapping in `FILE`, line 1", 1),
        ("tools: 3\n", "`tools` is no mapping in `FILE`, line 1", 1),
        ("tools:\n  tool_search:\n    core: !x a\n", "cannot read a value in `FILE`, line 3: ", 3),
        (
            "tools:\n  tool_search:\n    core: 2024-99-99\n",
            "cannot read a value in `FILE`, line 3: ",
            3,
        ),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused_with_the_line(
    tmp_path: Path, text: str, start: str, line: int
) -> None:
    said, hint = refused(written(tmp_path, text))

    assert said.startswith(start)
    assert f"line {line}" in said
    assert hint


def test_a_preset_stands_for_its_list() -> None:
    tools = [Tool("terminal"), Tool("browser_click"), Tool("github_fork")]

    folded = fold(tools, settings=Settings(enabled="on", core=("preset:hermes",)))

    assert [tool["function"]["name"] for tool in folded.tools][:2] == ["terminal", "browser_click"]
    assert folded.report.deferred == 1
    assert PRESETS["hermes"][:3] == ("terminal", "read_file", "write_file")
    assert set(PRESETS["small"]) < set(PRESETS["hermes"])
    assert len(PRESETS["small"]) == 9


def test_settings_are_frozen_and_checked_when_made() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(threshold_pct=200)

    assert caught.value.message == "`threshold_pct` is 200"
    with pytest.raises(AttributeError):
        Settings().enabled = "on"  # type: ignore[misc]
    assert Settings(core=["b", "a", "b"]).core == ("b", "a")  # type: ignore[arg-type]
    assert Settings(core={"b", "a"}).core == ("a", "b")  # type: ignore[arg-type]
