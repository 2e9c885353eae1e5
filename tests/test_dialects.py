"""Schemas as servers write them: OpenAPI's nullable, and roots that are no object."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolfold import Answer, Invocation, Settings, Tool, fold
from toolfold.arguments import check, schema_problem

TEXT = {"type": "string"}


def call(schema: Any, arguments: Any) -> Any:
    record = {"name": "t", "description": "Does it.", "inputSchema": schema}
    return fold([record], settings=Settings(enabled="on")).resolve("t", arguments)


# ---- nullable


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "nullable": True},
        {"type": ["string", "integer"], "nullable": True},
        {"type": "string", "enum": ["a"], "nullable": True},
        {"enum": ["a"], "nullable": True},
        {"const": "a", "nullable": True},
        {"$ref": "#/$defs/text", "nullable": True},
        {"allOf": [{"$ref": "#/$defs/text"}], "nullable": True},
        {"anyOf": [TEXT, {"type": "integer"}], "nullable": True},
        {"$ref": "#/$defs/nullable_text"},
        {"type": "array", "items": {"type": "integer"}, "nullable": True},
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_null_is_a_value_of_what_is_nullable(schema: dict[str, Any], required: bool) -> None:
    whole = {
        "type": "object",
        "properties": {"x": schema, "n": {"type": "integer"}},
        "required": ["x"] if required else [],
        "$defs": {"text": TEXT, "nullable_text": {**TEXT, "nullable": True}},
    }

    assert call(whole, {"x": None}).arguments == {"x": None}
    # It stays where something else is repaired, too.
    assert call(whole, {"x": None, "n": "3"}).arguments == {"x": None, "n": 3}


def test_what_is_not_nullable_is_not() -> None:
    schema = {"properties": {"x": {**TEXT, "nullable": False}, "y": TEXT}, "required": ["x", "y"]}

    assert call(schema, {"x": None, "y": None}).text.startswith(
        "t was not run. x: is null, not string; y: is null, not string."
    )


def test_nullable_in_an_item_and_as_a_name_means_what_it_says() -> None:
    schema = {
        "type": "object",
        "properties": {
            "nullable": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "integer", "nullable": True}},
            "plain": {"type": "string", "default": {"type": "string", "nullable": True}},
        },
    }

    good = call(schema, {"nullable": True, "list": [1, None]})
    bad = call(schema, {"nullable": "perhaps"})

    assert good.arguments == {"nullable": True, "list": [1, None]}
    assert "nullable: is a string, not boolean" in bad.text


def test_what_is_nullable_is_still_checked() -> None:
    schema = {"properties": {"x": {"type": "integer", "nullable": True, "minimum": 1}}}

    assert call(schema, {"x": "3"}).arguments == {"x": 3}
    assert call(schema, {"x": 0}).text == (
        "t was not run. x: breaks `minimum` 1. Signature: t(x?: integer >=1)"
    )


# ---- roots


@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        {"type": "string"},
        {"type": "array", "items": TEXT},
        {"type": ["string", "null"]},
        {"type": []},
        {"const": 1},
        {"enum": ["a", "b"]},
        {"anyOf": [TEXT, {"type": "integer"}]},
        {"oneOf": [False, {"$ref": "#/$defs/text"}], "$defs": {"text": TEXT}},
        {"allOf": [{"type": "object"}, TEXT]},
        {"$ref": "#/$defs/text", "$defs": {"text": TEXT}},
        {"not": True},
        {"title": "nothing known"},
    ],
)
def test_a_root_that_is_no_object_does_not_make_a_tool_uncallable(schema: Any) -> None:
    assert isinstance(call(schema, {"a": 1}), Invocation)
    assert isinstance(call(schema, {}), Invocation)


def test_a_root_that_takes_no_object_is_named_as_a_problem() -> None:
    problem = schema_problem(Tool("t", "", {"type": "string"}))

    assert problem == "it takes no object, and arguments are one"
    assert schema_problem(Tool("t", "", {"type": ["object", "null"]})) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "object", "properties": {"id": TEXT}, "required": ["id"]}, TEXT]},
        {"properties": {"id": TEXT}, "required": ["id"]},
        {"$ref": "#/$defs/o", "$defs": {"o": {"properties": {"id": TEXT}, "required": ["id"]}}},
        {"type": ["object", "null"], "properties": {"id": TEXT}, "required": ["id"]},
    ],
)
def test_a_root_that_takes_some_objects_is_checked(schema: dict[str, Any]) -> None:
    assert call(schema, {"id": "1"}).arguments == {"id": "1"}
    assert isinstance(call(schema, {}), Answer)


# ---- laws

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([True, TEXT, {"type": "integer"}, {"enum": ["A", 1]}, {"required": ["a"]}]),
    lambda inner: (
        st.builds(lambda i: {"properties": {"a": i}}, inner)
        | st.builds(lambda b: {"anyOf": b}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda b: {"allOf": b}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda i: {"type": "array", "items": i}, inner)
    ),
    max_leaves=8,
).filter(lambda schema: isinstance(schema, dict))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["A", "a", "1", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.sampled_from("ab"), VALUES)


@given(PLAIN, ARGUMENTS)
def test_a_call_that_fits_is_never_changed(schema: Any, arguments: dict[str, Any]) -> None:
    assume(jsonschema_rs.is_valid(schema, arguments))

    checked = check(Tool("t", "", schema), arguments)

    assert (checked.arguments, checked.faults) == (arguments, ())
    assert checked.arguments is arguments


@given(PLAIN, ARGUMENTS)
def test_a_call_that_passes_fits_unless_no_object_can(schema: Any, arguments: Any) -> None:
    tool = Tool("t", "", schema)
    checked = check(tool, arguments)

    if not checked.faults and schema_problem(tool) is None:
        assert jsonschema_rs.is_valid(schema, checked.arguments)
