"""LlamaIndex: its tools as a source, for the agent and the gateway of toolfold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolfold.adapters._folding import missing
from toolfold.sources.calls import Output, PendingCall
from toolfold.sources.registry import Registry, Runner
from toolfold.tool import Json, Tool

try:
    from llama_index.core.tools import BaseTool, adapt_to_async_tool
except ImportError as error:
    raise missing("LlamaIndex", "llama-index") from error

__all__ = ["tool_registry"]


def tool_registry(tools: Iterable[BaseTool], name: str = "llama_index") -> Registry:
    """Return LlamaIndex tools as a source.

    Args:
        tools: The tools: functions, query engines, whatever has metadata.
        name: What the source is called.
    """
    registry = Registry(name)
    for tool in tools:
        registry.add(_tool(tool, name), _running(tool))
    return registry


def _tool(tool: BaseTool, source: str) -> Tool:
    metadata = tool.metadata
    parameters: dict[str, Any] = metadata.get_parameters_dict()
    return Tool(metadata.get_name(), metadata.description, parameters, source=source)


def _running(tool: BaseTool) -> Runner:
    awaited = adapt_to_async_tool(tool)

    async def run(call: PendingCall) -> Json:
        output = await awaited.acall(**call.arguments)
        return Output(output.content, output.is_error)

    return run
