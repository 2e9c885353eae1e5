"""The tools that the conformance suite calls, by the names that it calls them by."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    Tool,
)

from conformance.example import questions as ask
from conformance.example.contents import audio, embedded, failed, image, said, text

__all__ = ["TOOLS", "ExampleTool"]

Context = ServerRequestContext[Any, Any]
Work = Callable[[Context, CallToolRequestParams], Awaitable[Any]]

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class ExampleTool:
    """A tool and what it does."""

    record: Tool
    work: Work


TOOLS: dict[str, ExampleTool] = {}
"""By name, in the order in which they are listed."""


def tool(description: str, schema: dict[str, Any] = NOTHING) -> Callable[[Work], Work]:
    """Register a tool under its function's name."""

    def register(work: Work) -> Work:
        name = work.__name__
        record = Tool(name=name, description=description, input_schema=schema)
        TOOLS[name] = ExampleTool(record, work)
        return work

    return register


def strings(*names: str) -> dict[str, Any]:
    """Return the schema of an object of required texts."""
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names)}


# ---- what a result can hold


@tool("Returns a simple text.")
async def test_simple_text(context: Context, params: CallToolRequestParams) -> Any:
    return said("This is a simple text response for testing.")


@tool("Returns a picture.")
async def test_image_content(context: Context, params: CallToolRequestParams) -> Any:
    return CallToolResult(content=[image()])


@tool("Returns a sound.")
async def test_audio_content(context: Context, params: CallToolRequestParams) -> Any:
    return CallToolResult(content=[audio()])


@tool("Returns a resource within its result.")
async def test_embedded_resource(context: Context, params: CallToolRequestParams) -> Any:
    words = "This is an embedded resource content."
    return CallToolResult(content=[embedded("test://embedded-resource", "text/plain", words)])


@tool("Returns a text, a picture and a resource.")
async def test_multiple_content_types(context: Context, params: CallToolRequestParams) -> Any:
    data = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
    resource = embedded("test://mixed-content-resource", "application/json", data)
    return CallToolResult(content=[text("Multiple content types test:"), image(), resource])


@tool("Fails, as it should.")
async def test_error_handling(context: Context, params: CallToolRequestParams) -> Any:
    return failed("This tool intentionally returns an error for testing")


# ---- what happens on the way


async def log(context: Context, words: str) -> None:
    await context.session.send_log_message("info", words, related_request_id=context.request_id)


@tool("Logs three lines while it works.")
async def test_tool_with_logging(context: Context, params: CallToolRequestParams) -> Any:
    await log(context, "Tool execution started")
    await asyncio.sleep(PAUSE)
    await log(context, "Tool processing data")
    await asyncio.sleep(PAUSE)
    await log(context, "Tool execution completed")
    return said("Logged three lines.")


@tool("Logs one line, for clients that asked for log messages.")
async def test_logging_tool(context: Context, params: CallToolRequestParams) -> Any:
    await log(context, "A line for those who asked for it")
    return said("Logged one line.")


@tool("Reports its progress three times.")
async def test_tool_with_progress(context: Context, params: CallToolRequestParams) -> Any:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await asyncio.sleep(PAUSE)
    return said("Reported progress.")


@tool("Ends its stream before its answer, so that the client must come back for it.")
async def test_reconnection(context: Context, params: CallToolRequestParams) -> Any:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
        await asyncio.sleep(PAUSE)
    return said("Answered after the stream was closed.")


# ---- questions in the middle of a call, which only the revisions before 2026-07-28 have


@tool("Has the client's model write something.", strings("prompt"))
async def test_sampling(context: Context, params: CallToolRequestParams) -> Any:
    question = ask.sampling(str((params.arguments or {}).get("prompt", "")))
    done = await context.session.create_message(
        question.params.messages,
        max_tokens=question.params.max_tokens,
        related_request_id=context.request_id,
    )
    return said(f"LLM response: {getattr(done.content, 'text', done.content)}")


async def elicited(context: Context, message: str, schema: dict[str, Any], opening: str) -> Any:
    """Have the client's person fill in a form, and tell what was written."""
    found = await context.session.elicit_form(message, schema, context.request_id)
    return said(f"{opening}: action={found.action}, content={json.dumps(found.content)}")


@tool("Asks the person a question.", strings("message"))
async def test_elicitation(context: Context, params: CallToolRequestParams) -> Any:
    schema = {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    message = str((params.arguments or {}).get("message", ""))
    return await elicited(context, message, schema, "User response")


@tool("Asks with a default for every kind of field.")
async def test_elicitation_sep1034_defaults(context: Context, params: CallToolRequestParams) -> Any:
    states = ["active", "inactive", "pending"]
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": states, "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
        "required": [],
    }
    return await elicited(context, "Please look at the defaults", schema, "Elicitation completed")


def titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


@tool("Asks with every kind of choice.")
async def test_elicitation_sep1330_enums(context: Context, params: CallToolRequestParams) -> Any:
    plain = ["option1", "option2", "option3"]
    options = (("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option"))
    choices = (("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice"))
    schema = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled(*options)},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled(*choices)}},
        },
        "required": [],
    }
    return await elicited(context, "Please choose", schema, "Elicitation completed")


