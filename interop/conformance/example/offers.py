"""The prompts and resources that the conformance suite asks for."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from conformance.example import questions as ask
from conformance.example.contents import PICTURE, embedded, image, text

__all__ = ["complete", "get_prompt", "list_prompts", "list_resources", "list_templates", "read"]

Context = ServerRequestContext[Any, Any]

TEMPLATE = re.compile(r"test://template/([^/]+)/data")
WORDS = ("paris", "park", "party", "test", "testing")

PROMPTS = (
    Prompt(name="test_simple_prompt", description="A prompt without arguments."),
    Prompt(
        name="test_prompt_with_arguments",
        description="A prompt with two arguments.",
        arguments=[
            PromptArgument(name="arg1", description="First test argument", required=True),
            PromptArgument(name="arg2", description="Second test argument", required=True),
        ],
    ),
    Prompt(
        name="test_prompt_with_embedded_resource",
        description="A prompt with a resource in it.",
        arguments=[PromptArgument(name="resourceUri", description="What to embed", required=True)],
    ),
    Prompt(name="test_prompt_with_image", description="A prompt with a picture in it."),
    Prompt(name="test_input_required_result_prompt", description="A prompt that asks first."),
)

RESOURCES = (
    Resource(
        uri="test://static-text",
        name="static-text",
        description="A text that stays the same.",
        mime_type="text/plain",
    ),
    Resource(
        uri="test://static-binary",
        name="static-binary",
        description="A picture that stays the same.",
        mime_type="image/png",
    ),
    Resource(
        uri="test://watched-resource",
        name="watched-resource",
        description="A resource to subscribe to.",
        mime_type="text/plain",
    ),
)

TEMPLATES = (
    ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data by its id.",
        mime_type="application/json",
    ),
)


def message(content: Any) -> PromptMessage:
    return PromptMessage(role="user", content=content)


async def list_prompts(extra: tuple[Prompt, ...]) -> ListPromptsResult:
    return ListPromptsResult(prompts=[*PROMPTS, *extra])


async def get_prompt(context: Context, params: GetPromptRequestParams) -> Any:
    arguments = params.arguments or {}
    if params.name == "test_simple_prompt":
        return GetPromptResult(messages=[message(text("This is a simple prompt for testing."))])
    if params.name == "test_prompt_with_arguments":
        given = f"arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
        return GetPromptResult(messages=[message(text(f"Prompt with arguments: {given}"))])
    if params.name == "test_prompt_with_embedded_resource":
        words = "Embedded resource content for testing."
        resource = embedded(arguments.get("resourceUri", ""), "text/plain", words)
        request = text("Please process the embedded resource above.")
        return GetPromptResult(messages=[message(resource), message(request)])
    if params.name == "test_prompt_with_image":
        request = text("Please analyze the image above.")
        return GetPromptResult(messages=[message(image()), message(request)])
    if params.name == "test_input_required_result_prompt":
        found = ask.accepted(params, "user_context", "context")
        if not isinstance(found, str):
            question = ask.one_field("What context should the prompt use?", "context")
            return ask.input_required({"user_context": question})
        return GetPromptResult(messages=[message(text(f"Use this context: {found}"))])
    raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name!r}")


async def list_resources(context: Context, params: Any) -> ListResourcesResult:
    return ListResourcesResult(resources=list(RESOURCES))


async def list_templates(context: Context, params: Any) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(resource_templates=list(TEMPLATES))


async def read(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        picture = BlobResourceContents(uri=uri, mime_type="image/png", blob=PICTURE)
        return ReadResourceResult(contents=[picture])
    match = TEMPLATE.fullmatch(uri)
    if match is not None:
        data = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
        words, mime_type = json.dumps(data), "application/json"
    elif uri == "test://static-text":
        words, mime_type = "This is the content of the static text resource.", "text/plain"
    elif uri == "test://watched-resource":
        words, mime_type = "It could change.", "text/plain"
    else:
        code = INVALID_PARAMS if ask.asks_between(context) else -32002
        raise MCPError(code, "Resource not found", {"uri": uri})
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return ReadResourceResult(contents=[contents])


async def complete(context: Context, params: CompleteRequestParams) -> CompleteResult:
    begun = params.argument.value
    values = [word for word in WORDS if word.startswith(begun)]
    return CompleteResult(completion=Completion(values=values, total=len(values), has_more=False))
