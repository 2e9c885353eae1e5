"""What was asked for lately, and how search by itself ranked tools for it.

It is learnt with what comes of it: a use names its request, and not what else was found.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from toolfold.memory._evidence import believed
from toolfold.memory._kept import Ranked
from toolfold.memory.records import RANKED_AT_MOST
from toolfold.search import Match
from toolfold.search.memory import SearchedTools

__all__ = ["READ_AT_MOST", "AskedNeeds"]

READ_AT_MOST = 4_000
"""How much of a request is looked at, in characters."""

_KEPT_AT_MOST = 512


class AskedNeeds:
    """The needs that were searched for lately. Not safe to share between threads."""

    def __init__(self) -> None:
        self._asked: OrderedDict[tuple[str | None, str], Ranked] = OrderedDict()

    def note(
        self, principal: str | None, need: str, found: Sequence[Match], catalog: SearchedTools
    ) -> None:
        """Keep in mind how search by itself ranked tools.

        Args:
            principal: Whose search it was; None where that does not count.
            need: What was asked for.
            found: What the ranker found, best first.
            catalog: The tools that were searched.
        """
        tools, key = catalog.tools, (principal, need[:READ_AT_MOST])
        self._asked[key] = tuple(
            ((tools[place].name, tools[place].digest), share)
            for place, share in believed(found)[:RANKED_AT_MOST]
        )
        self._asked.move_to_end(key)
        while len(self._asked) > _KEPT_AT_MOST:
            self._asked.popitem(last=False)

    def ranked(self, principal: str, need: str) -> Ranked | None:
        """Return how search by itself ranked tools for a need; None where that is not known."""
        key = need[:READ_AT_MOST]
        return self._asked.get((principal, key)) or self._asked.get((None, key))

    def clear(self) -> None:
        """Forget them all."""
        self._asked.clear()
