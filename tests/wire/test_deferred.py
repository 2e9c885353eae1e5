"""Definitions that a provider defers: one odd schema does not cost the whole request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.judges import judged_anthropic, judged_openai
from support.strategies import ANY_NAMES, JSON_VALUES, SHAPES, records
from toolfold import Catalog, Tool
from toolfold.wire.deferred import deferred_definition, definition

APIS: Any = ("anthropic-messages", "openai-responses")
KEYS = {"anthropic-messages": "input_schema", "openai-responses": "parameters"}


def judged(record: dict[str, Any], api: str) -> None:
    if api == "openai-responses":
        judged_openai({"model": "m", "input": "x", "tools": [record]})
    else:
        message = {"role": "user", "content": "x"}
        judged_anthropic({"model": "m", "max_tokens": 1, "messages": [message], "tools": [record]})


@pytest.mark.parametrize("api", APIS)
def test_a_plain_schema_goes_out_as_it_is(api: Any) -> None:
    takes = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}, "x": 1}

    record = deferred_definition(Tool("t", "T.", takes), api)

    assert record[KEYS[api]] == takes
    assert record["defer_loading"] is True


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("given_schema", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "string"}, {"type": "object", "properties": {}}),
        (
            {"oneOf": [{"required": ["a"]}], "properties": {"a": {}}, "description": "d"},
            {"type": "object", "properties": {"a": {}}, "description": "d"},
        ),
        (
            {"type": "object", "properties": {"a b": {}, "c": {}}, "required": ["a b", "c"]},
            {"type": "object", "properties": {"c": {}}, "required": ["c"]},
        ),
        (
            {"type": "object", "properties": {"a": {}}, "required": [["a"], {}, 1, "a"]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        ),
        (
            {"type": "object", "properties": {"a": {}}, "required": "a"},
            {"type": "object", "properties": {"a": {}}},
        ),
    ],
)
def test_what_no_provider_takes_at_the_top_is_left_out(
    given_schema: Any, sent: Any, api: Any
) -> None:
    assert definition(Tool("t", "T.", given_schema), api)[KEYS[api]] == sent


@pytest.mark.parametrize("api", APIS)
def test_what_nobody_sees_in_a_text_does_not_come_along(api: Any) -> None:
    said = "Send\u200b mail.\U000e0041\x1b\n\tDear {name} – naïve 👩‍🚀"
    takes = {"type": "object", "properties": {"a": {"type": "string", "description": said}}}

    record = definition(Tool("t", said, takes), api)

    seen = "Send mail.\n\tDear {name} – naïve 👩‍🚀"
    assert record["description"] == seen
    assert record[KEYS[api]]["properties"]["a"]["description"] == seen


def test_a_schema_that_nests_deep_may_hold_what_nobody_sees() -> None:
    takes: Any = {"type": "string", "description": "x\u200b"}
    for _ in range(400):
        takes = {"type": "object", "properties": {"a": takes}}

    assert "\u200b" not in str(definition(Tool("t", "T.", takes), "anthropic-messages"))


def test_marks_and_flags_of_the_caller_do_not_come_along() -> None:
    record = {
        "name": "t",
        "input_schema": {"type": "object", "properties": {}},
        "cache_control": {"type": "ephemeral"},
        "defer_loading": False,
    }
    (tool,) = Catalog.read([record])

    assert definition(tool, "anthropic-messages") == {
        "name": "t",
        "input_schema": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize("strict", [True, False, None])
def test_strict_is_what_the_owner_said_and_else_false(strict: bool | None) -> None:
    said = {} if strict is None else {"strict": strict}
    chat = {"name": "t", "parameters": {"type": "object", "properties": {}}, **said}
    (tool,) = Catalog.read([{"type": "function", "function": chat}])
    odd = {"name": "u", "parameters": {"type": "object"}, **said}
    (other,) = Catalog.read([{"type": "function", "function": odd}])

    assert definition(tool, "openai-responses")["strict"] is bool(strict)
    assert definition(other, "openai-responses")["strict"] is False


@pytest.mark.parametrize("api", APIS)
@given(name=ANY_NAMES, text=st.text(max_size=20), takes=st.dictionaries(st.text(), JSON_VALUES))
def test_any_tool_becomes_a_definition_that_the_sdks_take(
    api: Any, name: str, text: str, takes: dict[str, Any]
) -> None:
    judged(deferred_definition(Tool(name, text, takes), api), api)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_a_tool_of_any_shape_keeps_its_name_and_what_it_takes(
    shape: str, data: st.DataObject
) -> None:
    (tool,) = Catalog.read([data.draw(records(shape))])
    for api in APIS:
        record = definition(tool, api)
        assert record["name"] == tool.wire_name
        assert record[KEYS[api]]["properties"].keys() == tool.parameters["properties"].keys()
