"""What the inspector looks at: a catalog, the settings, and where they come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from toolfold._json_values import compact
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.fold import fold
from toolfold.inspector.checkup import Checkup
from toolfold.search.memory import SearchMemory
from toolfold.settings import Settings
from toolfold.tokens import estimate
from toolfold.tool import Tool
from toolfold.wire import write

__all__ = ["NO_SOURCE", "Inspected"]

NO_SOURCE = ""
"""What tools without a source stand under."""


@dataclass(frozen=True)
class Inspected:
    """A catalog as the page shows it. What is dear to find is found once."""

    catalog: Catalog
    settings: Settings
    title: str
    """Where the tools come from, for a person."""

    memory: SearchMemory | None = None
    """What searches led to before, where that is kept and counts."""

    @cached_property
    def costs(self) -> Mapping[str, int]:
        """What each tool's definition costs a model in every request, by name."""
        return {tool.name: _cost(tool) for tool in self.catalog}

    @cached_property
    def tokens(self) -> int:
        """What the whole list costs, as `fold` counts it."""
        folded = fold(
            self.catalog, settings=replace(self.settings, enabled="off"), shape="openai-chat"
        )
        return folded.report.tokens_before

    @cached_property
    def sources(self) -> Mapping[str, tuple[Tool, ...]]:
        """The tools by source, the costliest source first."""
        found: dict[str, list[Tool]] = defaultdict(list)
        for tool in self.catalog:
            found[tool.source or NO_SOURCE].append(tool)
        costs = {name: sum(self.costs[t.name] for t in tools) for name, tools in found.items()}
        return {name: tuple(found[name]) for name in sorted(found, key=lambda n: (-costs[n], n))}

    @cached_property
    def checkup(self) -> Checkup:
        """What would hurt in the catalog; it is looked for once somebody asks."""
        return Checkup(self.catalog, self.settings)

    def warm(self) -> None:
        """Have ready what the first look and the first search would wait for."""
        _ = self.costs, self.sources, self.tokens
        Bridge.over(self.catalog, self.settings).search("warm", 1)


def _cost(tool: Tool) -> int:
    return estimate(compact(write(tool, "openai-chat")))
