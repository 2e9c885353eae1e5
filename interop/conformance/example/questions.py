"""What the example server asks its clients, in the words of both families of revisions.

Up to 2025-11-25 a server asks in the middle of a call. From 2026-07-28 on it answers the
call with its questions, and the client makes the call again with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptRequestParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = [
    "accepted",
    "answer",
    "asks_between",
    "form",
    "input_required",
    "listed_roots",
    "one_field",
    "roots",
    "sampled",
    "sampling",
]

Question = ElicitRequest | CreateMessageRequest | ListRootsRequest


def asks_between(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether this client's questions come as results between two calls."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def form(message: str, schema: dict[str, Any]) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def one_field(message: str, name: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return form(message, schema)


def sampling(prompt: str, max_tokens: int = 100) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    params = CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    return CreateMessageRequest(params=params)


def roots() -> ListRootsRequest:
    return ListRootsRequest()


def input_required(questions: Mapping[str, Question], state: str | None = None) -> Any:
    return InputRequiredResult(input_requests=dict(questions), request_state=state)


Answered = CallToolRequestParams | GetPromptRequestParams


def answer(params: Answered, key: str) -> Any:
    """Return the client's answer to one question, where it gave one."""
    return (params.input_responses or {}).get(key)


def accepted(params: Answered, key: str, field: str) -> Any:
    """Return a field of a form that the client filled in, or None."""
    found = answer(params, key)
    if not isinstance(found, ElicitResult) or found.action != "accept":
        return None
    return (found.content or {}).get(field)


def sampled(params: Answered, key: str) -> str | None:
    """Return the text that a client's model wrote, or None."""
    found = answer(params, key)
    if not isinstance(found, CreateMessageResult):
        return None
    content = found.content
    return content.text if isinstance(content, TextContent) else str(content)


def listed_roots(params: Answered, key: str) -> list[str] | None:
    """Return the addresses of a client's folders, or None."""
    found = answer(params, key)
    return [str(root.uri) for root in found.roots] if isinstance(found, ListRootsResult) else None
