"""A memory as one principal's searches see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfold.search.memory import SearchedTools, Weighed
from toolfold.search.ranker import Match
from toolfold.tool import Tool

if TYPE_CHECKING:
    from toolfold.memory.memory import Memory

__all__ = ["PrincipalMemory"]


@dataclass(frozen=True, slots=True)
class PrincipalMemory:
    """A memory as one principal's searches see it: its own record, or all where that is shared."""

    memory: Memory
    principal: str

    @property
    def _whose(self) -> str | None:
        return self.principal if self.memory.share == "principal" else None

    def weighed(self, need: str, found: Sequence[Match], catalog: SearchedTools) -> Weighed:
        """Return a need's matches, weighed."""
        return self.memory.weighed_for(self._whose, need, found, catalog)

    def beside(self, tool: Tool, catalog: SearchedTools) -> Sequence[Tool]:
        """Return tools of a catalog that were used together with one."""
        return self.memory.beside_for(self._whose, tool, catalog)

    def is_ready(self, catalog: SearchedTools) -> bool:
        """Whether `weighed` answers at once for a catalog."""
        return self.memory.is_ready_for(self._whose, catalog)
