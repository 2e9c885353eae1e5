"""The providers' own types as judges of requests: `anthropic` and `openai`, read by pydantic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from anthropic.types.beta.message_create_params import (
    MessageCreateParamsNonStreaming as BetaMessage,
)
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Message
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

__all__ = ["judged_anthropic", "judged_openai"]


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def judged_anthropic(body: Mapping[str, Any], *, beta: bool = False) -> None:
    """Raise where the SDK's types do not take a request, or do not know a field of it."""
    _judge(BetaMessage if beta else Message, body)


def judged_openai(body: Mapping[str, Any]) -> None:
    """Raise where the SDK's types do not take a request, or do not know a field of it."""
    _judge(ResponseCreateParamsNonStreaming, body)


def _judge(kind: Any, body: Mapping[str, Any]) -> None:
    # What a type does not know, pydantic leaves out: nothing may be missing afterwards.
    assert _settled(_adapter(kind).validate_python(dict(body))) == body


def _settled(value: Any) -> Any:
    """Return a value with the lists in it read through: pydantic checks them as they are read."""
    if isinstance(value, Mapping):
        return {key: _settled(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Iterator) or hasattr(value, "__next__"):
        return [_settled(item) for item in value]
    return value
