"""Tools on the wire: every shape in, every shape out, nothing lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import invoked
from support.strategies import ANY_NAMES, MIXED_LISTS, SHAPES, name_of, records
from toolfold import Catalog, Settings, Shape, Tool, fold
from toolfold.tool import wire_name
from toolfold.wire import read, write

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ON = Settings(enabled="on")
OFF = Settings(enabled="off")

SIX = {
    "openai-chat": {
        "type": "function",
        "function": {"name": "a", "description": "Read.", "parameters": SCHEMA},
    },
    "openai-responses": {
        "type": "function",
        "name": "b",
        "description": "Read.",
        "parameters": SCHEMA,
    },
    "anthropic": {"name": "c", "description": "Read.", "input_schema": SCHEMA},
    "mcp": {"name": "d", "title": "Read", "description": "Read.", "inputSchema": SCHEMA},
    "gemini": {
        "functionDeclarations": [
            {"name": "e", "description": "Read.", "parametersJsonSchema": SCHEMA}
        ]
    },
    "plain": {"name": "f", "description": "Read.", "parameters": SCHEMA, "server": "files"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_recognised_by_itself(shape: Shape) -> None:
    (entry,) = read([SIX[shape]])
    (tool,) = entry.tools

    assert entry.shape == tool.shape == shape
    assert (tool.description, tool.parameters) == ("Read.", SCHEMA)


def test_the_shapes_may_be_mixed_in_one_list() -> None:
    catalog = Catalog.read(SIX.values())

    assert catalog.names == ("a", "b", "c", "d", "e", "f")
    assert [tool.shape for tool in catalog] == list(SHAPES)
    assert catalog["d"].title == "Read"
    assert catalog["f"].source == "files"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tool_can_be_written_in_every_shape(shape: Shape) -> None:
    tool = Tool("read_file", "Read.", SCHEMA, source="files", title="Read a file")

    expected: dict[str, dict[str, Any]] = {
        "openai-chat": {
            "type": "function",
            "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA},
        },
        "openai-responses": {
            "type": "function",
            "name": "read_file",
            "description": "Read.",
            "parameters": SCHEMA,
            "strict": False,
        },
        "anthropic": {"name": "read_file", "description": "Read.", "input_schema": SCHEMA},
        "mcp": {
            "name": "read_file",
            "description": "Read.",
            "inputSchema": SCHEMA,
            "title": "Read a file",
        },
        "gemini": {"name": "read_file", "description": "Read.", "parametersJsonSchema": SCHEMA},
        "plain": {
            "name": "read_file",
            "description": "Read.",
            "parameters": SCHEMA,
            "server": "files",
        },
    }
    assert write(tool, shape) == expected[shape]


@given(st.sampled_from(SHAPES).flatmap(lambda shape: st.tuples(st.just(shape), records(shape))))
def test_a_record_read_and_written_in_its_shape_is_itself(case: tuple[Shape, Any]) -> None:
    shape, record = case
    (entry,) = read([record])

    written = [write(tool, shape) for tool in entry.tools]

    assert json.dumps(written[0] if shape != "gemini" else {"functionDeclarations": written}) == (
        json.dumps(record)
    )


@given(MIXED_LISTS, st.sampled_from(SHAPES))
def test_any_list_can_be_asked_for_in_any_shape(items: list[Any], shape: Shape) -> None:
    folded = fold(items, settings=OFF, shape=shape)
    again = Catalog.read(folded.tools)

    assert {tool.shape for tool in again} == {shape}
    assert sorted(again.names) == sorted(name_of(item) for item in items)
    before = {tool.name: tool for tool in Catalog.read(items)}
    assert all(tool.parameters == before[tool.name].parameters for tool in again)


@given(MIXED_LISTS)
def test_what_stays_in_a_folded_list_keeps_its_own_record(items: list[Any]) -> None:
    stays = name_of(items[0])

    folded = fold(items, core=[stays], settings=ON)

    if len(items) == 1:
        assert folded.tools == items
    elif "functionDeclarations" in items[0]:
        assert folded.tools[0]["functionDeclarations"][0] is items[0]["functionDeclarations"][0]
    else:
        assert folded.tools[0] is items[0]


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_a_gemini_group_keeps_its_spelling_and_what_stands_beside(key: str) -> None:
    group = {
        key: [{"name": "keep", "parameters": {"type": "OBJECT"}}, {"name": "go"}],
        "googleSearch": {},
    }

    folded = fold([group], core=["keep"], settings=ON)

    (out,) = folded.tools
    assert list(out) == [key, "googleSearch"]
    assert [item["name"] for item in out[key]] == [
        "keep",
        "tool_search",
        "tool_describe",
        "tool_call",
    ]
    assert out[key][0] == group[key][0]


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_a_gemini_group_that_folds_whole_leaves_the_rest_of_its_object(key: str) -> None:
    folded = fold([{key: [{"name": "go"}], "codeExecution": {}}], settings=ON)

    beside, bridge = folded.tools
    assert beside == {"codeExecution": {}}
    assert list(bridge) == [key]
    assert [item["name"] for item in bridge[key]] == ["tool_search", "tool_describe", "tool_call"]


def test_a_gemini_group_out_of_scope_leaves_the_rest_of_its_object() -> None:
    from toolfold import Scope

    group = {"functionDeclarations": [{"name": "a"}, {"name": "b"}], "googleSearch": {}}

    none = fold([group], scope=Scope(allow=()))
    one = fold([group], scope=Scope(allow=("b",)))

    assert none.tools == [{"googleSearch": {}}]
    assert one.tools == [{"functionDeclarations": [{"name": "b"}], "googleSearch": {}}]


def test_gemini_functions_that_came_flat_go_out_flat() -> None:
    flat = [
        {"name": "keep", "parameters": {"type": "OBJECT"}},
        {"name": "go", "parameters": {"type": "OBJECT"}},
    ]

    folded = fold(flat, core=["keep"], settings=ON)

    assert [item["name"] for item in folded.tools] == [
        "keep",
        "tool_search",
        "tool_describe",
        "tool_call",
    ]


def test_geminis_own_schema_is_read_as_json_schema() -> None:
    parameters = {
        "type": "OBJECT",
        "properties": {
            "tags": {"type": "ARRAY", "items": {"type": "STRING"}},
            "day": {"type": "STRING", "nullable": True},
            "more": {"type": "OBJECT", "additionalProperties": {"type": "NUMBER"}},
        },
    }

    (tool,) = Catalog.read([{"name": "a", "parameters": parameters}])

    assert tool.parameters == {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "day": {"type": ["string", "null"]},
            "more": {"type": "object", "additionalProperties": {"type": "number"}},
        },
    }


@pytest.mark.parametrize("strategy", ["bridge", "stub"])
@pytest.mark.parametrize(
    "own",
    [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "web_search"},
        {"googleSearch": {}},
        {"type": "custom", "name": "patch", "format": {"type": "text"}},
    ],
)
def test_a_providers_own_tool_passes_through_any_fold(own: Any, strategy: Any) -> None:
    folded = fold([own, SIX["anthropic"]], settings=Settings(enabled="on", strategy=strategy))

    assert folded.tools[0] is own
    assert folded.report.tools_before == 1
    assert "web_search" not in folded.catalog


@given(ANY_NAMES)
def test_a_mapped_name_is_legal_deterministic_and_found_again(name: str) -> None:
    mapped = wire_name(name)
    folded = fold([Tool(name)], settings=OFF, shape="anthropic")

    assert mapped == wire_name(name)
    assert 1 <= len(mapped) <= 64
    assert mapped.isascii() and mapped.replace("_", "a").replace("-", "a").isalnum()
    assert folded.tools[0]["name"] == mapped
    assert folded.catalog.find(mapped) == folded.catalog[name]


@given(st.lists(ANY_NAMES, unique=True, max_size=8))
def test_distinct_names_stay_distinct_on_the_wire(names: list[str]) -> None:
    assert len({wire_name(name) for name in names}) == len(names)


def test_a_name_that_providers_refuse_is_mapped_where_the_list_is_folded() -> None:
    tools = [
        {"name": "files.read", "input_schema": SCHEMA, "x": 1},
        {"name": "files.write", "input_schema": SCHEMA},
    ]

    folded = fold(tools, core=["files.read"], settings=ON)

    assert folded.tools[0] == {"name": "files_read_a3da5b20", "input_schema": SCHEMA, "x": 1}
    call = invoked(folded.resolve("files_read_a3da5b20", {"path": "a"}))
    assert call.tool.name == "files.read"


def test_pass_through_leaves_names_alone() -> None:
    tools = [{"name": "files.read", "input_schema": SCHEMA}]

    assert fold(tools).tools[0] is tools[0]


def test_a_stub_loses_what_is_only_true_of_its_own_parameters() -> None:
    strict = {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read.",
            "strict": True,
            "parameters": SCHEMA,
            "x_owner": "me",
        },
        "x_top": 1,
    }

    folded = fold([strict], settings=Settings(enabled="on", strategy="stub"))

    assert folded.tools[0] == {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read.",
            "parameters": {"type": "object", "properties": {}},
            "x_owner": "me",
        },
        "x_top": 1,
    }


def test_anthropics_cache_mark_moves_to_the_last_tool_when_its_own_is_folded() -> None:
    mark = {"type": "ephemeral"}
    tools = [
        {"name": "a", "input_schema": SCHEMA},
        {"name": "b", "input_schema": SCHEMA, "cache_control": mark},
    ]

    folded = fold(tools, settings=ON)

    assert [tool.get("cache_control") for tool in folded.tools] == [None, None, mark]


def test_anthropics_cache_mark_stays_with_a_tool_that_stays() -> None:
    mark = {"type": "ephemeral"}
    tools = [
        {"name": "a", "input_schema": SCHEMA, "cache_control": mark},
        {"name": "b", "input_schema": SCHEMA},
    ]

    folded = fold(tools, core=["a"], settings=ON)

    assert [tool.get("cache_control") for tool in folded.tools] == [mark, None, None, None]


def test_objects_of_the_mcp_sdk_are_read_by_what_they_dump() -> None:
    class SdkTool:
        """Stands for `mcp.types.Tool`, which is a pydantic model."""

        def model_dump(self, *, by_alias: bool, exclude_none: bool, mode: str) -> dict[str, Any]:
            assert (by_alias, exclude_none, mode) == (True, True, "json")
            return {"name": "read", "inputSchema": SCHEMA, "_meta": {"v": 1}}

    folded = fold([SdkTool()])

    assert folded.catalog["read"].shape == "mcp"
    assert folded.tools == [{"name": "read", "inputSchema": SCHEMA, "_meta": {"v": 1}}]


def test_tools_and_functions_may_stand_among_records() -> None:
    def add(first: int, second: int = 0) -> int:
        """Add two numbers.

        Args:
            first: The one.
        """
        return first + second

    folded = fold([SIX["anthropic"], Tool("t", "Do."), add])

    assert folded.tools[0] is SIX["anthropic"]
    assert folded.tools[1] == {
        "name": "t",
        "description": "Do.",
        "input_schema": {"type": "object", "properties": {}},
    }
    added = folded.catalog["add"]
    assert added.function is add
    assert added.parameters["required"] == ["first"]
    assert folded.tools[2] == write(added, "anthropic")


def test_a_catalog_goes_out_in_the_shape_in_which_it_came() -> None:
    folded = fold(Catalog.read([SIX["mcp"], SIX["gemini"]]))

    assert folded.tools == [SIX["mcp"], SIX["gemini"]]


def test_changing_what_came_out_changes_no_tool() -> None:
    once = fold([SIX["mcp"]], settings=ON, shape="openai-chat")
    once.tools[0]["function"]["parameters"]["properties"].clear()
    once.tools[1]["function"]["parameters"].clear()
    written = fold([Tool("t", "", SCHEMA)], settings=OFF).tools[0]
    written["function"]["parameters"]["properties"].clear()

    again = fold([SIX["mcp"]], settings=ON, shape="openai-chat")

    assert list(again.tools[0]["function"]["parameters"]["properties"]) == ["query", "limit"]
    assert list(again.tools[1]["function"]["parameters"]) == ["type", "properties", "required"]
    assert SCHEMA["properties"] == {"path": {"type": "string"}}


def test_a_source_in_a_name_by_convention_is_read() -> None:
    catalog = Catalog.read(
        [{"name": "mcp__github__create_issue"}, {"name": "slack__post"}, {"name": "plain_name"}]
    )

    assert [tool.source for tool in catalog] == ["github", "slack", None]
    assert [tool.bare_name for tool in catalog] == ["create_issue", "post", "plain_name"]
