"""FastMCP: a transform that folds a server's tools, behind its own auth and middleware.

What a client may see is asked of the server on every listing and every call, through its whole
pipeline: what it may not see, it can neither find nor describe nor call. Calls of folded tools
go through `server.call_tool`, as any other does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolfold.adapters._folding import FoldOptions, definition, missing, resolved, shown_tools
from toolfold.answer import Answer
from toolfold.fold import Folded
from toolfold.search import Ranker
from toolfold.settings import Settings
from toolfold.sources.calls import Output, PendingCall
from toolfold.sources.registry import Registry, Runner
from toolfold.tool import Json
from toolfold.wire import read

try:
    from fastmcp import FastMCP
    from fastmcp.server.context import Context
    from fastmcp.server.dependencies import get_context
    from fastmcp.server.transforms import GetToolNext
    from fastmcp.server.transforms.catalog import CatalogTransform
    from fastmcp.tools.base import Tool as ServerTool
    from fastmcp.tools.base import ToolResult
    from fastmcp.utilities.versions import VersionSpec, dedupe_with_versions
except ImportError as error:
    raise missing("FastMCP", "fastmcp") from error

__all__ = ["FoldTransform", "server_registry"]


class FoldTransform(CatalogTransform):
    """A transform that lists three tools where a server has many.

    Example:
        mcp.add_transform(FoldTransform(core=["read_file"]))

    Args:
        settings: How to fold. A server does not know its clients' models: by default it folds
            from 20,000 tokens on, with `Settings(enabled="on")` always.
        core: Names or patterns of tools that are never folded.
        context_length: The window of the clients' models, in tokens.
        ranker: How to rank, in place of the settings' choice.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        core: Sequence[str] = (),
        context_length: int | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        super().__init__()
        self._folding = FoldOptions(settings, tuple(core), context_length, ranker)

    def __repr__(self) -> str:
        return "FoldTransform()"

    async def transform_tools(self, tools: Sequence[ServerTool]) -> Sequence[ServerTool]:
        """Return the open tools, and the bridge where others are folded."""
        newest = {tool.name: tool for tool in dedupe_with_versions(tools, lambda t: t.name)}
        folded = self._folded(list(newest.values()))
        if not folded.active:
            return tools
        return [
            self._bridge_tool(shown.name, shown.description, shown.parameters)
            if shown.is_bridge
            else newest[shown.name].model_copy(update={"parameters": shown.parameters})
            for shown in shown_tools(folded)
        ]

    async def get_tool(
        self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None
    ) -> ServerTool | None:
        """Return one of the bridge's tools, or what the server has of that name."""
        own = await call_next(name, version=version)
        if own is not None or name not in self._folding.names:
            return own
        return self._bridge_tool(name, "", {"type": "object"})

    def _folded(self, tools: Sequence[ServerTool]) -> Folded:
        return self._folding.fold([_record(tool) for tool in tools])

    def _bridge_tool(self, name: str, description: str, parameters: dict[str, Any]) -> ServerTool:
        async def answer(arguments: dict[str, Any]) -> ToolResult:
            return await self._answer(name, arguments, get_context())

        return _BridgeTool(name=name, description=description, parameters=parameters, answer=answer)

    async def _answer(self, name: str, arguments: dict[str, Any], ctx: Context) -> ToolResult:
        """Answer a call of the bridge over what the client may see now."""
        folded = self._folded(list(await self.get_tool_catalog(ctx)))
        outcome = await resolved(folded, name, arguments, folded.session)
        if isinstance(outcome, Answer):
            return ToolResult(outcome.text, is_error=outcome.is_error)
        return await ctx.fastmcp.call_tool(outcome.tool.name, dict(outcome.arguments))


def server_registry(server: FastMCP[Any], name: str | None = None) -> Registry:
    """Return a FastMCP server's tools, as they are now, as a source for toolfold's own doors.

    It runs in this process: no transport, and the server's middleware is asked.

    Args:
        server: The server.
        name: What the source is called; by default as the server is.
    """
    # Listing is asynchronous, and this may be called inside an event loop or outside.
    with ThreadPoolExecutor(1) as thread:
        tools = thread.submit(asyncio.run, _listed(server)).result()
    registry = Registry(name or server.name)
    for tool in tools:
        # Its own name: in another source it may be called something else.
        (entry,) = read([_record(tool)], source=registry.name)
        registry.add(entry.tools[0], _running(server, tool.name))
    return registry


def _running(server: FastMCP[Any], name: str) -> Runner:
    async def run(call: PendingCall) -> Json:
        result = await server.call_tool(name, dict(call.arguments))
        texts = [getattr(part, "text", None) for part in result.content]
        text = "\n".join(text for text in texts if text is not None)
        return Output(text, result.is_error, result.structured_content)

    return run


async def _listed(server: FastMCP[Any]) -> list[ServerTool]:
    return list(dedupe_with_versions(await server.list_tools(), lambda tool: tool.name))


class _BridgeTool(ServerTool):
    """One of the three tools that stand for the folded ones."""

    answer: Callable[[dict[str, Any]], Any]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return await self.answer(arguments)


def _record(tool: ServerTool) -> dict[str, Json]:
    annotations = None
    if tool.annotations is not None:
        annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True, mode="json")
    return definition(
        tool.name,
        tool.description,
        tool.parameters,
        title=tool.title,
        annotations=annotations,
    )
