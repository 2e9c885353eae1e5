"""An argument that a tool has never heard of is refused, not dropped in silence."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Answer, Invocation, Settings, Tool, fold

LIGHT = {
    "type": "object",
    "properties": {"room": {"type": "string"}, "brightness": {"type": "integer"}},
}


def called(schema: Any, arguments: dict[str, Any], **settings: Any) -> Answer | Invocation:
    tool = Tool("set_light", "Set a light.", schema)
    folded = fold([tool], settings=Settings(enabled="on", **settings))
    return folded.resolve("tool_call", {"name": "set_light", "arguments": arguments})


def test_an_unknown_argument_is_refused_with_the_nearest_name_and_the_signature() -> None:
    answer = called(LIGHT, {"room": "kitchen", "brightnes": 30, "zzz": 1})

    assert isinstance(answer, Answer)
    assert answer.text == (
        "set_light was not run. unknown argument 'brightnes', did you mean 'brightness'?; "
        "unknown argument 'zzz'. "
        "Signature: set_light(room?: string, brightness?: integer)"
    )


def test_a_misspelt_argument_is_named_beside_the_missing_one() -> None:
    answer = called({**LIGHT, "required": ["room"]}, {"rom": "kitchen"})

    assert isinstance(answer, Answer)
    assert answer.text.startswith(
        "set_light was not run. unknown argument 'rom', did you mean 'room'?; "
        "missing argument 'room'. Signature: "
    )


def test_a_schema_that_forbids_others_is_not_told_twice() -> None:
    answer = called({**LIGHT, "required": ["room"], "additionalProperties": False}, {"rom": "a"})

    assert isinstance(answer, Answer)
    assert answer.text.count("unknown argument") == 1


@pytest.mark.parametrize("extra", [{}, {"patternProperties": {"^argument_1.*x$": {}}}])
def test_thousands_of_unknown_arguments_are_refused_at_once(extra: Any) -> None:
    names = {f"argument_{i}": {"type": "string"} for i in range(60)}
    given_ = {f"argumnet_{i}": "" for i in range(5_000)}

    started = time.process_time()
    answer = called({"type": "object", "properties": names, **extra}, given_)

    assert time.process_time() - started < 2
    assert isinstance(answer, Answer)
    assert answer.text.count("unknown argument") == 5


def test_the_setting_lets_unknown_arguments_pass() -> None:
    found = called(LIGHT, {"brightnes": 30}, unknown_arguments="pass")

    assert isinstance(found, Invocation)
    assert found.arguments == {"brightnes": 30}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {**LIGHT, "additionalProperties": True},
        {**LIGHT, "additionalProperties": {"type": "integer"}},
        {**LIGHT, "unevaluatedProperties": {}},
        {**LIGHT, "patternProperties": {"^x": {}}},
        {**LIGHT, "allOf": [{"properties": {"x1": {}}}]},
        {**LIGHT, "anyOf": [{"required": ["room"]}, {"properties": {"x1": {}}}]},
        {**LIGHT, "oneOf": [{"properties": {"x1": {"const": 1}}, "required": ["x1"]}]},
        {**LIGHT, "anyOf": [{"required": ["room"]}, {"type": "object"}]},
        {**LIGHT, "if": {"required": ["x1"]}, "then": {"properties": {"x1": {}}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {**LIGHT, "allOf": [{"$ref": "#/$defs/b"}]},
         "b": {"properties": {"x1": {}}}}},
        {**LIGHT, "dependentSchemas": {"room": {"properties": {"x1": {}}}}},
    ],
)  # fmt: skip
def test_what_a_schema_names_anywhere_or_leaves_open_is_known(schema: Any) -> None:
    assert isinstance(called(schema, {"x1": 1}), Invocation)


@pytest.mark.parametrize(
    "schema",
    [
        LIGHT,
        {**LIGHT, "additionalProperties": False},
        {**LIGHT, "patternProperties": {"^y": {}}},
        {**LIGHT, "anyOf": [{"required": ["room"]}, {"not": {"required": ["room"]}}]},
        {**LIGHT, "properties": {"inner": {"properties": {"x1": {}}}}},
    ],
)
def test_what_a_schema_does_not_name_is_refused(schema: Any) -> None:
    answer = called(schema, {"x1": 1})

    assert isinstance(answer, Answer)
    assert "unknown argument 'x1'" in answer.text


def test_tools_that_are_not_folded_are_not_judged() -> None:
    tool = Tool("set_light", "Set a light.", LIGHT)
    folded = fold([tool], settings=Settings(enabled="on", core=("set_light",)))

    assert isinstance(folded.resolve("set_light", {"brightnes": 30}), Invocation)


def test_a_schema_that_leads_in_circles_is_walked_once() -> None:
    schema = {**LIGHT, "allOf": [{"$ref": "#"}, {"$ref": "#"}]}

    assert isinstance(called(schema, {"room": "a"}), Invocation)


@given(
    names=st.sets(st.sampled_from("abcdefgh"), min_size=1),
    given_=st.sets(st.sampled_from("abcdefgh")),
)
def test_a_call_runs_where_every_argument_is_named(names: set[str], given_: set[str]) -> None:
    schema = {"type": "object", "properties": {name: {} for name in sorted(names)}}

    runs = isinstance(called(schema, dict.fromkeys(given_, 1)), Invocation)

    assert runs == (given_ <= names)
