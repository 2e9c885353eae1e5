"""What is wrong with arguments, in words: what the alternatives want, not what they are called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Answer, Settings, Tool, fold
from toolfold.arguments import check

TEXT = {"type": "string"}


def faults(schema: dict[str, Any], arguments: Any) -> list[str]:
    found = check(Tool("t", "", schema), arguments).faults
    return [f"{path}: {message}" if path else message for path, message in found]


def fault(schema: dict[str, Any], value: Any) -> str:
    (said,) = faults({"type": "object", "properties": {"x": schema}}, {"x": value})
    assert said.startswith("x: ")
    return said[3:]


def tagged(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": name}, "n": {"type": "integer"}},
            "required": ["kind", "n"]}  # fmt: skip


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_alternatives_are_said_in_words(key: str) -> None:
    schema = {key: [TEXT, {"type": "object", "required": ["id"]}]}

    assert fault(schema, {"name": 1}) == "must be either a string or an object with `id`"


@pytest.mark.parametrize(
    ("branches", "value", "said"),
    [
        ([tagged("a"), tagged("b")], {"kind": "c"},
         'must be either an object whose `kind` is "a" or an object whose `kind` is "b"'),
        ([tagged("a"), tagged("b")], {"kind": "a", "n": []},
         'must be either an object whose `n` is an integer or an object whose `kind` is "b"'),
        ([{"enum": ["a", "b"]}, {"type": "integer"}], "c",
         'must be either one of "a", "b" or an integer'),
        ([{"type": "string", "format": "date"}, {"const": "now"}], "later",
         'must be either a date such as "2026-01-31" or "now"'),
        ([{"type": "string", "pattern": "^a"}, {"type": "integer"}], "b",
         'must be either a string that keeps `pattern` "^a" or an integer'),
        ([{"type": "object", "additionalProperties": False}, TEXT], {"b": 1},
         "must be either an object that is empty or a string"),
        ([{"type": "object", "properties": {"a": {}}, "additionalProperties": False}, TEXT],
         {"b": 1}, "must be either an object that has no `b` or a string"),
        ([{"anyOf": [tagged("a"), tagged("b")]}, TEXT], {},
         "must be either an object that fits one of its alternatives or a string"),
        ([{"type": "array", "items": TEXT, "minItems": 1}, TEXT], [],
         "must be either a list that keeps `minItems` 1 or a string"),
        ([{"type": "array", "items": {"type": "object", "required": ["id"]}}, TEXT], [{}],
         "must be either a list whose `[0]` has `id` or a string"),
        ([{"required": ["id"]}, {"required": ["a", "b"]}], {},
         "needs `id` or `a` and `b`"),
        ([{"const": i} for i in range(9)], 10,
         "must be 0 or 1 or 2 or 3 or 4 or 4 other forms"),
    ],
)  # fmt: skip
def test_each_alternative_says_what_it_takes(branches: Any, value: Any, said: str) -> None:
    assert fault({"anyOf": branches}, value) == said


def test_alternatives_of_the_arguments_themselves_are_said_in_words() -> None:
    schema = {"type": "object", "anyOf": [{"required": ["id"]}, {"required": ["name"]}]}

    assert faults(schema, {}) == ["needs `id` or `name`"]


def test_alternatives_that_exclude_each_other_are_said_in_words() -> None:
    apart = {"oneOf": [{"required": ["id"]}, {"required": ["name"]}]}
    alike = {"oneOf": [{"type": "integer"}, {"type": "number"}]}

    assert fault(apart, {"id": 1, "name": 1}) == "takes only one of `id`, `name`"
    assert fault(alike, 1) == "fits several alternatives, of which only one may fit"


@pytest.mark.parametrize(
    ("excluded", "value", "said"),
    [
        ({"required": ["a"]}, {"a": 1}, "may not have `a`"),
        ({"required": ["a", "b"]}, {"a": 1, "b": 1}, "may not have `a` and `b` together"),
        ({"type": "null"}, None, "may not be null"),
        ({"const": "a"}, "a", 'may not be "a"'),
        ({"enum": ["a", "b"]}, "a", 'may not be one of "a", "b"'),
        ({"minLength": 2, "maxLength": 3}, "ab", "is of a kind that is not allowed"),
    ],
)
def test_an_exclusion_is_said_in_words(excluded: Any, value: Any, said: str) -> None:
    assert fault({"not": excluded}, value) == said


def test_a_condition_says_when_it_holds() -> None:
    schema = {
        "if": {"properties": {"kind": {"const": "file"}, "to": {"enum": ["a", "b"]}}},
        "then": {"required": ["path"]},
        "else": {"required": ["url"]},
    }
    when = '`kind` is "file" and `to` is one of "a", "b"'

    assert faults(schema, {"kind": "file"}) == [f"missing argument 'path' (where {when})"]
    assert faults(schema, {"kind": "page"}) == [f"missing argument 'url' (unless {when})"]


def test_a_part_of_all_of_says_its_own_fault() -> None:
    assert fault({"allOf": [TEXT, {"enum": ["a"]}]}, "b") == 'is not one of "a"'


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "not", "allOf"])
def test_an_answer_stays_short_whatever_the_alternatives_are(key: str) -> None:
    names = [f"name_{i}" * 20 for i in range(50)]
    branches = [{"required": names, "enum": names}, {"const": "x" * 5_000}, *[TEXT] * 50]
    schema = {"properties": {"x": {key: branches if key != "not" else {"required": names}}}}
    folded = fold([Tool("t", "", schema)], settings=Settings(enabled="on"))

    answer = folded.resolve("t", {"x": dict.fromkeys(names, 1)})

    assert isinstance(answer, Answer)
    assert len(answer.text) < 2_000


KEYWORDS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        TEXT,
        {"type": "integer", "maximum": 1},
        {"required": ["a", "b"]},
        {"enum": ["a", {"a": 1}]},
        {"const": [1]},
        {"format": "uuid"},
        {"additionalProperties": False},
        {"propertyNames": {"pattern": "^x"}},
        {"minProperties": 2},
        {"contains": TEXT},
        {"uniqueItems": True},
        {"items": {"type": "null"}},
    ]
)
SCHEMAS = st.recursive(
    KEYWORDS,
    lambda inner: (
        st.builds(lambda key, b: {key: b}, st.sampled_from(["anyOf", "oneOf", "allOf"]),
                  st.lists(inner, min_size=1, max_size=4))
        | st.builds(lambda i: {"not": i}, inner)
        | st.builds(lambda i, t, e: {"if": i, "then": t, "else": e}, inner, inner, inner)
        | st.builds(lambda i: {"properties": {"a": i, "then": i}}, inner)
    ),
    max_leaves=8,
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "then"]), inner)
    ),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_every_fault_is_a_short_clause_that_names_no_choice_by_its_keyword(
    schema: dict[str, Any], value: Any
) -> None:
    for said in faults({"properties": {"x": schema}}, {"x": value}):
        assert said.startswith("x")
        assert len(said) <= 400
        assert not any(f"breaks `{key}`" in said for key in ("anyOf", "oneOf", "allOf", "not"))
