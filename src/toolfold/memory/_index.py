"""The requests that are kept, as numbers: which of them are nearest to another.

A first look at the leading dimensions, which carry most of what tells requests apart, leaves
few to be compared in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.memory._kept import KeptRequest, ToolKey
from toolfold.search._vectors import best_places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NEAREST", "Neighbour", "RequestIndex"]

NEAREST = 10
"""How many earlier requests speak for a new one."""

PER_TOOL = 5
"""How many of those may be of one principal and led to the same tool: what somebody does all day
does not push everything else out."""

TOOLS_AT_MOST = 4
"""How many tools of one request are kept in mind."""

ABOVE_AT_MOST = 3
"""How many tools that search put before the right one are kept in mind."""

ABOVE_FROM = 0.02
"""From what share of the belief on such a tool is worth it."""

_LEADING = 64
_SHORTLIST = 160


class Neighbour(NamedTuple):
    """An earlier request near to another."""

    row: int
    similarity: float


@dataclass(frozen=True, slots=True)
class _Facts:
    """What one request says, as it goes into the arrays."""

    used: Sequence[tuple[int, float, int]]
    """Tools that worked: what search had missed of each, and how often it was called."""
    above: Sequence[tuple[int, float]]
    """Tools that search preferred, and how much."""


class RequestIndex:
    """Requests as arrays, in the order in which they came. Not safe to share between threads."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self.tools: dict[ToolKey, int] = {}
        """The numbers of the tools that anything is known of."""
        self._principals: dict[str, int] = {}
        self._rows: dict[int, int] = {}
        self.ids: list[int] = []
        """The ids of the requests, row by row."""
        self.size = 0
        self.version = 0
        """Rises with every change."""
        self._grow(256)

    def _grow(self, room: int) -> None:
        import numpy as np

        def larger(name: str, shape: tuple[int, ...], dtype: Any, fill: float = 0) -> None:
            made = np.full((room, *shape), fill, dtype=dtype)
            if self.size:
                made[: self.size] = getattr(self, name)[: self.size]
            setattr(self, name, made)

        larger("vectors", (self._dimensions,), np.float16)
        larger("_leading", (min(_LEADING, self._dimensions),), np.float32)
        larger("used", (TOOLS_AT_MOST,), np.int32, -1)
        larger("missed", (TOOLS_AT_MOST,), np.float32)
        larger("times", (TOOLS_AT_MOST,), np.int32)
        larger("above", (ABOVE_AT_MOST,), np.int32, -1)
        larger("belief", (ABOVE_AT_MOST,), np.float32)
        larger("principal", (), np.int32, -1)

    vectors: NDArray[np.float16]
    _leading: NDArray[np.float32]
    used: NDArray[np.int32]
    missed: NDArray[np.float32]
    times: NDArray[np.int32]
    above: NDArray[np.int32]
    belief: NDArray[np.float32]
    principal: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        names = ("vectors", "_leading", "used", "missed", "times", "above", "belief", "principal")
        return sum(getattr(self, name).nbytes for name in names)

    def principal_of(self, name: str) -> int:
        """Return the number of a principal; -1 where nothing of it is kept."""
        return self._principals.get(name, -1)

    def put(self, kept: KeptRequest) -> None:
        """Take a request in, or take it in anew."""
        import numpy as np

        vector = np.frombuffer(kept.vector, dtype=np.float16)
        if len(vector) != self._dimensions:
            return  # of another table; it is made anew when the request comes again
        self.version += 1
        row = self._rows.get(kept.id)
        if row is None:
            if self.size == len(self.used):
                self._grow(2 * self.size)
            row = self._rows[kept.id] = self.size
            self.ids.append(kept.id)
            self.size += 1
        facts = self._facts(kept)
        self.vectors[row] = vector
        self._leading[row] = vector[: self._leading.shape[1]]
        self.used[row], self.missed[row], self.times[row] = -1, 0, 0
        self.above[row], self.belief[row] = -1, 0
        for i, (tool, missed, times) in enumerate(facts.used):
            self.used[row, i], self.missed[row, i], self.times[row, i] = tool, missed, times
        for i, (tool, belief) in enumerate(facts.above):
            self.above[row, i], self.belief[row, i] = tool, belief
        self.principal[row] = self._principals.setdefault(kept.principal, len(self._principals))

    def number(self, key: ToolKey) -> int:
        """Return the number of a tool."""
        return self.tools.setdefault(key, len(self.tools))

    def _facts(self, kept: KeptRequest) -> _Facts:
        worked = [(key, times) for key, times, _ in kept.uses if times][:TOOLS_AT_MOST]
        belief = {key: exp(min(value, 0.0)) for key, value in kept.ranked}
        own = {key for key, *_ in kept.uses}
        used = [
            (
                self.number(key),
                # Several tools that are all needed share the belief.
                1 - min(1.0, len(worked) * belief.get(key, 0.0)) if belief else 1.0,
                min(times, 1_000_000),
            )
            for key, times in worked
        ]
        others = sorted(belief.items(), key=lambda item: -item[1])
        above = [
            (self.number(key), share)
            for key, share in others
            if key not in own and share >= ABOVE_FROM
        ]
        return _Facts(used, above[:ABOVE_AT_MOST])

    def places(self, tools: Iterable[ToolKey]) -> NDArray[np.int32]:
        """Return the place in a list of tools of each tool that is known here, or -1."""
        import numpy as np

        places = np.full(len(self.tools) + 1, -1, dtype=np.int32)  # the last stands for none
        for place, key in enumerate(tools):
            number = self.tools.get(key)
            if number is not None:
                places[number] = place
        return places

    def live(self, places: NDArray[np.int32], principal: int | None) -> NDArray[np.bool_]:
        """Return which requests led to a tool that has a place, and are of a principal.

        Args:
            places: As `places` returns them.
            principal: The number of the principal; None is everybody.
        """
        import numpy as np

        found: NDArray[np.bool_] = np.any(places[self.used[: self.size]] >= 0, axis=1)
        return found if principal is None else found & (self.principal[: self.size] == principal)

    def nearest(
        self,
        vector: NDArray[np.float32],
        live: NDArray[np.bool_],
        *,
        without: int = -1,
        at_most: int = NEAREST,
    ) -> list[Neighbour]:
        """Return the nearest requests, the nearest first.

        Args:
            vector: The unit vector of a request.
            live: Which requests may be among them.
            without: A request that may not.
            at_most: How many.
        """
        import numpy as np

        size = len(live)
        if not size:
            return []
        rough = self._leading[:size] @ vector[: self._leading.shape[1]]
        rough[~live] = -2
        if without >= 0:
            rough[without] = -2
        places = best_places(rough, _SHORTLIST)
        places = places[rough[places] > -2]
        exact = self.vectors[places].astype(np.float32) @ vector
        order = np.lexsort((places, -exact))
        found: list[Neighbour] = []
        counts: dict[tuple[int, int], int] = {}
        for i in order.tolist():
            row = int(places[i])
            # A request counts while one of its tools has room.
            pairs = [
                (int(self.principal[row]), tool) for tool in self.used[row].tolist() if tool >= 0
            ]
            if all(counts.get(pair, 0) >= PER_TOOL for pair in pairs):
                continue
            for pair in pairs:
                counts[pair] = counts.get(pair, 0) + 1
            found.append(Neighbour(row, float(exact[i])))
            if len(found) == at_most:
                break
        return found
