"""Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from scripted_model.exchange import (
    Asked,
    Call,
    Json,
    Offered,
    Part,
    Result,
    Say,
    Think,
    arguments_text,
    halves,
    sse,
)

__all__ = ["AnthropicMessages"]


class AnthropicMessages:
    """`POST /v1/messages`, streamed and whole, with thinking and calls."""

    name = "anthropic-messages"

    def takes(self, path: str) -> bool:
        """Whether requests to a path are for a reply in this dialect."""
        return path.endswith("/messages")

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """Return what a request asks."""
        content = json.loads(body)
        blocks = [
            block
            for message in content.get("messages", ())
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        shown = {
            part.get("tool_name")
            for block in blocks
            if isinstance(block.get("content"), list)
            for part in block["content"]
            if part.get("type") == "tool_reference"
        }
        return Asked(
            self.name,
            path,
            headers,
            body,
            content,
            tools=[_offered(tool, shown) for tool in content.get("tools") or ()],
            results=[
                Result(b["tool_use_id"], _text(b.get("content")), b, b.get("is_error", False))
                for b in blocks
                if b.get("type") == "tool_result"
            ],
            calls=[
                Call(b["name"], b["input"], id=b["id"])
                for b in blocks
                if b.get("type") == "tool_use"
            ],
            is_streamed=bool(content.get("stream")),
        )

    def whole(self, asked: Asked, parts: Sequence[Part], number: int) -> Json:
        """Return a reply in one piece; no other has the same number."""
        blocks = [_block(part, number, at) for at, part in enumerate(parts)]
        usage = _usage(asked, parts)
        return {**_message(asked, number, usage), "content": blocks, "stop_reason": _stop(parts)}

    def streamed(self, asked: Asked, parts: Sequence[Part], number: int) -> Iterator[bytes]:
        """Yield a reply piece by piece."""
        usage = _usage(asked, parts)

        def event(kind: str, **more: Any) -> bytes:
            return sse({"type": kind, **more}, kind)

        yield event("message_start", message=_message(asked, number, {**usage, "output_tokens": 1}))
        yield event("ping")
        for at, part in enumerate(parts):
            block = _block(part, number, at)
            yield event("content_block_start", index=at, content_block=_empty(block))
            for delta in _deltas(part):
                yield event("content_block_delta", index=at, delta=delta)
            yield event("content_block_stop", index=at)
        stop = {"stop_reason": _stop(parts), "stop_sequence": None}
        yield event("message_delta", delta=stop, usage=usage)
        yield event("message_stop")

    def answer(self, method: str, path: str) -> Json | None:
        """Return what the API answers beside replies: its models, a count of tokens."""
        if path.endswith("/messages/count_tokens"):
            return {"input_tokens": 1000}
        return {} if path.endswith("/api/hello") else None


def _offered(record: Json, shown: Set[str]) -> Offered:
    name = record.get("name", "")
    return Offered(
        name,
        record.get("description", ""),
        record.get("input_schema", {}),
        is_deferred=bool(record.get("defer_loading")) and name not in shown,
        record=record,
    )


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(block.get("text") or json.dumps(block) for block in content)


def _message(asked: Asked, number: int, usage: Json) -> Json:
    return {
        # Two answers of one id would be merged into one.
        "id": f"msg_{number:024}",
        "type": "message",
        "role": "assistant",
        "model": asked.content.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(asked: Asked, parts: Sequence[Part]) -> Json:
    return {
        "input_tokens": len(asked.body) // 4,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1 + len(repr(parts)) // 4,
    }


def _stop(parts: Sequence[Part]) -> str:
    return "tool_use" if any(isinstance(part, Call) for part in parts) else "end_turn"


def _block(part: Part, number: int, at: int) -> Json:
    match part:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case Call():
            made = part.id or f"toolu_{number:020}{at:04}"
            given = json.loads(arguments_text(part))
            return {"type": "tool_use", "id": made, "name": part.name, "input": given}


def _empty(block: Json) -> Json:
    hollow = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: hollow.get(key, value) for key, value in block.items()}


def _deltas(part: Part) -> Iterator[Json]:
    match part:
        case Say(text):
            for piece in halves(text):
                yield {"type": "text_delta", "text": piece}
        case Think(text, signature):
            for piece in halves(text):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": signature}
        case Call():
            for piece in halves(arguments_text(part)):
                yield {"type": "input_json_delta", "partial_json": piece}
