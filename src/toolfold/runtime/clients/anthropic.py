"""Models behind Anthropic's `/v1/messages`.

The prompt is sent so that the provider's cache holds: tools and system prompt first, each
closed by a mark, and two marks on the conversation: on its end, and on what was the end
one reply ago. Blocks that the model sent go back as they came, thinking with its signature;
where the API will not take its own thinking back, since what stands before it has changed,
it is asked again without.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from toolfold import prompts
from toolfold.answer import Answer
from toolfold.runtime.clients._anthropic_reader import MessagesReader
from toolfold.runtime.clients._discoveries import discovery, found_form
from toolfold.runtime.clients._exchange import Sleep
from toolfold.runtime.clients._failure import Failure
from toolfold.runtime.clients._native_blocks import native_blocks
from toolfold.runtime.clients._pairing import SentCall, SentMessage, SentReply, SentResult, paired
from toolfold.runtime.clients.http_model import TIMEOUT_SECONDS, HttpModel, ModelApi
from toolfold.runtime.messages import ModelMessage, UserMessage
from toolfold.runtime.model import ModelError, Request
from toolfold.tool import Json, is_object

__all__ = ["Anthropic"]

VERSION = "2023-06-01"
"""The version of the API."""

_MARK = {"cache_control": {"type": "ephemeral"}}
_MARKS_AT_MOST = 4
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

_CLOSED = {"type": "text", "text": prompts.DEFINED_BELOW}

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_SEALED_FOR_OTHERS = ("signature", "bound to", "cannot be modified")
"""What the API says of thinking that is not where, or not as, it was written."""
_THINK_FIRST = "must start with a thinking block"

_Kept: TypeAlias = Callable[[ModelMessage], list[dict[str, Json]]]
"""The blocks of a message that go back as they came."""


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
        provider_api="anthropic-messages",
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
        self._refused: set[int] = set()

    def _body(self, request: Request) -> dict[str, Json]:
        messages = _messages(request, self._kept)
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
        return _with_room_to_think({**body, "stream": True, **self._parameters})

    def _kept(self, message: ModelMessage) -> list[dict[str, Json]]:
        """Return the blocks of a message that go back as they came."""
        kept = native_blocks(message, self.shape, self.origin)
        return [b for b in kept if not (_is_thought(b) and _seal(b) in self._refused)]

    # ---- thinking that is not taken back

    def _adapted(self, body: Json, failure: Failure) -> Json | None:
        """Return the body that a server which refused this one may take, or None."""
        if failure.status != 400 or "thinking" not in failure.body:
            return None
        if _THINK_FIRST in failure.body and _object(body.get("thinking")).get("budget_tokens"):
            return {**body, "thinking": {"type": "disabled"}}
        if not any(words in failure.body for words in _SEALED_FOR_OTHERS):
            return None
        blocks = [block for message in body["messages"] for block in message["content"]]
        refused = {_seal(block) for block in blocks if _is_thought(block)}
        self._refused |= refused
        return _without_thinking(body) if refused else None


def _with_room_to_think(body: dict[str, Json]) -> dict[str, Json]:
    """Return a request whose limit leaves room for an answer behind the thinking."""
    budget, limit = _object(body.get("thinking")).get("budget_tokens"), body.get("max_tokens")
    if isinstance(budget, int) and isinstance(limit, int) and limit <= budget:
        return {**body, "max_tokens": budget + limit}
    return body


def _without_thinking(body: dict[str, Json]) -> dict[str, Json]:
    messages: list[Json] = []
    for message in body["messages"]:
        content = [block for block in message["content"] if not _is_thought(block)]
        if content:
            messages.append({**message, "content": content})
    return {**body, "messages": messages}


def _is_thought(block: dict[str, Json]) -> bool:
    return block.get("type") in _THOUGHTS


def _seal(block: dict[str, Json]) -> int:
    """Return what tells one piece of thinking from another."""
    return hash((str(block.get("signature")), str(block.get("data")), str(block.get("thinking"))))


def _object(value: Json) -> dict[str, Json]:
    return value if is_object(value) else {}


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
    for message in asked[::-1][: max(min(marks, 2), 0)]:
        message["content"][-1] = {**message["content"][-1], **_MARK}


def _messages(request: Request, kept: _Kept) -> list[dict[str, Json]]:
    """Return the messages, neighbours of one role merged."""
    messages: list[dict[str, Json]] = []
    defined = _Definitions()
    notes: list[str] = []
    for entry in paired(request.messages, _ID):
        if not isinstance(entry, SentResult):
            _add_notes(messages, notes)
            messages += defined.message()
        role = "assistant" if isinstance(entry, SentReply) else "user"
        blocks = list(_blocks(entry, request, kept, defined, notes))
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
        if defined.blocks and isinstance(entry, SentResult):
            _close(messages[-1]["content"])
    _add_notes(messages, notes)
    return [*messages, *defined.message()]


def _add_notes(messages: list[dict[str, Json]], notes: list[str]) -> None:
    """Put what results of references have to say behind all results of their message."""
    if notes:
        messages[-1]["content"].extend(_texts("\n".join(notes)))
        notes.clear()


class _Definitions:
    """Definitions that come in behind the results of one reply."""

    def __init__(self) -> None:
        self.blocks: list[Json] = []
        self._known: set[str] = set()

    def add(self, answer: Answer) -> str:
        """Take what a search found; return what its result says."""
        text, message = answer.additions(self._known)
        if message is not None:
            self.blocks += message["content"]
            self._known |= {tool.wire_name for tool in answer.found}
        return text

    def message(self) -> list[dict[str, Json]]:
        """Return the message with them, if there are any."""
        blocks, self.blocks = self.blocks, []
        return [{"role": "system", "content": blocks}] if blocks else []


def _close(content: list[Json]) -> None:
    """Put the text last that keeps a model from taking what follows for a tool's result."""
    content[:] = [block for block in content if block != _CLOSED]
    content.append(_CLOSED)


