"""Definitions without calls: the tools of a file or of a request body.

They can be listed, folded and searched. Nothing runs them: whoever calls one is told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolfold import prompts
from toolfold.sources.calls import CallContext, Output
from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.source import Source
from toolfold.tool import Json, Tool
from toolfold.wire import read

__all__ = ["Definitions"]


class Definitions(Source):
    """Tools that are known and that nothing here runs.

    Example:
        agent = Agent(model, sources=[Definitions.of_file("tools.json"), registry])

    Args:
        tools: The tools, in any wire shape.
        name: What the source is called. Where it is given, what records say themselves of
            their source, toolset, policy and aliases does not count.
    """

    def __init__(self, tools: Iterable[object], name: str | None = None) -> None:
        self.name = name or "definitions"
        self._tools = tuple(tool for entry in read(tools, source=name) for tool in entry.tools)

    @classmethod
    def of_file(cls, file: str | Path) -> Definitions:
        """Return the definitions that a catalog file holds.

        Raises:
            CatalogError: The file cannot be read.
        """
        return cls(load_catalog(file), name=Path(file).stem)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools."""
        return self._tools

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Tell the model that nothing runs this tool here."""
        return Output(prompts.not_connected(tool.shown_name), is_error=True)
