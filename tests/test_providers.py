"""`toolfold.providers`: who defers tools, for which models, and which errors say otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.providers import TABLE, Provider, binds_reasoning, refuses_native

ANTHROPIC = "https://api.anthropic.com/v1"


@pytest.mark.parametrize(
    ("api", "host", "model", "known"),
    [
        ("anthropic-messages", ANTHROPIC, "claude-sonnet-4-5-20250929", True),
        ("anthropic-messages", ANTHROPIC, "claude-opus-4-8", True),
        ("anthropic-messages", ANTHROPIC, "claude-haiku-5-5", True),
        ("anthropic-messages", "API.Anthropic.com.", "claude-fable-5-1", True),
        ("anthropic-messages", "api.anthropic.com:443", "claude-mythos-5", True),
        ("anthropic-messages", "us-east5-aiplatform.googleapis.com", "claude-opus-5@x", True),
        ("anthropic-messages", ANTHROPIC, "claude-opus-4-1", False),
        ("anthropic-messages", ANTHROPIC, "claude-opus-4-50", False),
        ("anthropic-messages", ANTHROPIC, "claude-haiku-5-1", False),
        ("anthropic-messages", ANTHROPIC, "anthropic/claude-sonnet-5", False),
        ("anthropic-messages", "openrouter.ai", "claude-sonnet-5", False),
        ("anthropic-messages", "api.anthropic.com.evil.example", "claude-sonnet-5", False),
        ("anthropic-messages", "bedrock-runtime.us-east-1.amazonaws.com", "claude-opus-5", False),
        ("anthropic-messages", None, "claude-sonnet-5", False),
        ("anthropic-messages", "http://[broken", "claude-sonnet-5", False),
        ("anthropic-messages", ANTHROPIC, None, False),
        ("anthropic-messages", "api.openai.com", "gpt-6-sol", False),
        ("openai-responses", "https://api.openai.com/v1", "gpt-6-sol", True),
        ("openai-responses", "api.openai.com", "gpt-5.4", True),
        ("openai-responses", "api.openai.com", "gpt-5.4-nano-2026-03-05", False),
        ("openai-responses", "api.openai.com", "gpt-5.2", False),
        ("openai-responses", "chatgpt.com", "gpt-6-sol", False),
        ("openai-responses", "localhost:8000", "gpt-6-sol", False),
    ],
)
def test_a_provider_is_known_by_api_host_and_model_together(
    api: Any, host: str | None, model: str | None, known: bool
) -> None:
    assert (Provider.of(api, host, model).support() is not None) is known


def test_every_entry_of_the_table_says_where_it_was_read() -> None:
    assert all(entry.source and entry.hosts and entry.models for entry in TABLE)


@given(host=st.text(max_size=40), model=st.text(max_size=40))
def test_no_text_for_a_host_or_a_model_is_too_strange_to_ask_about(host: str, model: str) -> None:
    Provider.of("anthropic-messages", host, model).support()
    binds_reasoning(model)


def test_reasoning_is_bound_in_the_models_that_say_so() -> None:
    assert binds_reasoning("claude-sonnet-5-5")
    assert binds_reasoning("anthropic/claude-opus-5-5-20261001")
    assert not binds_reasoning("claude-sonnet-5")
    assert not binds_reasoning("gpt-6")
    assert not binds_reasoning(None)


def anthropic_error(message: str) -> str:
    return json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    )


@pytest.mark.parametrize(
    "body",
    [
        anthropic_error("tools.1.custom.defer_loading: Extra inputs are not permitted"),
        anthropic_error("Tool reference 'x' has no corresponding tool definition"),
        anthropic_error("messages.2.content.0: Input tag 'tool_reference' found using 'type'"),
        anthropic_error("tool_addition blocks need the beta inline-tools-2026-09-15"),
        {"error": {"message": "Invalid value: 'tool_search'.", "param": "tools[0].type"}},
        {"error": {"message": "Unknown parameter.", "param": "tools[3].defer_loading"}},
        {"error": {"message": "Missing namespace for function_call 'x'. It does not exist."}},
        {"detail": [{"loc": ["body", "tools", 0, "defer_loading"], "msg": "extra fields"}]},
        {"error": {"message": "Unknown parameter: 'tools[0].execution'."}},
        anthropic_error("tools.0.tool_search_tool_bm25_20251119: not a known tool"),
        {"error": {"message": "Invalid value: 'tool_search_output'."}},
        "unknown field defer_loading",
        b"unknown variant `tool_search`",
        {"error": "tool_search is not supported"},
        anthropic_error("At least one tool must have defer_loading=false."),
        "Deferred tools are not supported by this model",
        {"error": {"message": "Unknown parameter: 'tools[1].defer_loading'."}},
        {"detail": "1 validation error for Request body.tools.0.defer_loading Extra inputs are"},
        'AnthropicException - {"message":"tools.1.custom.defer_loading: Extra inputs"}',
        anthropic_error("tools.0: Input tag 'tool_search_tool_bm25_20251119' found using 'type'"),
        "messages[2].content[0].type: unknown variant `tool_reference`, expected `text`",
    ],
)
def test_a_400_that_names_what_defers_tools_is_known(body: Any) -> None:
    assert refuses_native(400, body)
    assert not refuses_native(500, body)
    assert not refuses_native(None, body)


@pytest.mark.parametrize(
    "body",
    [
        anthropic_error("messages.1: `thinking` is bound to a different conversation"),
        anthropic_error("prompt is too long: 210000 tokens > 200000 maximum"),
        {"error": {"message": "Rate limit", "code": 400}, "request": "… defer_loading …"},
        {"error": {"message": "Invalid schema for function 'tool_search_issues': bad"}},
        {"error": {"message": "Invalid schema for function 'jira__tool_search': bad"}},
        {"error": {"message": "Invalid schema for function 'defer_loading': bad"}},
        {"error": {"message": 'Invalid tool name: "tool_reference"', "param": "tools[1].name"}},
        {"error": {"message": "Tool `tool_definition` is not unique."}},
        anthropic_error(
            "tools.4.custom.description: String should have at most 10 characters "
            "[input_value='Sets defer_loading of a tool; unknown fields are an error']"
        ),
        anthropic_error("tools.4.custom.input_schema.properties.defer_loading.type: Invalid"),
        anthropic_error("tools.4.custom.input_schema.properties.defer_loading: Invalid input"),
        {"error": {"message": "Invalid.", "param": "tools[4].parameters.properties.tool_search"}},
        {"error": {"message": "Invalid schema: In context=('properties', 'defer_loading')"}},
        anthropic_error("The text is too long: Explains what defer_loading does to a list"),
        {
            "detail": [
                {
                    "loc": ["body", "tools", 2, "parameters", "properties", "defer_loading"],
                    "msg": "value is not a valid dict",
                }
            ]
        },
        {
            "detail": [
                {
                    "loc": ["body", "max_tokens"],
                    "msg": "Field required",
                    "input": {"tools": [{"name": "a", "defer_loading": True}]},
                }
            ]
        },
        "",
        None,
        [],
        7,
        "[" * 100_000,
        " 'a" * 10_000,
        "tools." * 10_000,
        "tool 'tool_search' " * 1_000,
    ],
)
def test_other_errors_are_none_of_it(body: Any) -> None:
    assert not refuses_native(400, body)


@given(st.binary(max_size=200), st.integers(100, 600))
def test_any_bytes_may_come_as_an_error(body: bytes, status: int) -> None:
    refuses_native(status, body)
