"""What once went wrong, each as a sentence."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from toolfold import Answer, Catalog, Invocation, Scope, Settings, Tool, fold
from toolfold.demo import demo_catalog
from toolfold.errors import CatalogError
from toolfold.search._text import is_telling, raw_words
from toolfold.sources import load_catalog

ON = Settings(enabled="on")


def test_arguments_nested_beyond_measure_are_answered_and_not_raised() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}},
        "required": ["v"],
    }
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/node"}},
        "$defs": {"node": node},
    }
    folded = fold([Tool("t", "Does.", schema)], settings=ON)
    deep = '{"n":' + '{"next":' * 300 + "{}" + "}" * 301

    assert isinstance(folded.resolve("tool_call", {"name": "t", "arguments": deep}), Answer)
    assert isinstance(folded.resolve("t", deep), Answer)


@pytest.mark.parametrize("name", [None, ["a"], 5, ""])
def test_a_call_without_a_name_is_answered_and_not_raised(name: object) -> None:
    answer = fold([Tool("a")], settings=ON).resolve(name, {})  # type: ignore[arg-type]

    assert isinstance(answer, Answer)
    assert answer.is_error


def test_every_word_of_every_name_finds_something() -> None:
    catalog = demo_catalog()
    bridge = fold(catalog, settings=ON).bridge
    words = {word for tool in catalog for word in raw_words(tool.name) if is_telling(word)}

    assert [word for word in sorted(words) if not bridge.search(word, 5)] == []


def test_letters_inside_names_find_their_tools_with_the_default_ranker() -> None:
    tools = [Tool(f"mcp_github_action_{i}", "Acts.") for i in range(3)]
    bridge = fold([*tools, Tool("get_me", "Who am I.")], settings=ON).bridge

    assert len(bridge.search("ithu", 5)) >= 3
    assert bridge.search("me", 1)[0].name == "get_me"


def test_a_catalog_below_the_gate_goes_out_with_its_names_as_they_came() -> None:
    record = {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}

    assert fold(Catalog.read([record])).tools == [record]


@pytest.mark.parametrize(
    "text", ['[{"name":"a"}]\n[{"name":"b"}]', '[{"name":"a"}] trailing', '[{"name":"a"},]']
)
def test_a_file_with_more_than_its_list_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(CatalogError):
        load_catalog(file)


def test_a_bad_first_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": \n{"name": "b"}\n', encoding="utf-8")

    with pytest.raises(CatalogError) as caught:
        load_catalog(file)

    assert "line 1:" in str(caught.value)


def test_a_file_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text("[" * 100_000, encoding="utf-8")

    with pytest.raises(CatalogError):
        load_catalog(file)


def test_a_scope_judges_a_providers_own_tools_and_unreadable_entries_too() -> None:
    own = {"type": "web_search_20250305", "name": "web_search"}
    bad = {"name": "secret", "description": 5}
    scope = Scope(allow=("a",))

    assert fold([own, {"name": "a"}], scope=scope).tools == [{"name": "a"}]
    off = Settings(enabled="off")
    assert fold([bad, {"name": "a"}], scope=scope, settings=off).tools == [{"name": "a"}]
    assert fold([bad], settings=off).tools == [bad]


def test_describing_names_that_are_not_there_stays_inside_the_budget() -> None:
    settings = Settings(enabled="on", describe_max_tokens=200)
    names = [f"unknown_tool_number_{i}_{'x' * 60}" for i in range(16)]

    answer = fold([Tool("a")], settings=settings).resolve("tool_describe", {"name": names})

    assert isinstance(answer, Answer)
    assert len(answer.text) / 4 <= 200


def test_a_long_number_in_a_string_is_taken_to_the_last_digit() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    folded = fold([Tool("t", "Does.", schema)], settings=ON)

    call = folded.resolve("t", {"id": "1234567890123456789"})

    assert isinstance(call, Invocation)
    assert call.arguments == {"id": 1234567890123456789}


def test_arguments_under_another_key_are_understood() -> None:
    folded = fold([Tool("t", "Does.", {"type": "object"})], settings=ON)

    call = folded.resolve("tool_call", {"name": "t", "parameters": {"x": "v"}})

    assert isinstance(call, Invocation)
    assert call.arguments == {"x": "v"}


def test_a_name_with_stray_punctuation_calls_nothing() -> None:
    folded = fold([Tool("delete_repo", "Deletes.")], settings=ON)

    assert isinstance(folded.resolve("DELETE-REPO!", {}), Answer)


def test_definitions_of_a_models_schema_stand_at_the_root() -> None:
    class B(BaseModel):
        c: str

    class Model(BaseModel):
        b: B

    def save(model: Model) -> None:
        """Save it."""

    save.__annotations__["model"] = Model
    folded = fold([save], settings=ON)

    assert folded.catalog["save"].parameters["$defs"] == {
        "B": {
            "type": "object",
            "title": "B",
            "properties": {"c": {"type": "string", "title": "C"}},
            "required": ["c"],
        }
    }
    assert isinstance(folded.resolve("save", {"model": {"b": 5}}), Invocation | Answer)
    assert json.dumps(folded.tools)
