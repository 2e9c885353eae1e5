"""What a description leaves out: definitions that the tool's schema does not refer to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import answered
from toolfold import Settings, Tool, fold
from toolfold.arguments import check

TEXT = {"type": "string"}


def described(schema: dict[str, Any], **settings: Any) -> Any:
    folded = fold([Tool("t", "", schema)], settings=Settings(enabled="on", **settings))
    text = answered(folded.resolve("tool_describe", {"name": "t"})).text
    return json.loads(text)["parameters"]


def names(schema: dict[str, Any], place: str = "$defs") -> list[str]:
    return list(described(schema).get(place, {}))


def referring(reference: str, **definitions: Any) -> dict[str, Any]:
    return {"properties": {"x": {"$ref": reference}}, "$defs": definitions}


def test_of_tools_made_from_one_document_a_quarter_remains() -> None:
    part = {"type": "object", "properties": {f"field_{i}": TEXT for i in range(20)}}
    document = {f"part_{i}": part for i in range(24)}
    tools = [
        Tool(
            f"tool_{i}",
            "One of many.",
            {
                "type": "object",
                "properties": {"of": {"$ref": f"#/$defs/part_{i}"}, "id": TEXT},
                "$defs": document,
            },
        )
        for i in range(24)
    ]
    folded = fold(tools, settings=Settings(enabled="on", describe_max_tokens=100_000))
    sent = sum(len(json.dumps(tool.parameters)) for tool in tools)

    shown = [answered(folded.resolve("tool_describe", {"name": tool.name})).text for tool in tools]

    assert sum(map(len, shown)) < sent / 10
    assert all(list(json.loads(text)["parameters"]["$defs"]) == [f"part_{i}"]
               for i, text in enumerate(shown))  # fmt: skip


def test_a_definition_stays_that_another_one_needs() -> None:
    schema = referring(
        "#/$defs/a",
        a={"items": {"$ref": "#/$defs/b"}},
        b={"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/c~1d"}]},
        **{"c/d": TEXT, "left_out": {"$ref": "#/$defs/also"}, "also": TEXT},
    )

    assert names(schema) == ["a", "b", "c/d"]


def test_a_definition_that_only_itself_needs_is_left_out() -> None:
    schema = {"properties": {}, "definitions": {"tree": {"items": {"$ref": "#/definitions/tree"}}}}

    assert described(schema) == {"properties": {}}


@pytest.mark.parametrize(
    "schema",
    [
        referring("#named", a={"$anchor": "named"}, b=TEXT),
        referring("https://example.org/s#/$defs/a", a=TEXT, b=TEXT),
        referring("#/$defs", a=TEXT, b=TEXT),
        referring("#/%24defs/a", a=TEXT, b=TEXT),
        referring("#/$defs/a", a={"$id": "other", "$ref": "#/$defs/b"}, b=TEXT),
        {"$dynamicRef": "#node", "$defs": {"a": {"$dynamicAnchor": "node"}, "b": TEXT}},
    ],
)
def test_all_stay_where_it_is_not_clear_what_is_meant(schema: dict[str, Any]) -> None:
    assert names(schema) == ["a", "b"]


@pytest.mark.parametrize("reference", [7, None, "#", "#/properties/x", "#/$defs/none"])
def test_a_reference_to_no_definition_keeps_none(reference: Any) -> None:
    assert names(referring(reference, a=TEXT)) == []


def test_a_parameter_may_be_called_like_a_keyword() -> None:
    schema = {"properties": {"$ref": TEXT, "$defs": {"type": "object"}, "id": TEXT}}

    assert described(schema) == schema


NAMES = ("a", "b", "c", "d")
REFERRED = st.sampled_from(NAMES).map(lambda name: {"$ref": f"#/$defs/{name}"})
SCHEMA = st.sampled_from([{"type": "integer"}, {"type": "string"}]) | REFERRED
NODES = SCHEMA | st.lists(SCHEMA, min_size=1, max_size=3).map(lambda each: {"anyOf": each})


@given(NODES, st.fixed_dictionaries(dict.fromkeys(NAMES, NODES)), st.integers() | st.text())
def test_what_is_shown_judges_a_call_as_the_whole_does(
    node: dict[str, Any], definitions: dict[str, Any], value: Any
) -> None:
    schema = {"type": "object", "properties": {"x": node}, "$defs": definitions}
    arguments = {"x": value}

    whole = check(Tool("t", "", schema), arguments)

    assert check(Tool("t", "", described(schema)), arguments) == whole
