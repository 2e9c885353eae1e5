"""Schemas of strangers that would cost more than they are worth: no check and no line does."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import answered, invoked
from toolfold import Folded, Settings, fold
from toolfold._checkup import check_tools
from toolfold.answer import Hit
from toolfold.tool import Json, Tool

ON = Settings(enabled="on", ranker="bm25")
SOON = 2.0
"""Seconds that nothing here may take; each attack took ten to for ever."""


def folded_with(schema: Json) -> Folded:
    return fold([{"name": "attack", "description": "Attack.", "parameters": schema}], settings=ON)


def call(schema: Json, arguments: Json) -> Any:
    began = time.process_time()
    found = folded_with(schema).resolve("attack", arguments)
    assert time.process_time() - began < SOON
    return found


def doubled(keyword: str, levels: int, last: Json, **beside: Json) -> Json:
    """Return a schema whose every level applies the next one twice."""
    defs: dict[str, Json] = {
        f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}] * 2, **beside} for i in range(levels)
    }
    defs[f"a{levels}"] = last
    return {"$defs": defs, "$ref": "#/$defs/a0"}


def nested(depth: int, key: str = "c") -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {key: value}
    return value


OWN_RESOURCE = {
    "$id": "https://example.com/root",
    "$defs": {
        "a1": {"type": "object"},
        "hidden": {"$id": "inner", **doubled("allOf", 40, {"type": "object"})},
    },
    "$ref": "inner",
}
BOMBS: dict[str, Json] = {
    "allOf": doubled("allOf", 40, {"type": "object"}),
    "anyOf": doubled("anyOf", 40, {"type": "string"}),
    "oneOf": doubled("oneOf", 40, {"type": "string"}),
    "unevaluated": doubled("allOf", 40, {"type": "object"}, unevaluatedProperties=False),
    "in another resource": OWN_RESOURCE,
    "a chain of references": {
        "$defs": {
            **{f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(1_999)},
            "a1999": {"type": "string"},
        },
        "$ref": "#/$defs/a0",
    },
    "itself, twice": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "an anchor": {
        "$anchor": "top",
        "anyOf": [{"allOf": [{"$ref": "#top"}, {"$ref": "#top"}]}] * 2,
    },
    "many references": {
        "$defs": {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(50_000)},
        "$ref": "#/$defs/a0",
    },
    "many subschemas": {"properties": {f"p{i}": {"type": "string"} for i in range(25_000)}},
    "long patterns": {"properties": {"a": {"pattern": "(?:[a-z]{1,50}){1,50}" * 2_000}}},
    "many patterns": {
        "patternProperties": {f"(?:[a-z]{{1,50}}){{1,{i}}}": {} for i in range(1, 2_000)}
    },
    "megabytes": {"properties": {"a": {"enum": ["x" * 100 + str(i) for i in range(20_000)]}}},
}


@pytest.mark.parametrize("name", list(BOMBS))
def test_a_call_passes_unchecked_where_its_schema_would_expand_too_far(name: str) -> None:
    assert invoked(call(BOMBS[name], {"x": 1})).arguments == {"x": 1}


@pytest.mark.parametrize("name", list(BOMBS))
def test_a_checkup_names_a_schema_that_expands_too_far(name: str) -> None:
    began = time.process_time()
    findings = check_tools([Tool("attack", "Attacks whoever asks.", BOMBS[name])])

    assert time.process_time() - began < SOON
    assert [(f.severity, f.kind, f.tools) for f in findings] == [
        ("error", "unusable schema", ("attack",))
    ]


def test_a_bomb_does_not_touch_its_neighbours() -> None:
    other = {"name": "other", "parameters": {"properties": {"n": {"type": "integer"}}}}
    tools = [{"name": "attack", "parameters": BOMBS["allOf"]}, other]
    folded = fold(tools, settings=ON)

    invoked(folded.resolve("attack", {}))
    assert answered(folded.resolve("other", {"n": "no"})).is_error


# ---- schemas that are harmless until somebody nests a value in them


TREE: Json = {
    "$defs": {
        "node": {
            "anyOf": [
                {"properties": {"c": {"$ref": "#/$defs/node"}}, "required": ["z"]},
                {"properties": {"c": {"$ref": "#/$defs/node"}}, "required": ["y"]},
            ]
        }
    },
    "$ref": "#/$defs/node",
}
DYNAMIC: Json = {
    "$dynamicAnchor": "node",
    "anyOf": [{"properties": {"c": {"$dynamicRef": "#node"}}, "required": ["z"]}] * 2,
}


@pytest.mark.parametrize("schema", [TREE, DYNAMIC], ids=["reference", "dynamic reference"])
@pytest.mark.parametrize("depth", [2, 8, 16, 40, 120])
def test_a_recursive_schema_costs_no_more_the_deeper_a_value_nests(
    schema: Json, depth: int
) -> None:
    found = call(schema, nested(depth))

    assert depth > 8 or answered(found).is_error


def test_a_recursive_schema_still_checks_what_nests_a_little() -> None:
    tree = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["value"],
            }
        },
        "$ref": "#/$defs/node",
    }
    right: Json = {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}
    wrong: Json = {"value": 1, "children": [{"value": 2, "children": [{"children": []}]}]}

    assert invoked(call(tree, right)).arguments == right
    assert "children[0].children[0]" in answered(call(tree, wrong)).text


# ---- arguments that are many


def test_a_hundred_thousand_wrong_values_are_refused_by_the_first() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "object"}}}}

    text = answered(call(schema, {"a": [1] * 100_000})).text

    assert "a[0]" in text
    assert "a[1]" not in text


def test_values_by_the_million_pass_unchecked() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "object"}}}}

    assert invoked(call(schema, {"a": [1] * 1_000_000}))


# ---- the line


@pytest.mark.parametrize(
    "node",
    [
        {
            "type": ["object"] * 8,
            "properties": {f"p{i}": {"$ref": "#/$defs/n"} for i in range(8)},
        },
        {"anyOf": [{"type": "object", "properties": {"p": {"$ref": "#/$defs/n"}}}] * 8},
        {"type": ["array"] * 8, "items": {"$ref": "#/$defs/n"}},
    ],
    ids=["types", "branches", "lists"],
)
def test_a_recursive_schema_is_a_line_at_once(node: Json) -> None:
    schema = {"$defs": {"n": node}, "properties": {f"a{i}": node for i in range(24)}}
    tool = Tool("attack", "Attack.", schema)

    began = time.process_time()
    line = Hit(tool, 1.0, "").signature

    assert time.process_time() - began < SOON / 4
    assert line.startswith("attack(")
    assert len(line) < 700


# ---- the event loop


def test_the_first_check_of_a_large_schema_may_block_and_the_next_does_not() -> None:
    wide = {"properties": {f"p{i}": {"type": "string"} for i in range(4_000)}}
    folded = folded_with(wide)

    assert folded.may_block("attack", {})
    assert folded.may_block("tool_call", {"name": "attack", "arguments": {}})
    folded.resolve("attack", {})
    assert not folded.may_block("attack", {})
    assert not folded_with({"properties": {}}).may_block("attack", {})


# ---- the law: what is counted is never less than what is checked


REFERENCES = st.sampled_from(["#/$defs/a", "#/$defs/b", "#/$defs/c", "#"])
LEAVES = st.sampled_from(
    [{"type": "string"}, {"type": "object"}, {"required": ["z"]}, True, False, {}]
)
SCHEMAS = st.recursive(
    LEAVES | st.builds(lambda to: {"$ref": to}, REFERENCES),
    lambda inner: st.one_of(
        st.builds(
            lambda key, each: {key: each},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda c, d: {"properties": {"c": c, "d": d}}, inner, inner),
        st.builds(lambda each: {"additionalProperties": each}, inner),
        st.builds(
            lambda each, rest: {"allOf": [each], "unevaluatedProperties": rest}, inner, inner
        ),
        st.builds(lambda each: {"items": each}, inner),
    ),
    max_leaves=12,
)
VALUES = st.recursive(
    st.sampled_from([{}, "x", 1]),
    lambda inner: (
        st.dictionaries(st.sampled_from("cd"), inner, max_size=2) | st.lists(inner, max_size=3)
    ),
    max_leaves=20,
)


@given(st.fixed_dictionaries({"a": SCHEMAS, "b": SCHEMAS, "c": SCHEMAS}), SCHEMAS, VALUES)
def test_no_schema_and_no_value_take_long(defs: Json, schema: Json, value: Json) -> None:
    root = {"$defs": defs, "properties": {"value": schema}}

    call(root, {"value": value})


def test_a_describe_of_many_names_may_block() -> None:
    folded = folded_with({"properties": {}})
    unknown = [f"nobody_{i}" for i in range(16)]

    assert folded.may_block("tool_describe", {"names": unknown})
    assert folded.may_block("tool_describe", {"name": ",".join(unknown)})
    assert not folded.may_block("tool_describe", {"name": "attack"})
