"""Models behind Anthropic's `/v1/messages`.

The prompt is sent so that the provider's cache holds: tools and system prompt first, each
closed by a mark, and two marks on the conversation: on its end, and on what was the end
one reply ago. Blocks that the model sent go back as they came.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from toolfold.redact import Redactor
from toolfold.runtime.clients.anthropic_reader import MessagesReader
from toolfold.runtime.clients.endpoint import Endpoint, address, header_value, secrets_in
from toolfold.runtime.clients.exchange import Exchange, Sleep
from toolfold.runtime.clients.openai_reader import NATIVE
from toolfold.runtime.clients.pairing import SentCall, SentMessage, SentReply, SentResult, paired
from toolfold.runtime.messages import UserMessage
from toolfold.runtime.model import ModelError, Reply, Request, TextDelta
from toolfold.tool import Json, Shape, is_object

__all__ = ["Anthropic"]

TIMEOUT_SECONDS = 600.0
VERSION = "2023-06-01"
"""The version of the API."""

_MARK = {"cache_control": {"type": "ephemeral"}}
_MARKS_AT_MOST = 4
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Anthropic:
    """A Claude model, or another behind the same API.

    Args:
        model: The model's name.
        base_url: The API's address, without `/v1`.
        api_key: The key; by default `ANTHROPIC_API_KEY`, if that is set.
        headers: Headers to send along, such as `anthropic-beta`.
        timeout: How many seconds the server may be silent.
        retries: How often a request is tried again where that may help.
        context_length: The model's context window, in tokens.
        parameters: Further fields of the request, such as `temperature` or `thinking`.
        cache: Whether to mark what the provider should keep in its cache.
        sleep: What waits between attempts.

    Raises:
        ConfigError: The base URL, the key or a header cannot be used.
        MissingExtraError: The `agent` extra is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.anthropic.com",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = 4,
        context_length: int | None = None,
        parameters: Mapping[str, Json] | None = None,
        cache: bool = True,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.context_length = context_length
        self._model = model
        self._parameters = dict(parameters or {})
        self._cache = cache
        key = api_key if api_key is not None else os.environ.get("ANTHROPIC_API_KEY", "")
        key = header_value(key, "the API key")
        sent = {
            name: header_value(v, f"the header {name!r}") for name, v in (headers or {}).items()
        }
        sent = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {}), **sent}
        self._endpoint = Endpoint(
            address(base_url, "/v1/messages"),
            sent,
            timeout=timeout,
            needs="the Anthropic client",
            key_hint="set ANTHROPIC_API_KEY, or give `api_key`",
        )
        secrets = [key, *secrets_in(sent)]
        self._exchange = Exchange(self._endpoint, model, Redactor(secrets), retries, sleep)

    def __repr__(self) -> str:
        return f"Anthropic({self._model!r}, at {self._endpoint.place!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def shape(self) -> Shape:
        """The wire shape in which it takes tools."""
        return "anthropic"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A later request opens new ones."""
        await self._endpoint.aclose()

    def stream(self, request: Request) -> AsyncGenerator[TextDelta | Reply, None]:
        """Yield the reply's text as it comes, then the `Reply`.

        Close the iterator where it is not read to its end; the server is told.

        Raises:
            ModelError: The model cannot be reached, or refuses the request.
        """
        body = self._body(request)
        limit = body["max_tokens"]
        tokens = limit if isinstance(limit, int) else request.max_tokens
        return self._exchange.stream(body, MessagesReader, tokens)

    # ---- the request

    def _body(self, request: Request) -> dict[str, Json]:
        messages = _messages(request)
        if not messages:
            raise ModelError("there is nothing to send", hint="say something first")
        body: dict[str, Json] = {"model": self._model, "max_tokens": request.max_tokens}
        tools = list(request.tools)
        system: Json = request.system
        if self._cache:
            marked = sum("cache_control" in record for record in (*tools, self._parameters))
            marks = _MARKS_AT_MOST - marked
            tools, marks = _marked_tools(tools, marks)
            if system and marks > 0:
                system = [{"type": "text", "text": system, **_MARK}]
                marks -= 1
            _mark_messages(messages, marks)
        if system:
            body["system"] = system
        body["messages"] = messages
        if tools:
            body["tools"] = tools
        return {**body, "stream": True, **self._parameters}


def _marked_tools(tools: list[Json], marks: int) -> tuple[list[Json], int]:
    """Return the tools with a mark on the last that may have one, and the marks left."""
    if any("cache_control" in tool for tool in tools):
        return tools, marks
    for i in reversed(range(len(tools))):
        # A tool that the provider defers stands outside the prompt; a mark on it is an error.
        if not tools[i].get("defer_loading"):
            return [*tools[:i], {**tools[i], **_MARK}, *tools[i + 1 :]], marks - 1
    return tools, marks


def _mark_messages(messages: list[dict[str, Json]], marks: int) -> None:
    """Mark the conversation's end, and its end of one reply ago."""
    asked = [message for message in messages if message["role"] == "user"]
    for message in asked[::-1][: min(marks, 2)]:
        message["content"][-1] = {**message["content"][-1], **_MARK}


def _messages(request: Request) -> list[dict[str, Json]]:
    """Return the messages, neighbours of one role merged."""
    messages: list[dict[str, Json]] = []
    for entry in paired(request.messages, _ID):
        role = "assistant" if isinstance(entry, SentReply) else "user"
        blocks = list(_blocks(entry))
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _blocks(entry: SentMessage) -> Iterator[Json]:
    """Yield the content of an entry; blank texts, which the API refuses, left out."""
    if isinstance(entry, UserMessage):
        yield from _texts(entry.text, entry.note)
    elif isinstance(entry, SentResult):
        result: dict[str, Json] = {"type": "tool_result", "tool_use_id": entry.id}
        if entry.message.text.strip():
            result["content"] = entry.message.text
            if entry.message.is_error:
                result["is_error"] = True
        yield result
    else:
        yield from _said(entry, entry.message.native)


def _said(entry: SentReply, native: Sequence[Json]) -> Iterator[Json]:
    """Yield a model's blocks: its own, where they are there and fit its calls."""
    calls = list(entry.calls)
    written = [call for call in calls if not call.recovered]
    known = [block for block in native if is_object(block) and block.get("type") != NATIVE]
    uses = [block for block in known if block.get("type") == "tool_use"]
    if len(uses) != len(written) or not known:
        yield from _texts(entry.text)
        yield from map(_use, calls)
        return
    for block in known:
        if block.get("type") == "tool_use":
            yield {**block, **_use(written.pop(0))}
        elif block.get("type") != "text" or (entry.text and str(block.get("text")).strip()):
            yield block
    yield from (_use(call) for call in calls if call.recovered)


def _use(call: SentCall) -> dict[str, Json]:
    use = {"type": "tool_use", "id": call.id, "name": call.name}
    return {**use, "input": json.loads(call.arguments)}


def _texts(*texts: str) -> Iterator[Json]:
    return ({"type": "text", "text": text} for text in texts if text.strip())
