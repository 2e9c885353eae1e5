"""What an MCP server answers, as a text for an agent's model; and the agent as a caller.

An agent has no client behind it that a server could ask: questions are refused, and
progress goes to the activity feed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold._json_values import compact
from toolfold.sources.calls import CallContext, Output
from toolfold.tool import Json, is_array, is_object

__all__ = ["AgentCaller", "output_of_result"]

_WORD_LIMIT = 200


def output_of_result(result: dict[str, Json]) -> Output:
    """Return a result of `tools/call`: as it came, and as a text."""
    content = result.get("content")
    blocks: list[Json] = content if is_array(content) else [content]
    texts = [text for block in blocks if (text := _text(block))]
    structured = result.get("structuredContent")
    # A server repeats its value as a text, for those who read nothing else.
    if structured is not None and not any(map(_is_text, blocks)):
        texts.append(compact(structured))
    is_error = result.get("isError") is True
    text = "\n".join(texts) or (prompts.FAILED_WORDLESS if is_error else prompts.NO_OUTPUT)
    return Output(text, is_error, value=structured, raw=result)


def _is_text(block: Json) -> bool:
    return isinstance(block, str) or (is_object(block) and block.get("type") == "text")


def _text(block: Json) -> str:
    """Return a block of content as a text; what is none is named by its kind and size."""
    if isinstance(block, str):  # not as the protocol has it, and plain what is meant
        return block
    if not is_object(block):
        return ""
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text if isinstance(text, str) else ""
    if kind == "resource_link":
        return prompts.content_link(_word(block.get("name")), _word(block.get("uri")))
    resource = block.get("resource")
    held = resource if kind == "resource" and is_object(resource) else block
    if held is resource and isinstance(held.get("text"), str):
        return held["text"]
    data = held.get("blob" if held is resource else "data")
    size = len(data) * 3 // 4 if isinstance(data, str) else 0  # it is in base64
    what = _word(held.get("mimeType")) or _word(kind) or "content"
    return prompts.content_left_out(what, _word(held.get("uri")), size)


def _word(value: Json) -> str:
    """Return what a server says of its content, on one short line."""
    return one_line(value, _WORD_LIMIT) if isinstance(value, str) else ""


class AgentCaller:
    """The caller behind a call that an agent makes by itself."""

    is_modern = False
    wants_progress = True
    log_level: str | None = None
    key = origin = owner = "agent"

    def __init__(self, context: CallContext) -> None:
        self._context = context

    @property
    def capabilities(self) -> Mapping[str, Json]:
        """What can be asked: nothing."""
        return {}

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Refuse: there is nobody to ask."""
        raise MCPError(INVALID_REQUEST, "there is no client to ask")

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Bring a progress report to the activity feed."""
        far = done / total if total else math.nan
        count = "" if math.isfinite(far) else f"{done:g}"
        fraction = min(max(far, 0.0), 1.0) if math.isfinite(far) else None
        self._context.progress(message or count, fraction)

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass over."""

    async def close_stream(self) -> None:
        """Pass over: there is none."""
