"""OpenAI's chat completions, as most servers speak them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripted_model.exchange import (
    Asked,
    Call,
    Json,
    Offered,
    Part,
    Result,
    Say,
    arguments_text,
    halves,
    sse,
)

__all__ = ["OpenAIChat"]


class OpenAIChat:
    """`POST /v1/chat/completions`, streamed and whole. It has no thinking: that is left out."""

    name = "openai-chat"

    def takes(self, path: str) -> bool:
        """Whether requests to a path are for a reply in this dialect."""
        return path.endswith("/chat/completions")

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """Return what a request asks."""
        content = json.loads(body)
        messages: list[Json] = content.get("messages", [])
        return Asked(
            self.name,
            path,
            headers,
            body,
            content,
            tools=[_offered(tool) for tool in content.get("tools") or ()],
            results=[
                Result(message["tool_call_id"], _text(message.get("content")), message)
                for message in messages
                if message["role"] == "tool"
            ],
            calls=[
                Call(call["function"]["name"], call["function"]["arguments"], id=call["id"])
                for message in messages
                for call in message.get("tool_calls") or ()
            ],
            is_streamed=bool(content.get("stream")),
        )

    def whole(self, asked: Asked, parts: Sequence[Part], number: int) -> Json:
        """Return a reply in one piece; no other has the same number."""
        calls = _calls(parts, number)
        message: Json = {"role": "assistant", "content": _said(parts) or None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": _finish(parts), "logprobs": None}
        made = _completion(asked, number, "chat.completion")
        return {**made, "choices": [choice], "usage": _usage(asked, parts)}

    def streamed(self, asked: Asked, parts: Sequence[Part], number: int) -> Iterator[bytes]:
        """Yield a reply piece by piece."""
        made = _completion(asked, number, "chat.completion.chunk")

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            return sse({**made, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in halves(_said(parts)):
            yield chunk({"content": piece})
        for at, call in enumerate(_calls(parts, number)):
            function = call["function"]
            first = {**call, "index": at, "function": {**function, "arguments": ""}}
            yield chunk({"tool_calls": [first]})
            for piece in halves(function["arguments"]):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(parts))
        yield sse({**made, "choices": [], "usage": _usage(asked, parts)})
        yield sse("[DONE]")

    def answer(self, method: str, path: str) -> Json | None:
        """Return what the API answers beside replies."""
        return None


def _offered(record: Json) -> Offered:
    function = record.get("function", {})
    return Offered(
        function.get("name", ""),
        function.get("description", ""),
        function.get("parameters", {}),
        record=record,
    )


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(part.get("text", "") for part in content)


def _said(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Say))


def _calls(parts: Sequence[Part], number: int) -> list[Json]:
    return [
        {
            "id": part.id or f"call_{number:016}{at:04}",
            "type": "function",
            "function": {"name": part.name, "arguments": arguments_text(part)},
        }
        for at, part in enumerate(parts)
        if isinstance(part, Call)
    ]


def _finish(parts: Sequence[Part]) -> str:
    return "tool_calls" if any(isinstance(part, Call) for part in parts) else "stop"


def _completion(asked: Asked, number: int, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{number:024}",
        "object": kind,
        "created": 1_700_000_000 + number,
        "model": asked.content.get("model", ""),
    }


def _usage(asked: Asked, parts: Sequence[Part]) -> Json:
    came, went = len(asked.body) // 4, 1 + len(repr(parts)) // 4
    return {"prompt_tokens": came, "completion_tokens": went, "total_tokens": came + went}
