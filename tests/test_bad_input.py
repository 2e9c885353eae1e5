"""Bad input: a clear error or a harmless tool, and nothing lost."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from support.outcomes import answered, invoked
from toolfold import Catalog, InvalidToolError, Settings, Tool, fold

ON = Settings(enabled="on", ranker="bm25")


@pytest.mark.parametrize(
    ("item", "message", "hint"),
    [
        ({}, "it has no name", "give it a `name`"),
        ({"name": ""}, "it has no name", "give it a `name`"),
        ({"name": "  "}, "it has no name", "give it a `name`"),
        ({"name": 3}, "it has no name", "give it a `name`"),
        ({"type": "function", "function": {}}, "it has no name", "give it a `name`"),
        ({"type": "function", "parameters": {}}, "it has no name", "give it a `name`"),
        ({"inputSchema": {}}, "it has no name", "give it a `name`"),
        ({"functionDeclarations": [{}]}, "it has no name", "give it a `name`"),
        (
            {"functionDeclarations": {"name": "a"}},
            "`functionDeclarations` is not a list",
            "list the functions in it",
        ),
        (
            {"functionDeclarations": ["a"]},
            "a function declaration is not an object",
            "give it a `name`",
        ),
        (
            {"name": "a", "parameters": "none"},
            "`parameters` of 'a' is not a JSON Schema object: 'none'",
            'write {"type": "object", "properties": {…}}',
        ),
        (
            {"name": "a", "input_schema": ["x" * 99]},
            "`input_schema` of 'a' is not a JSON Schema object: ['" + "x" * 57 + "…",
            'write {"type": "object", "properties": {…}}',
        ),
        (
            {"name": "a", "description": ["b"]},
            "`description` of 'a' is not a text: ['b']",
            "write it as a string",
        ),
        ({"name": "a", "server": 3}, "`server` of 'a' is not a text: 3", "write it as a string"),
        (
            {"name": "a", "policy": "later"},
            "`policy` of 'a' is 'later'",
            "write never, automatic or always",
        ),
        (
            {"name": "a", "aliases": "b"},
            "`aliases` of 'a' is not a list of texts: 'b'",
            'write ["…", "…"]',
        ),
        (3, "'int' is not a kind of tool", "give a dict, a `Tool` or a Python function"),
        (
            {"name": "a\ud800b"},
            "a tool's name holds half a character: 'a\\ud800b'",
            "write it in valid Unicode",
        ),
        (
            {"name": "n" * 1_000_000},
            "a tool's name has 1,000,000 characters: '" + "n" * 40 + "'…",
            "use at most 512",
        ),
    ],
)
def test_an_entry_that_is_no_tool_is_refused_with_its_place(
    item: Any, message: str, hint: str
) -> None:
    with pytest.raises(InvalidToolError) as caught:
        fold([{"name": "good"}, item])

    assert str(caught.value) == f"tool 2: {message}"
    assert caught.value.hint == hint


def test_what_is_not_json_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidToolError) as caught:
        fold([{"name": "a", "parameters": {"default": object()}}])

    assert str(caught.value).startswith("tool 1: it holds something that is not JSON: ")
    assert caught.value.hint == "give plain dicts, lists, strings, numbers, booleans and None"
    with pytest.raises(InvalidToolError):
        Tool("a", "", {"default": object()})


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_tool_without_a_name_cannot_be_made(name: Any) -> None:
    with pytest.raises(InvalidToolError) as caught:
        Tool(name)

    assert str(caught.value) == f"a tool has no name: {name!r}"


def test_a_description_of_a_megabyte_is_folded_found_and_shown_in_short() -> None:
    long = {"name": "long", "description": "Send a letter. " + "Word. " * 200_000}
    folded = fold([long], context_length=1_000_000, settings=Settings(ranker="bm25"))

    assert folded.active
    found = answered(folded.resolve("tool_search", {"query": "letter"}))
    assert found.hits[0].summary == "Send a letter."
    assert len(found.text) < 200
    assert len(answered(folded.resolve("tool_describe", {"name": "long"})).text) < 33_000
    assert fold([long], settings=Settings(enabled="off")).tools[0] is long


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "banana"},
        {"type": ["object", 3]},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": "string", "b": None, "c": 3}},
        {"type": "object", "required": "a"},
        {"$ref": "#"},
        {"$ref": "#/properties/a", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"enum": []},
        {"anyOf": "x", "allOf": [3], "items": 7},
        {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**80}}},
        {"type": "object", "properties": {"a": {"const": "\ud800"}}},
        True and {"properties": {"": {}, "a b": {"enum": [None, True, 1.5, [], {}]}}},
    ],
)
@pytest.mark.parametrize("strategy", ["bridge", "stub"])
def test_a_schema_that_is_not_a_schema_hurts_nothing(schema: Any, strategy: Any) -> None:
    tool = {"name": "odd", "description": "Send a letter.", "parameters": schema}
    folded = fold([tool, {"name": "good"}], settings=Settings(enabled="on", strategy=strategy))

    assert answered(folded.resolve("tool_search", {"query": "letter"})).hits[0].name == "odd"
    assert folded.resolve("odd", {"a": 1})
    if strategy == "bridge":
        assert answered(folded.resolve("tool_describe", {"name": "odd"})).text.startswith(
            '{"name":"odd"'
        )
    assert fold([tool], settings=Settings(enabled="off")).tools[0] is tool


@pytest.mark.parametrize("depth", [100, 300])
def test_a_schema_of_great_depth_hurts_nothing(depth: int) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}

    folded = fold([{"name": "deep", "description": "Deep.", "parameters": schema}], settings=ON)

    assert answered(folded.resolve("tool_search", {"query": "deep"})).hits[0].name == "deep"
    assert (
        invoked(folded.resolve("tool_call", {"name": "deep", "arguments": {"a": {}}})).tool.name
        == "deep"
    )
    assert answered(folded.resolve("tool_describe", {"name": "deep"})).text.startswith(
        '{"name":"deep"'
    )


def test_a_schema_too_deep_to_be_read_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(2_000):
        schema = {"a": schema}

    with pytest.raises(InvalidToolError) as caught:
        fold([{"name": "deep", "parameters": schema}])
    with pytest.raises(InvalidToolError):
        Tool("deep", "", schema)

    assert str(caught.value) == "tool 1: it nests too deep to be read"


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}

    with pytest.raises(InvalidToolError):
        fold([{"name": "loop", "parameters": schema}])
    with pytest.raises(InvalidToolError):
        Tool("loop", "", schema)


def test_ten_thousand_tools_are_folded_searched_and_called() -> None:
    tools = [
        {
            "name": f"server_{i % 40}.do_thing_{i}",
            "description": f"Work on thing {i}.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
            "server": f"server_{i % 40}",
        }
        for i in range(10_000)
    ]

    started = time.process_time()
    folded = fold(tools, context_length=200_000, settings=Settings(ranker="bm25"))
    found = answered(folded.resolve("tool_search", {"query": "7777"}))
    call = invoked(
        folded.resolve("tool_call", {"name": "server_17__Do-Thing-7777", "arguments": {}})
    )
    near = answered(folded.resolve("tool_call", {"name": "do_thing_77777", "arguments": {}}))

    assert time.process_time() - started < 20
    assert len(folded.tools) == 3
    assert (folded.report.tools_before, folded.report.deferred) == (10_000, 10_000)
    assert "10,000 tools of server_0 (250), " in folded.tools[0]["description"]
    assert found.hits[0].name == call.tool.name == "server_17.do_thing_7777"
    assert near.text.startswith('"do_thing_77777" is not available in this session. Did you mean ')


@pytest.mark.parametrize(
    "name",
    ["a.b.c", "a/b", "日本語", "naïve-tool", "a b", "x" * 200, "emoji🔥", "a:b", "(a)", "..."],
)
@pytest.mark.parametrize("shape", ["openai-chat", "anthropic", "mcp"])
def test_a_name_of_any_visible_characters_works(name: str, shape: Any) -> None:
    folded = fold([Tool(name, "Send a letter.")], settings=ON, shape=shape)
    stubs = fold([Tool(name)], settings=Settings(enabled="on", strategy="stub"), shape=shape)
    record = stubs.tools[0].get("function", stubs.tools[0])

    assert invoked(folded.resolve("tool_call", {"name": name, "arguments": {}})).tool.name == name
    assert answered(folded.resolve("tool_search", {"query": name})).hits[0].name == name
    assert invoked(stubs.resolve(record["name"], {})).tool.name == name
    assert json.dumps(folded.tools)


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "a\u202eb", "a\u200bb", "a\u2028b"])
@pytest.mark.parametrize("strategy", ["bridge", "stub"])
def test_a_name_with_letters_that_cannot_be_seen_is_shown_as_it_is_on_the_wire(
    name: str, strategy: Any
) -> None:
    tool = Tool(name, "Send a letter.", {"type": "object", "required": ["x"]}, source="s")
    chosen = Settings(enabled="on", ranker="bm25", strategy=strategy, listing="names")
    folded = fold([tool], settings=chosen, shape="mcp")
    shown = tool.wire_name

    found = answered(folded.resolve("tool_search", {"query": "letter"}))
    texts = [
        found.text,
        answered(folded.resolve(shown, {})).text,
        answered(folded.resolve(shown[:-1], {})).text,
        answered(folded.resolve("tool_search", {"query": ""})).text,
        answered(folded.resolve("tool_describe", {"name": shown})).text,
    ]
    if strategy == "bridge":
        texts.append(folded.tools[0]["description"])

    assert invoked(folded.resolve(shown, {"x": 1})).tool is tool
    for text in texts:
        assert all(c.isprintable() or c == "\n" for c in text)
        assert not any(line.endswith("- a") or line.startswith("b(") for line in text.splitlines())
    assert shown in found.text


def test_an_error_leaves_the_callers_list_as_it_was() -> None:
    tools = [{"name": "a", "parameters": {"type": "object"}}, {"name": ""}]
    before = json.dumps(tools)

    with pytest.raises(InvalidToolError):
        Catalog.read(tools)

    assert json.dumps(tools) == before
    assert Catalog.read(tools[:1]).names == ("a",)
