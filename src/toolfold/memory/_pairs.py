"""Which tools were used in one task: what a task needs beside what it was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from toolfold.memory._kept import ToolKey

__all__ = ["BESIDE_AT_MOST", "Pairs"]

BESIDE_AT_MOST = 2
"""How many tools are named for one hit."""

TASKS_AT_LEAST = 2
"""In how many tasks two tools must have been used together."""

SHARE = 0.25
"""How often another must have come along, beside the one that came along most often."""

COUNTED_AT_MOST = 5
"""How many tasks of one principal count: what one does all day says no more than that."""


class Pairs:
    """Tools that were used together.

    Args:
        rows: For whom, which two, and in how many tasks.
    """

    def __init__(self, rows: Iterable[tuple[str, ToolKey, ToolKey, int]] = ()) -> None:
        self._own: dict[tuple[str, ToolKey], dict[ToolKey, int]] = {}
        self._all: dict[ToolKey, dict[ToolKey, int]] = {}
        for principal, tool, other, times in rows:
            self._own.setdefault((principal, tool), {})[other] = times
            shared = self._all.setdefault(tool, {})
            shared[other] = shared.get(other, 0) + min(times, COUNTED_AT_MOST)

    def beside(self, principal: str | None, tool: ToolKey) -> list[ToolKey]:
        """Return the tools that were used together with one, the most frequent first.

        Args:
            principal: Whose tasks count; None is everybody's.
            tool: The tool.
        """
        if principal is None:
            counts = self._all.get(tool, {})
        else:
            counts = self._own.get((principal, tool), {})
        most = max(counts.values(), default=0)
        least = max(TASKS_AT_LEAST, SHARE * most)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [other for other, times in ordered if times >= least]
