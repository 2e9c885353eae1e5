"""Schemas of documents as tools carry them: by themselves, in JSON Schema's words, bounded."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from support.apis import document, operation, source_of
from toolfold import Tool
from toolfold._json_values import compact
from toolfold.sources.openapi._json_schemas import DEFINITIONS_LIMIT, SIZE_LIMIT


def tool_of(schema: Any, version: str = "3.0.3", /, **schemas: Any) -> Tool:
    """Return the tool whose only argument `x` has a schema."""
    given = document(
        {"/a": {"get": operation({"name": "x", "in": "query", "schema": schema})}},
        components={"schemas": schemas},
    )
    (tool,) = source_of({**given, "openapi": version}).tools()
    return tool


def converted(schema: Any, version: str = "3.0.3") -> Any:
    return tool_of(schema, version).parameters["properties"]["x"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"allOf": [{"type": "string"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        (
            {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
            {"type": "integer", "maximum": 9},
        ),
        ({"type": "string", "example": "2 July"}, {"type": "string", "examples": ["2 July"]}),
        ({"type": "string", "example": "x" * 99}, {"type": "string"}),
        ({"type": "string", "xml": {"name": "y"}, "x-internal": 1}, {"type": "string"}),
        (
            {"oneOf": [{"type": "string"}], "discriminator": {"propertyName": "kind"}},
            {"oneOf": [{"type": "string"}]},
        ),
        (
            {"type": "array", "items": {"type": "integer", "nullable": True}},
            {"type": "array", "items": {"type": ["integer", "null"]}},
        ),
    ],
)
def test_the_words_of_3_0_become_json_schemas(given: Any, made: Any) -> None:
    assert converted(given) == made


def test_schemas_of_3_1_stay_as_they_are() -> None:
    schema = {
        "type": ["string", "null"],
        "exclusiveMinimum": 3,
        "const": "a",
        "if": {},
        "then": True,
    }

    assert converted(schema, "3.1.0") == schema


def test_what_is_referred_to_comes_along_and_nothing_else() -> None:
    tool = tool_of(
        {"$ref": "#/components/schemas/Pet"},
        Pet={"type": "object", "properties": {"kind": {"$ref": "#/components/schemas/Kind"}}},
        Kind={"type": "string"},
        Other={"type": "string"},
    )

    assert tool.parameters["properties"]["x"] == {"$ref": "#/$defs/Pet"}
    assert list(tool.parameters["$defs"]) == ["Pet", "Kind"]


def test_a_schema_that_holds_itself_is_made_once_and_can_be_checked_by() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}

    tool = tool_of({"$ref": "#/components/schemas/Node"}, Node=node)

    check = jsonschema_rs.validator_for(dict(tool.parameters), offline=True)
    assert check.is_valid({"x": {"next": {"next": {}}}})
    assert not check.is_valid({"x": {"next": {"next": 7}}})


def test_a_pointer_with_escapes_and_into_other_parts_of_the_document_is_followed() -> None:
    given = document(
        {
            "/a/{b}": {"get": {"operationId": "one"}},
            "/c": {"get": operation({"$ref": "#/paths/~1d/get/parameters/0"})},
            "/d": {
                "get": {"parameters": [{"name": "y", "in": "query", "schema": {"type": "number"}}]}
            },
        }
    )

    tools = {tool.bare_name: tool for tool in source_of(given).tools()}

    assert tools["go"].parameters["properties"] == {"y": {"type": "number"}}


@pytest.mark.parametrize(
    "reference",
    [
        "file:///etc/passwd",
        "http://evil.example/x.json#/a",
        "other.yaml#/A",
        "#/components/no",
        "#name",
    ],
)
def test_a_reference_that_is_not_followed_stands_for_any_value_and_is_noted(reference: str) -> None:
    given = document(
        {"/a": {"get": operation({"name": "x", "in": "query", "schema": {"$ref": reference}})}}
    )

    source = source_of(given)

    assert source.tools()[0].parameters["properties"]["x"] == {}
    assert len(source.notes) == 1 and reference in source.notes[0]


def test_two_definitions_of_one_last_name_are_told_apart() -> None:
    given = document(
        {
            "/a": {
                "get": operation(
                    {"name": "x", "in": "query", "schema": {"$ref": "#/components/schemas/A"}},
                    {"name": "y", "in": "query", "schema": {"$ref": "#/x-more/A"}},
                )
            }
        },
        components={"schemas": {"A": {"type": "string"}}},
        **{"x-more": {"A": {"type": "integer"}}},
    )

    parameters = source_of(given).tools()[0].parameters

    assert parameters["$defs"] == {"A": {"type": "string"}, "A_2": {"type": "integer"}}


def test_a_schema_that_reaches_too_far_is_cut_where_it_is_far() -> None:
    chain = {
        f"S{n}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/components/schemas/S{n + 1}"}},
        }
        for n in range(2 * DEFINITIONS_LIMIT)
    }
    last = {f"S{2 * DEFINITIONS_LIMIT}": {"type": "string"}}

    tool = tool_of({"$ref": "#/components/schemas/S0"}, **chain, **last)

    assert len(tool.parameters["$defs"]) <= DEFINITIONS_LIMIT + 1
    assert tool.parameters["$defs"][f"S{DEFINITIONS_LIMIT}"] == {}
    assert jsonschema_rs.validator_for(dict(tool.parameters), offline=True).is_valid(
        {"x": {"next": {}}}
    )


def test_long_definitions_are_cut_by_their_length() -> None:
    long = {f"S{n}": {"type": "string", "description": "x" * 3_000} for n in range(100)}
    every = {"anyOf": [{"$ref": f"#/components/schemas/S{n}"} for n in range(100)]}

    assert len(compact(tool_of(every, **long).parameters["$defs"])) < SIZE_LIMIT + 10_000


def test_a_schema_that_nests_too_deep_stands_for_any_value() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}

    assert compact(converted(schema)).count("items") < 100


def test_an_answers_schema_comes_along_where_it_is_wanted() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    responses = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    given = document({"/a": {"get": operation(responses=responses)}})

    with_outputs = source_of(given, output_schemas=True).tools()[0].raw
    without = source_of(given).tools()[0].raw

    assert with_outputs is not None and with_outputs["outputSchema"] == schema
    assert without is not None and "outputSchema" not in without
