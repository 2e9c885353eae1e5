"""Models behind `/chat/completions`: OpenAI's, and those of the many servers like it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Literal

from toolfold.runtime.clients._discoveries import discovery
from toolfold.runtime.clients._exchange import Sleep
from toolfold.runtime.clients._failure import Failure
from toolfold.runtime.clients._native_blocks import native_blocks
from toolfold.runtime.clients._openai_reader import KEPT, ChatReader
from toolfold.runtime.clients._pairing import SentCall, SentReply, SentResult, paired
from toolfold.runtime.clients.http_model import TIMEOUT_SECONDS, HttpModel, ModelApi
from toolfold.runtime.messages import UserMessage
from toolfold.runtime.model import Request
from toolfold.tool import Json, is_array, is_object

__all__ = ["OpenAIChat"]

_REFUSED = frozenset({400, 422})
_OPTIONS = "stream_options"
_LIMITS = ("max_tokens", "max_completion_tokens")

LimitField = Literal["max_tokens", "max_completion_tokens"]
"""The field that limits a reply: the older, which every server knows, or OpenAI's own."""


class OpenAIChat(HttpModel):
    """A model behind an OpenAI-compatible `/chat/completions`.

    A server that will not take an optional field (the count of tokens in a stream, the
    reasoning it sent, the other name of the limit) is asked again without it, once.

    Args:
        model: The model's name.
        base_url: The API's address, up to and with `/v1`.
        api_key: The key; by default `OPENAI_API_KEY`, if that is set.
        headers: Headers to send along.
        timeout: How many seconds the server may be silent.
        retries: How often a request is tried again where that may help.
        context_length: The model's context window, in tokens.
        parameters: Further fields of the request, such as `temperature`.
        max_tokens_field: The name of the field that limits a reply.
        sleep: What waits between attempts.

    Raises:
        ConfigError: The base URL, the key or a header cannot be used.
        MissingExtraError: The `agent` extra is not installed.

    Example:
        async with OpenAIChat("qwen3", base_url="http://localhost:8080/v1") as model:
            agent = Agent(model, registry)
    """

    api = ModelApi(
        title="OpenAI",
        path="/chat/completions",
        shape="openai-chat",
        reader=ChatReader,
        key_variable="OPENAI_API_KEY",
        key_header="authorization",
        key_prefix="Bearer ",
        limits=_LIMITS,
    )

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = 4,
        context_length: int | None = None,
        parameters: Mapping[str, Json] | None = None,
        max_tokens_field: LimitField = "max_tokens",
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
        self._limit_field: str = max_tokens_field
        self._unwanted: set[str] = set()

    def _body(self, request: Request) -> dict[str, Json]:
        body: dict[str, Json] = {"model": self._model, "messages": list(self._messages(request))}
        if request.tools:
            body["tools"] = list(request.tools)
        body[self._limit_field] = request.max_tokens
        body["stream"] = True
        if _OPTIONS not in self._unwanted:
            body[_OPTIONS] = {"include_usage": True}
        return {**body, **self._parameters}

    def _messages(self, request: Request) -> Iterator[Json]:
        if request.system:
            yield {"role": "system", "content": request.system}
        waiting: dict[str, Json] = {}
        for entry in paired(request.messages):
            if waiting and isinstance(entry, UserMessage) and not entry.text:
                # Mistral takes no user behind a tool's result.
                waiting["content"] += f"\n\n{entry.note}"
                continue
            if waiting:
                yield waiting
                waiting = {}
            if isinstance(entry, UserMessage):
                # One text, not parts: templates of local models know nothing else.
                said = (part for part in (entry.text, entry.note) if part)
                yield {"role": "user", "content": "\n\n".join(said)}
            elif isinstance(entry, SentResult):
                answer = discovery(request, entry.message)
                text = entry.message.text if answer is None else answer.text
                waiting = {"role": "tool", "tool_call_id": entry.id, "content": text}
            else:
                yield self._said(entry)
        if waiting:
            yield waiting

    def _said(self, entry: SentReply) -> Json:
        native = native_blocks(entry.message, self.shape, self.origin)
        ours = native[0] if native else {}
        calls = ours.get("calls")
        extras: list[Json] = calls if is_array(calls) and len(calls) == len(entry.calls) else []
        message: dict[str, Json] = {"role": "assistant", "content": entry.text}
        if entry.calls:
            message["tool_calls"] = [
                {**self._wanted(extra), **_call(call)}
                for call, extra in zip(
                    entry.calls, extras or [None] * len(entry.calls), strict=True
                )
            ]
        return {**message, **self._wanted(ours.get("message"))}

    def _wanted(self, kept: Json) -> dict[str, Json]:
        fields = kept if is_object(kept) else {}
        return {k: v for k, v in fields.items() if k in KEPT and k not in self._unwanted}

    # ---- servers that want less

    def _adapted(self, body: Json, failure: Failure) -> Json | None:
        """Return the body that a server which refused this one may take, or None."""
        if failure.status not in _REFUSED:
            return None
        for field in (_OPTIONS, *KEPT):
            if field in failure.body and field not in {*self._unwanted, *self._parameters}:
                without = _without(body, field)
                if without != body:
                    self._unwanted.add(field)
                    return without
        mine = self._limit_field
        other = _LIMITS[1 - _LIMITS.index(mine)]
        named = mine in failure.body and other in failure.body
        if named and other not in {*self._unwanted, *body} and mine not in self._parameters:
            self._unwanted.add(mine)
            self._limit_field = other
            return {(other if key == mine else key): value for key, value in body.items()}
        return None


def _call(call: SentCall) -> dict[str, Json]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _without(body: dict[str, Json], field: str) -> dict[str, Json]:
    """Return a request without a field, in it and in its messages and calls."""

    def pruned(record: dict[str, Json]) -> dict[str, Json]:
        return {key: value for key, value in record.items() if key != field}

    messages = [pruned(message) for message in body["messages"]]
    for message in messages:
        if "tool_calls" in message:
            message["tool_calls"] = [pruned(call) for call in message["tool_calls"]]
    return {**pruned(body), "messages": messages}
