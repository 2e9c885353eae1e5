"""Google's Gemini API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from scripted_model.exchange import (
    Asked,
    Call,
    Json,
    Offered,
    Part,
    Result,
    Say,
    arguments_text,
    sse,
)

__all__ = ["Gemini"]


class Gemini:
    """`…:generateContent` and `…:streamGenerateContent`. Thinking is left out."""

    name = "gemini"

    def takes(self, path: str) -> bool:
        """Whether requests to a path are for a reply in this dialect."""
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """Return what a request asks."""
        content = json.loads(body)
        parts = [p for turn in content.get("contents", ()) for p in turn.get("parts", ())]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return Asked(
            self.name,
            path,
            headers,
            body,
            content,
            tools=[
                Offered(
                    record["name"],
                    record.get("description", ""),
                    record.get("parametersJsonSchema") or record.get("parameters") or {},
                    record=record,
                )
                for tool in content.get("tools") or ()
                for record in tool.get("functionDeclarations") or ()
            ],
            results=[
                Result(_id(result), json.dumps(result.get("response")), result)
                for result in results
            ],
            calls=[Call(call["name"], call.get("args", {}), id=_id(call)) for call in calls],
            is_streamed=path.endswith(":streamGenerateContent"),
        )

    def whole(self, asked: Asked, parts: Sequence[Part], number: int) -> Json:
        """Return a reply in one piece; no other has the same number."""
        return _response(asked, parts, number, list(parts), is_last=True)

    def streamed(self, asked: Asked, parts: Sequence[Part], number: int) -> Iterator[bytes]:
        """Yield a reply piece by piece."""
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            yield sse(_response(asked, parts, number, [part], is_last=is_last))

    def answer(self, method: str, path: str) -> Json | None:
        """Return what the API answers beside replies: a count of tokens."""
        return {"totalTokens": 1000} if path.endswith(":countTokens") else None


def _id(record: Json) -> str:
    # Older clients give calls no id: their name is all there is.
    return record.get("id") or record["name"]


def _part(part: Part, number: int) -> Json | None:
    match part:
        case Say(text):
            return {"text": text}
        case Call():
            made = {"name": part.name, "args": json.loads(arguments_text(part))}
            return {"functionCall": {"id": part.id or f"call-{number}", **made}}
        case _:
            return None


def _response(
    asked: Asked, whole: Sequence[Part], number: int, parts: Sequence[Part], *, is_last: bool
) -> Json:
    written = [one for part in parts if (one := _part(part, number)) is not None]
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": written}}
    if is_last:
        candidate["finishReason"] = "STOP"
    came, went = len(asked.body) // 4, 1 + len(repr(whole)) // 4
    usage = {
        "promptTokenCount": came,
        "candidatesTokenCount": went,
        "totalTokenCount": came + went,
    }
    return {
        "responseId": f"response-{number}",
        "modelVersion": "scripted",
        "candidates": [candidate],
        "usageMetadata": usage,
    }
