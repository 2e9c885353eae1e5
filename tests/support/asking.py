"""Asking a model server of the tests, and reading its reply."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from support.model_server import ModelServer, event
from toolfold.runtime.clients import Anthropic, OpenAIChat, OpenAIResponses
from toolfold.runtime.messages import Message, UserMessage
from toolfold.runtime.model import Reply, Request

HELLO = Request([UserMessage("hello")], max_tokens=400)
CLIENTS = {"openai": OpenAIChat, "responses": OpenAIResponses, "anthropic": Anthropic}
APIS = tuple(CLIENTS)

AnyClient = OpenAIChat | OpenAIResponses | Anthropic


async def no_wait(seconds: float) -> None:
    """Wait for nothing."""


def base_url(server: ModelServer, api: str) -> str:
    """The base URL of an API."""
    return server.url if api == "anthropic" else server.openai


def client(
    server: ModelServer, api: str = "openai", model: str = "any", **options: Any
) -> AnyClient:
    options = {"api_key": "", "sleep": no_wait, **options}
    return CLIENTS[api](model, base_url=base_url(server, api), **options)


async def heard(model: AnyClient, request: Request = HELLO) -> tuple[list[str], Reply]:
    """The texts of a reply as they came, and the reply."""
    texts: list[str] = []
    async with aclosing(model.stream(request)) as events:
        async for one in events:
            if isinstance(one, Reply):
                return texts, one
            texts.append(one.text)
    raise AssertionError("no reply")


def asked(step: Any, api: str = "openai", request: Request = HELLO, **options: Any) -> Reply:
    """The reply to one request; its text is what was streamed."""

    async def main() -> Reply:
        with ModelServer(step) as server:
            async with client(server, api, **options) as model:
                texts, reply = await heard(model, request)
        assert "".join(texts) == reply.message.text
        return reply

    return asyncio.run(main())


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk of a completion, with as little in it as there can be."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event({"object": "chat.completion.chunk", "choices": [choice], **more})


def piece(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A piece of a call."""
    function = {"name": name, "arguments": arguments}
    return {"function": {k: v for k, v in function.items() if v is not None}, **more}


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": SCHEMA}}
    for name in ("add", "sub")
]
TOOLS = [{"name": name, "description": "", "input_schema": SCHEMA} for name in ("add", "sub")]


RESPONSES_TOOLS = [
    {"type": "function", "name": name, "description": "", "parameters": SCHEMA}
    for name in ("add", "sub")
]


async def ask(model: AnyClient, messages: list[Message], **more: Any) -> Reply:
    """Ask, add the reply to the messages, and return it."""
    async with aclosing(model.stream(Request(messages, max_tokens=100, **more))) as events:
        replies = [e async for e in events if isinstance(e, Reply)]
    messages.append(replies[0].message)
    return replies[0]
