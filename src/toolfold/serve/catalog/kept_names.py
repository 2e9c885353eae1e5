"""Names that stay where they were shown: a call runs at the source that the model found it at.

Of two tools with one name the earlier source's has it. But a server may start late, or come
back after it had failed, when a later one's tool was already shown under that name: then the
name stays, and it is the newcomer's tool that is served as `source__name`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from toolfold._clashes import settled
from toolfold.tool import Tool

__all__ = ["Claim", "KeptNames"]


class Claim(NamedTuple):
    """A tool that would have its own name."""

    tool: Tool
    source: str
    is_awaited: bool = False
    """Whether its source is not there yet: the tool is known of an earlier run."""


class KeptNames:
    """Settles which tool has which name, and remembers it.

    Args:
        reserved: Names that no tool may have: the bridge's.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._owners: dict[str, str] = {}

    def settle(self, claims: Sequence[Claim], *, was_seen: bool) -> Mapping[int, str]:
        """Return the names of those that cannot have their own, by their places.

        Args:
            claims: All tools, in order of their sources.
            was_seen: Whether somebody may have seen what came of the last time.
        """
        kept = self._owners if was_seen else {}
        has = [kept.get(claim.tool.wire_name) == claim.source for claim in claims]
        order = sorted(range(len(claims)), key=lambda place: not has[place])
        tools = [claims[place].tool for place in order]
        names = settled(tools, self._reserved, lenient=True)
        others = {order[place]: name for place, name in names.items()}
        self._owners = {
            claim.tool.wire_name: claim.source
            for place, claim in enumerate(claims)
            if place not in others
        }
        return others
