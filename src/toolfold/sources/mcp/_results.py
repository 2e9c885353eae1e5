"""What an MCP server answers, as a text for an agent's model; and the agent as a caller.

An agent has no client behind it that a server could ask: questions are refused, and
progress goes to the activity feed.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from toolfold import prompts
from toolfold._json_values import compact
from toolfold.sources.calls import CallContext, Output
from toolfold.tool import Json, is_array, is_object

__all__ = ["AgentCaller", "output_of_result"]


def output_of_result(result: dict[str, Json]) -> Output:
    """Return a result of `tools/call`: as it came, and as a text."""
    content = result.get("content")
    blocks = [_text(block) for block in content] if is_array(content) else []
    structured = result.get("structuredContent")
    if not blocks and structured is not None:
        blocks = [compact(structured)]
    text = "\n".join(block for block in blocks if block) or prompts.NO_OUTPUT
    return Output(text, result.get("isError") is True, value=structured, raw=result)


def _text(block: Json) -> str:
    """Return a block of content as a text; what is none is named by its kind and size."""
    if not is_object(block):
        return ""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource" and is_object(resource := block.get("resource")):
        if isinstance(resource.get("text"), str):
            return resource["text"]
        return prompts.content_left_out(str(resource.get("mimeType", kind)), resource.get("uri"))
    if kind == "resource_link":
        return prompts.content_link(str(block.get("name", "")), str(block.get("uri", "")))
    return prompts.content_left_out(str(block.get("mimeType", kind)), None)


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
        self._context.progress(message or "", done / total if total else None)

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass over."""