# ---- questions as results


@tool("Asks for a name between two calls.")
async def test_input_required_result_elicitation(
    context: Context, params: CallToolRequestParams
) -> Any:
    name = ask.accepted(params, "user_name", "name")
    if not isinstance(name, str):
        return ask.input_required({"user_name": ask.one_field("What is your name?", "name")})
    return said(f"Hello, {name}!")


@tool("Asks the client's model between two calls.")
async def test_input_required_result_sampling(
    context: Context, params: CallToolRequestParams
) -> Any:
    written = ask.sampled(params, "capital_question")
    if written is None:
        question = ask.sampling("What is the capital of France?")
        return ask.input_required({"capital_question": question})
    return said(written)


@tool("Asks for the client's folders between two calls.")
async def test_input_required_result_list_roots(
    context: Context, params: CallToolRequestParams
) -> Any:
    found = ask.listed_roots(params, "client_roots")
    if found is None:
        return ask.input_required({"client_roots": ask.roots()})
    return said(f"Folders: {', '.join(found)}")


@tool("Asks with a state that must come back.")
async def test_input_required_result_request_state(
    context: Context, params: CallToolRequestParams
) -> Any:
    if params.request_state == "confirming" and ask.answer(params, "confirm") is not None:
        return said("state-ok")
    question = ask.one_field("Please confirm", "ok", "boolean")
    return ask.input_required({"confirm": question}, "confirming")


@tool("Asks three things at once.")
async def test_input_required_result_multiple_inputs(
    context: Context, params: CallToolRequestParams
) -> Any:
    name = ask.accepted(params, "user_name", "name")
    greeting = ask.sampled(params, "greeting")
    folders = ask.listed_roots(params, "client_roots")
    if isinstance(name, str) and greeting is not None and folders is not None:
        return said(f"{greeting} {name}: {', '.join(folders)}")
    questions = {
        "user_name": ask.one_field("What is your name?", "name"),
        "greeting": ask.sampling("Generate a greeting", 50),
        "client_roots": ask.roots(),
    }
    return ask.input_required(questions, "three things")


@tool("Asks in two rounds.")
async def test_input_required_result_multi_round(
    context: Context, params: CallToolRequestParams
) -> Any:
    state = json.loads(params.request_state) if params.request_state else {}
    name = state.get("name") or ask.accepted(params, "step1", "name")
    if not isinstance(name, str):
        question = ask.one_field("Step 1: What is your name?", "name")
        return ask.input_required({"step1": question}, json.dumps({"round": 1}))
    color = ask.accepted(params, "step2", "color")
    if not isinstance(color, str):
        question = ask.one_field("Step 2: What is your favorite color?", "color")
        return ask.input_required({"step2": question}, json.dumps({"round": 2, "name": name}))
    return said(f"{name} likes {color}.")


@tool("Asks with a state that nobody may change.")
async def test_input_required_result_tampered_state(
    context: Context, params: CallToolRequestParams
) -> Any:
    if params.request_state == "sealed":
        return said("The state came back as it was.")
    question = ask.one_field("Please confirm", "ok", "boolean")
    return ask.input_required({"confirm": question}, "sealed")


@tool("Asks only for what the client can do.")
async def test_input_required_result_capabilities(
    context: Context, params: CallToolRequestParams
) -> Any:
    can = context.session.client_capabilities
    questions: dict[str, Any] = {}
    if can is not None and can.elicitation is not None:
        questions["name"] = ask.one_field("What is your name?", "name")
    if can is not None and can.sampling is not None:
        questions["greeting"] = ask.sampling("Generate a greeting", 50)
    if can is not None and can.roots is not None:
        questions["folders"] = ask.roots()
    if not questions or params.input_responses:
        return said("Asked for what the client can do.")
    return ask.input_required(questions)


@tool("Asks on a stream that carries nothing but its own result.")
async def test_streaming_elicitation(context: Context, params: CallToolRequestParams) -> Any:
    name = ask.accepted(params, "user_name", "name")
    if not isinstance(name, str):
        return ask.input_required({"user_name": ask.one_field("What is your name?", "name")})
    return said(f"Hello, {name}!")


@tool("Needs a client whose model can be asked.")
async def test_missing_capability(context: Context, params: CallToolRequestParams) -> Any:
    can = context.session.client_capabilities
    if can is None or can.sampling is None:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs a client that can sample",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return said("The client can sample.")


# ---- schemas


RICH: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool("Has a schema with most of what JSON Schema 2020-12 has.", RICH)
async def json_schema_2020_12_tool(context: Context, params: CallToolRequestParams) -> Any:
    return said(json.dumps(params.arguments))


HEADERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
    "required": ["region"],
}


@tool("Takes a parameter that also travels as a header.", HEADERS)
async def test_header_parameter(context: Context, params: CallToolRequestParams) -> Any:
    return said(f"Region {(params.arguments or {}).get('region')}.")
