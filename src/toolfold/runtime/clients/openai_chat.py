"""Models behind `/chat/completions`: OpenAI's, and those of the many servers like it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from types import TracebackType
from typing import Literal, Self

from toolfold.redact import Redactor
from toolfold.runtime.clients.endpoint import Endpoint, address, header_value, secrets_in
from toolfold.runtime.clients.exchange import Exchange, Sleep
from toolfold.runtime.clients.failure import Failure
from toolfold.runtime.clients.openai_reader import KEPT, NATIVE, ChatReader
from toolfold.runtime.clients.pairing import SentCall, SentReply, SentResult, paired
from toolfold.runtime.messages import UserMessage
from toolfold.runtime.model import Reply, Request, TextDelta
from toolfold.tool import Json, Shape, is_array, is_object

__all__ = ["OpenAIChat"]

TIMEOUT_SECONDS = 600.0
"""How long a server may be silent: a local one reads a long prompt for minutes."""

_REFUSED = frozenset({400, 422})
_OPTIONS = "stream_options"
_LIMITS = ("max_tokens", "max_completion_tokens")

LimitField = Literal["max_tokens", "max_completion_tokens"]
"""The field that limits a reply: the older, which every server knows, or OpenAI's own."""


class OpenAIChat:
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
        self.context_length = context_length
        self._model = model
        self._parameters = dict(parameters or {})
        self._limit_field: str = max_tokens_field
        self._unwanted: set[str] = set()
        key = api_key if api_key is not None else os.environ.get("OPENAI_API_KEY", "")
        key = header_value(key, "the API key")
        sent = {
            name: header_value(v, f"the header {name!r}") for name, v in (headers or {}).items()
        }
        if key:
            sent = {"authorization": f"Bearer {key}", **sent}
        self._endpoint = Endpoint(
            address(base_url, "/chat/completions"),
            sent,
            timeout=timeout,
            needs="the OpenAI client",
            key_hint="set OPENAI_API_KEY, or give `api_key`",
        )
        self._exchange = Exchange(
            self._endpoint,
            model,
            Redactor([key, *secrets_in(sent)]),
            retries,
            sleep,
            self._adapted,
        )

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r}, at {self._endpoint.place!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def shape(self) -> Shape:
        """The wire shape in which it takes tools."""
        return "openai-chat"

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
        limit = next((body[key] for key in _LIMITS if isinstance(body.get(key), int)), None)
        return self._exchange.stream(body, ChatReader, limit or request.max_tokens)

    # ---- the request

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
        for entry in paired(request.messages):
            if isinstance(entry, UserMessage):
                # One text, not parts: templates of local models know nothing else.
                said = (part for part in (entry.text, entry.note) if part)
                yield {"role": "user", "content": "\n\n".join(said)}
            elif isinstance(entry, SentResult):
                yield {"role": "tool", "tool_call_id": entry.id, "content": entry.message.text}
            else:
                yield self._said(entry)

    def _said(self, entry: SentReply) -> Json:
        native = entry.message.native[0] if entry.message.native else None
        ours = native if is_object(native) and native.get("type") == NATIVE else {}
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