def _blocks(
    entry: SentMessage, request: Request, kept: _Kept, defined: _Definitions, notes: list[str]
) -> Iterator[Json]:
    """Yield the content of an entry; blank texts, which the API refuses, left out."""
    if isinstance(entry, UserMessage):
        yield from _texts(entry.text, entry.note)
    elif isinstance(entry, SentResult):
        result: dict[str, Json] = {"type": "tool_result", "tool_use_id": entry.id}
        content = _content(entry, request, defined, notes)
        if content:
            result["content"] = content
            if entry.message.is_error:
                result["is_error"] = True
        yield result
    else:
        yield from _said(entry, kept(entry.message))


def _content(entry: SentResult, request: Request, defined: _Definitions, notes: list[str]) -> Json:
    """Return the content of a result: a text, or references to what a search found."""
    answer, text = discovery(request, entry.message), entry.message.text
    if answer is not None:
        match found_form(request):
            case "tool_reference":
                content = answer.result_content()
                if answer.note and _is_reference(content[0]):
                    notes.append(answer.note)
                return content
            case "tool_addition":
                text = defined.add(answer)
            case _:
                text = answer.text
    return text if text.strip() else None


def _is_reference(block: Json) -> bool:
    return _object(block).get("type") == "tool_reference"


def _said(entry: SentReply, kept: list[dict[str, Json]]) -> list[Json]:
    """Return a model's blocks: its own, where they are there and fit its calls."""
    written = [call for call in entry.calls if not call.recovered]
    uses = [block for block in kept if block.get("type") == "tool_use"]
    if len(uses) != len(written) or not kept:
        return [*_texts(entry.text), *map(_use, entry.calls)]
    said: list[Json] = []
    for block in kept:
        if block.get("type") == "tool_use":
            said.append({**block, **_use(written.pop(0))})
        elif block.get("type") != "text" or (entry.text and str(block.get("text")).strip()):
            said.append(block)
    said += [_use(call) for call in entry.calls if call.recovered]
    while said and _is_thought(said[-1]):  # the API refuses a message that ends in thinking
        said.pop()
    return said


def _use(call: SentCall) -> dict[str, Json]:
    use = {"type": "tool_use", "id": call.id, "name": call.name}
    return {**use, "input": json.loads(call.arguments)}


def _texts(*texts: str) -> Iterator[Json]:
    return ({"type": "text", "text": text} for text in texts if text.strip())
