"""Models behind Anthropic's `/v1/messages`.

The prompt is sent so that the provider's cache holds: tools and system prompt first, each
closed by a mark, and two marks on the conversation: on its end, and on what was the end
one reply ago. Blocks that the model sent go back as they came.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from toolfold.runtime.clients._anthropic_reader import MessagesReader
from toolfold.runtime.clients._exchange import Sleep
from toolfold.runtime.clients._openai_reader import NATIVE
from toolfold.runtime.clients._pairing import SentCall, SentMessage, SentReply, SentResult, paired
from toolfold.runtime.clients.http_model import TIMEOUT_SECONDS, HttpModel, ModelApi
from toolfold.runtime.messages import UserMessage
from toolfold.runtime.model import ModelError, Request
from toolfold.tool import Json, is_object

__all__ = ["Anthropic"]

VERSION = "2023-06-01"
"""The version of the API."""

_MARK = {"cache_control": {"type": "ephemeral"}}
_MARKS_AT_MOST = 4
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Anthropic(HttpModel):
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

    api = ModelApi(
        title="Anthropic",
        path="/v1/messages",
        shape="anthropic",
        reader=MessagesReader,
        key_variable="ANTHROPIC_API_KEY",
        key_header="x-api-key",
        headers={"anthropic-version": VERSION},
    )

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
        super().__init__(
            model,
            base_url=base_url,
            api_key=api_key,
            headers=headers,
            timeout=timeout,
            retries=retries,
            context_length=context_length,
            parameters=parameters,
            sleep=sleep,
        )
        self._cache = cache

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
