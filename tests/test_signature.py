"""The line that says how a tool is called: what decides the call, short whatever the schema is."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Tool
from toolfold.answer import Hit

LIMIT = 600

KEYWORDS = (
    "type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref",
    "$defs", "additionalProperties", "patternProperties", "format", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "nullable", "not", "a", "b",
)  # fmt: skip
WORDS = (
    "object", "array", "string", "integer", "number", "null", "date-time", "uuid", "#", "a",
    "#/$defs/a", "#/properties/a", "b", "\n}, evil: (",
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=80),
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=5), inner, max_size=30)
    ),
    max_leaves=60,
)
SCHEMAS = st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=10)


def line(schema: dict[str, Any]) -> str:
    return Hit(Tool("f", "", schema), 1.0, "").signature


def shown(schema: dict[str, Any]) -> str:
    whole = line({"type": "object", "properties": {"x": schema}})
    assert whole.startswith("f(x?: ")
    return whole[len("f(x?: ") : -1]


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string", "format": "date-time"}, "date-time"),
        ({"type": "string", "format": "uuid"}, "uuid"),
        ({"format": "date"}, "date"),
        ({"type": ["string", "null"], "format": "email"}, "email"),
        ({"type": "array", "items": {"type": "string", "format": "uri"}}, "uri[]"),
        ({"type": "string", "format": "textarea"}, "string"),
        ({"type": "string", "format": "x), evil(y"}, "string"),
        ({"type": "string", "format": ["date"]}, "string"),
        ({"type": "integer", "format": "int32"}, "integer"),
    ],
)
def test_a_format_stands_for_the_string_that_it_forms(schema: dict[str, Any], type_: str) -> None:
    assert shown(schema) == type_


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 100}, "0..100"),
        ({"type": "integer", "minimum": 1}, "integer >=1"),
        ({"type": "integer", "maximum": 9.5}, "integer <=9"),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, "1..9"),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, "integer >=1"),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": 0}, "integer >=5"),
        ({"type": "integer", "minimum": -2.0, "maximum": 2}, "-2..2"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "number 0..1"),
        ({"type": "number", "exclusiveMinimum": 0}, "number >0"),
        ({"type": "number", "maximum": 0.5}, "number <=0.5"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}, "number >0..1.5"),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1}, "number 0..<1"),
        ({"type": ["integer", "null"], "minimum": 1, "maximum": 3}, "1..3"),
        ({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 3}}, "(1..3)[]"),
        ({"type": "array", "items": {"type": "number", "minimum": 1}}, "(number >=1)[]"),
        ({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 3}, {"const": "all"}]},
         '1..3|"all"'),
        ({"type": "integer", "minimum": -(2**53), "maximum": 2**53}, "integer"),
        ({"type": "integer", "minimum": 0, "maximum": 2**31 - 1}, "integer >=0"),
        ({"type": "integer", "minimum": "0", "maximum": True}, "integer"),
        ({"type": "integer", "minimum": float("-inf"), "maximum": 10**400}, "integer"),
    ],
)  # fmt: skip
def test_a_range_is_shown_unless_it_is_only_the_width_of_the_number(
    schema: dict[str, Any], type_: str
) -> None:
    assert shown(schema) == type_


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, "{*: string}"),
        ({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}}, "{*: integer}"),
        ({"type": "object", "properties": {"a": {"type": "string"}},
          "additionalProperties": {"type": "number"}}, "{a?: string, *: number}"),
        ({"type": "object", "patternProperties": {"a": {"type": "string"}, "b": {"type": "null"}},
          "additionalProperties": {"type": "boolean"}}, "{*: string|boolean}"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"type": "object", "additionalProperties": {}}, "object"),
        ({"type": "object", "additionalProperties": False}, "object"),
    ],
)  # fmt: skip
def test_a_map_shows_what_its_values_are(schema: dict[str, Any], type_: str) -> None:
    assert shown(schema) == type_


def test_the_arguments_themselves_may_be_a_map() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}

    assert line(schema) == "f(a?: string, *: number)"


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_alternatives_of_a_root_show_their_members_and_require_what_all_do(key: str) -> None:
    text = {"type": "string"}
    schema = {
        key: [
            {"type": "object", "properties": {"at": text, "id": text}, "required": ["at", "id"]},
            {"$ref": "#/$defs/named"},
        ],
        "$defs": {"named": {"properties": {"name": text, "at": text}, "required": ["name", "at"]}},
    }

    assert line(schema) == "f(at: string, id?: string, name?: string)"


def test_the_parts_of_an_all_of_show_their_members_together() -> None:
    text = {"type": "string"}
    parts = [{"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": text}}]

    assert line({"allOf": parts}) == "f(a: string, b?: string)"
    assert shown({"allOf": parts}) == "{a: string, b?: string}"


def test_alternatives_that_only_require_do_not_hide_the_members_beside_them() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    }

    assert shown(schema) == "{id?: string, name?: string}"


@given(SCHEMAS)
def test_any_schema_has_a_signature_of_one_line_within_its_bound(schema: dict[str, Any]) -> None:
    whole = line(schema)

    assert whole.startswith("f(")
    assert whole.endswith(")")
    assert len(whole) <= LIMIT
    assert len(whole.splitlines()) == 1


@given(SCHEMAS)
def test_a_signature_is_the_same_each_time(schema: dict[str, Any]) -> None:
    assert line(schema) == line({**schema})


def test_a_large_constant_is_not_written_out_to_be_cut() -> None:
    large = {"const": [["x" * 10] * 10] * 5_000}
    inner = {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/c"} for i in range(8)}}
    wide = {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/i"} for i in range(8)}}
    schema = {"properties": {"x": wide, "y": wide}, "$defs": {"c": large, "i": inner}}

    started = time.process_time()
    whole = line(schema)

    assert time.process_time() - started < 2
    assert len(whole) <= LIMIT
