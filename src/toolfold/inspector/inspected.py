"""What the inspector looks at: a catalog, the settings, and where they come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from toolfold._checkup import Finding, check_tools
from toolfold._json_values import compact
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
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

    @cached_property
    def costs(self) -> Mapping[str, int]:
        """What each tool's definition costs a model in every request, by name."""
        return {tool.name: _cost(tool) for tool in self.catalog}

    @cached_property
    def sources(self) -> Mapping[str, tuple[Tool, ...]]:
        """The tools by source, the costliest source first."""
        found: dict[str, list[Tool]] = defaultdict(list)
        for tool in self.catalog:
            found[tool.source or NO_SOURCE].append(tool)
        costs = {name: sum(self.costs[t.name] for t in tools) for name, tools in found.items()}
        return {name: tuple(found[name]) for name in sorted(found, key=lambda n: (-costs[n], n))}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What would hurt in the catalog, errors first."""
        return tuple(check_tools(self.catalog.tools))

    def warm(self) -> None:
        """Have ready what the first search and the first look would wait for."""
        Bridge.over(self.catalog, self.settings).search("warm", 1)
        _ = self.findings

    def findings_of(self, name: str) -> list[Finding]:
        """Return what would hurt of one tool."""
        return [finding for finding in self.findings if name in finding.tools]


def _cost(tool: Tool) -> int:
    return estimate(compact(write(tool, "openai-chat")))
