"""Arguments that are almost right: repaired where the meaning is plain, never otherwise."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolfold import Answer, Invocation, Settings, Tool, fold
from toolfold.arguments import check


def call(schema: dict[str, Any], arguments: Any) -> Any:
    folded = fold([Tool("t", "", schema)], settings=Settings(enabled="on"))
    return folded.resolve("tool_call", {"name": "t", "arguments": arguments})


def of(schema: Any, value: Any) -> Any:
    return call({"type": "object", "properties": {"x": schema}}, {"x": value})


# ---- options


@pytest.mark.parametrize(
    ("schema", "value", "option"),
    [
        ({"enum": ["OPEN", "CLOSED"]}, "open", "OPEN"),
        ({"type": "string", "enum": ["open"]}, "Open", "open"),
        ({"enum": ["IN_PROGRESS", "DONE"]}, "in progress", "IN_PROGRESS"),
        ({"enum": ["in-progress"]}, "inProgress", "in-progress"),
        ({"enum": ["open"]}, " open ", "open"),
        ({"const": "ALL"}, "all", "ALL"),
        ({"enum": ["ASC", "DESC", None]}, "desc", "DESC"),
        ({"oneOf": [{"const": "RED"}, {"const": "GREEN"}]}, "green", "GREEN"),
        ({"anyOf": [{"enum": ["OPEN"]}, {"type": "null"}]}, "open", "OPEN"),
        ({"allOf": [{"enum": ["OPEN"]}]}, "open", "OPEN"),
        ({"type": "string", "enum": ["OPEN"], "nullable": True}, "open", "OPEN"),
    ],
)
def test_an_option_that_differs_by_case_and_separators_is_meant(
    schema: dict[str, Any], value: str, option: str
) -> None:
    assert of(schema, value).arguments == {"x": option}


def test_options_in_lists_are_meant_too() -> None:
    schema = {"type": "array", "items": {"enum": ["BUG", "TASK"]}}

    assert of(schema, ["bug", "TASK"]).arguments == {"x": ["BUG", "TASK"]}
    assert of({**schema, "type": "array"}, "bug").arguments == {"x": ["BUG"]}


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (["OPEN", "Open"], "open"),
        (["in_progress", "in-progress"], "in progress"),
        (["-1"], "1"),
        (["1.5"], "15"),
        (["2026-01"], "202601"),
        (["-"], "_"),
        ([""], " - "),
        (["OPEN"], "opened"),
        ([True], "true"),
    ],
)
def test_what_may_mean_two_options_or_another_is_not_guessed(
    options: list[Any], value: str
) -> None:
    assert isinstance(of({"enum": options}, value), Answer)


def test_many_values_among_many_options_are_looked_up_quickly() -> None:
    options = [f"OPTION_{i}" for i in range(1_000)]
    schema = {"type": "array", "items": {"enum": options}}

    started = time.process_time()
    invocation = of(schema, [option.lower() for option in options] * 20)

    assert time.process_time() - started < 3
    assert invocation.arguments == {"x": options * 20}


def test_an_option_that_fits_stays_however_many_there_are() -> None:
    options = ["copy", *(f"option {i}" for i in range(1_000)), "COPY"]
    schema = {"properties": {"x": {"enum": options}, "count": {"type": "integer"}}}

    assert call(schema, {"x": "COPY", "count": "3"}).arguments == {"x": "COPY", "count": 3}


def test_a_number_beyond_all_numbers_is_not_made_of_a_text() -> None:
    assert "x: is a string, not number" in of({"type": "number"}, "1e400").text


# ---- blanks and texts


def test_a_blank_is_an_object_that_needs_nothing() -> None:
    assert of({"type": "object"}, "").arguments == {"x": {}}
    assert of({"type": "object", "properties": {"a": {"type": "string"}}}, " ").arguments == {
        "x": {}
    }


def test_a_blank_is_a_list_of_nothing() -> None:
    assert of({"type": "array"}, "").arguments == {"x": []}
    assert of({"type": "array", "items": {"type": "string"}}, " ").arguments == {"x": []}
    assert of({"type": ["string", "array"]}, "").arguments == {"x": ""}
    needs = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    assert of(needs, "").text.startswith("t was not run. x: ")


def test_a_blank_is_no_object_that_needs_something() -> None:
    answer = of({"type": "object", "required": ["a"]}, "")

    assert answer.text.startswith("t was not run. x: missing argument 'a'.")


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "value"), [("object", {"a": [1]}), ("array", [{"a": 1}, "b"])]
)  # fmt: skip
def test_a_text_may_be_encoded_more_than_once(kind: str, value: Any, times: int) -> None:
    text: Any = value
    for _ in range(times):
        text = json.dumps(text)

    assert of({"type": kind}, text).arguments == {"x": value}


@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_whole_arguments_may_be_encoded_more_than_once(times: int) -> None:
    text: Any = {"x": 1}
    for _ in range(times):
        text = json.dumps(text)

    assert call({"type": "object"}, text).arguments == {"x": 1}
    folded = fold([Tool("t")], settings=Settings(enabled="on"))
    assert isinstance(
        folded.resolve("tool_call", json.dumps(json.dumps({"name": "t"}))), Invocation
    )


def test_a_quoted_text_is_not_taken_out_of_its_quotes() -> None:
    schema = {"type": "array", "items": {"type": "string"}}

    assert of({"type": "string"}, '"{}"').arguments == {"x": '"{}"'}
    assert of(schema, '"a"').arguments == {"x": ['"a"']}


def test_what_stands_in_one_part_is_repaired_like_the_whole() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"allOf": [{"$ref": "#/$defs/size"}]}},
        "$defs": {"size": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }

    assert call(schema, {"x": {"n": "1"}}).arguments == {"x": {"n": 1}}
    assert call(schema, {"x": '{"n": "1"}'}).arguments == {"x": {"n": 1}}


# ---- laws

LEAVES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": "boolean"},
        {"type": "string", "format": "date"},
        {"type": "string", "nullable": True},
        {"type": "object", "nullable": True, "additionalProperties": {"type": "integer"}},
        {"enum": ["OPEN", "Closed", "in_progress", None, 3]},
        {"anyOf": [{"type": "integer"}, {"const": "ALL"}]},
        {"not": {"type": "null"}},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda i: {"type": "array", "items": i}, inner)
        | st.builds(lambda i: {"anyOf": [i, {"type": "null"}]}, inner)
        | st.builds(lambda i: {"allOf": [i]}, inner)
        | st.builds(
            lambda a, b: {"type": "object", "properties": {"a": a, "b": b}, "required": ["a"]},
            inner,
            inner,
        )
    ),
    max_leaves=6,
)
TEXTS = st.sampled_from(["open", "IN PROGRESS", "3", "true", "", "{}", '"{}"', "[1]", "2026-01-01"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner),
    max_leaves=8,
)


@given(SCHEMAS, VALUES)
def test_what_a_repair_makes_fits_and_is_left_as_it_is(schema: dict[str, Any], value: Any) -> None:
    tool = Tool("t", "", {"type": "object", "properties": {"x": schema}, "required": ["x"]})

    checked = check(tool, {"x": value})
    assume(not checked.faults)

    assert check(tool, checked.arguments) == checked


@given(SCHEMAS, VALUES)
def test_what_cannot_be_repaired_comes_back_as_it_came(schema: dict[str, Any], value: Any) -> None:
    tool = Tool("t", "", {"type": "object", "properties": {"x": schema}, "required": ["x"]})

    checked = check(tool, {"x": value})
    assume(checked.faults)

    assert checked.arguments == {"x": value}
    assert all(len(fault.message) <= 240 for fault in checked.faults)
