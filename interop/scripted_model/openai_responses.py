"""OpenAI's Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
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

__all__ = ["OpenAIResponses"]

_CALLS = {"function_call", "custom_tool_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}


class OpenAIResponses:
    """`POST /v1/responses`, streamed and whole, with namespaces and encrypted reasoning."""

    name = "openai-responses"

    def takes(self, path: str) -> bool:
        """Whether requests to a path are for a reply in this dialect."""
        return path.endswith("/responses")

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """Return what a request asks."""
        content = json.loads(body)
        given = content.get("input")
        items: list[Json] = given if isinstance(given, list) else []
        added = [
            tool
            for item in items
            if item.get("type") in ("additional_tools", "tool_search_output")
            for tool in item.get("tools") or ()
        ]
        return Asked(
            self.name,
            path,
            headers,
            body,
            content,
            tools=[
                tool
                for record in [*(content.get("tools") or ()), *added]
                for tool in _offered(record)
            ],
            results=[
                Result(item["call_id"], _text(item.get("output")), item)
                for item in items
                if item.get("type") in _OUTPUTS
            ],
            calls=[_call(item) for item in items if item.get("type") in _CALLS],
            is_streamed=bool(content.get("stream")),
        )

    def whole(self, asked: Asked, parts: Sequence[Part], number: int) -> Json:
        """Return a reply in one piece; no other has the same number."""
        items = [_item(part, number, at) for at, part in enumerate(parts)]
        return _response(asked, parts, number, "completed", items)

    def streamed(self, asked: Asked, parts: Sequence[Part], number: int) -> Iterator[bytes]:
        """Yield a reply piece by piece."""
        numbers = count()

        def event(kind: str, **more: Any) -> bytes:
            return sse({"type": kind, "sequence_number": next(numbers), **more}, kind)

        begun = _response(asked, parts, number, "in_progress", [])
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        items: list[Json] = []
        for at, part in enumerate(parts):
            item = _item(part, number, at)
            where = {"output_index": at}
            yield event("response.output_item.added", **where, item=_empty(item))
            for kind, more in _deltas(part, item):
                yield event(kind, item_id=item["id"], **where, **more)
            yield event("response.output_item.done", **where, item=item)
            items.append(item)
        ended = _response(asked, parts, number, "completed", items)
        yield event("response.completed", response=ended)

    def answer(self, method: str, path: str) -> Json | None:
        """Return what the API answers beside replies: its models."""
        return {"object": "list", "data": [], "models": []} if path.endswith("/models") else None


def _offered(record: Json, namespace: str = "") -> Iterator[Offered]:
    if record.get("type") == "namespace":
        for inner in record.get("tools") or ():
            yield from _offered(inner, record.get("name", ""))
        return
    yield Offered(
        record.get("name") or record.get("type", ""),
        record.get("description", ""),
        record.get("parameters") or {},
        namespace,
        takes_text=record.get("type") == "custom",
        is_deferred=bool(record.get("defer_loading")),
        record=record,
    )


def _call(item: Json) -> Call:
    given = item.get("arguments", item.get("input", ""))
    return Call(item["name"], given, item.get("namespace") or "", item["call_id"])


def _text(output: Any) -> str:
    if isinstance(output, str) or output is None:
        return output or ""
    return "\n".join(part.get("text") or json.dumps(part) for part in output)


def _item(part: Part, number: int, at: int) -> Json:
    mark = f"{number:020}{at:04}"
    match part:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
            kind = {"id": f"msg_{mark}", "type": "message", "status": "completed"}
            return {**kind, "role": "assistant", "content": content}
        case Think(text, signature):
            summary = [{"type": "summary_text", "text": text}]
            return {
                "id": f"rs_{mark}",
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": signature,
            }
        case Call(takes_text=True):
            given = {"name": part.name, "input": arguments_text(part)}
            kind = {"id": f"ctc_{mark}", "type": "custom_tool_call", "status": "completed"}
        case Call():
            given = {"name": part.name, "arguments": arguments_text(part)}
            kind = {"id": f"fc_{mark}", "type": "function_call", "status": "completed"}
    where = {"namespace": part.namespace} if part.namespace else {}
    return {**kind, "call_id": part.id or f"call_{mark}", **given, **where}


def _empty(item: Json) -> Json:
    hollow = {"content": [], "summary": [], "arguments": "", "input": "", "status": "in_progress"}
    return {
        key: hollow.get(key, value) for key, value in item.items() if key != "encrypted_content"
    }


def _deltas(part: Part, item: Json) -> Iterator[tuple[str, Json]]:
    match part:
        case Say(text):
            [whole], place = item["content"], {"content_index": 0}
            kind = "response.output_text"
            yield "response.content_part.added", {**place, "part": {**whole, "text": ""}}
            for piece in halves(text):
                yield f"{kind}.delta", {**place, "delta": piece, "logprobs": []}
            yield f"{kind}.done", {**place, "text": text, "logprobs": []}
            yield "response.content_part.done", {**place, "part": whole}
        case Think(text):
            [whole], place = item["summary"], {"summary_index": 0}
            kind = "response.reasoning_summary"
            yield f"{kind}_part.added", {**place, "part": {**whole, "text": ""}}
            for piece in halves(text):
                yield f"{kind}_text.delta", {**place, "delta": piece}
            yield f"{kind}_text.done", {**place, "text": text}
            yield f"{kind}_part.done", {**place, "part": whole}
        case Call():
            field = "input" if part.takes_text else "arguments"
            kind = "custom_tool_call_input" if part.takes_text else "function_call_arguments"
            for piece in halves(arguments_text(part)):
                yield f"response.{kind}.delta", {"delta": piece}
            yield f"response.{kind}.done", {field: arguments_text(part)}


def _response(
    asked: Asked, parts: Sequence[Part], number: int, status: str, items: list[Json]
) -> Json:
    came, went = len(asked.body) // 4, 1 + len(repr(parts)) // 4
    usage = {
        "input_tokens": came,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": went,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": came + went,
    }
    return {
        "id": f"resp_{number:024}",
        "object": "response",
        "created_at": 1_700_000_000 + number,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": asked.content.get("model", ""),
        "output": items,
        "parallel_tool_calls": True,
        "tools": [],
        "usage": usage if status == "completed" else None,
    }
