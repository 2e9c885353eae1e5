"""Matches weighed with a record, for one catalog and one principal at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfold._memo import Memo
from toolfold.memory._evidence import NOTHING, Weight, gathered, reordered
from toolfold.memory._index import RequestIndex
from toolfold.memory._kept import Ranked
from toolfold.memory._weight import TRIALS, TRIALS_PER_TOOL, Trial, best_weight, settled
from toolfold.search import Match
from toolfold.search.memory import Lift, SearchedTools, Weighed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Weighing", "embedded", "packed"]

LOOKED_AT = 8_192
"""How many requests, the newest, speak for each other when the weight is chosen."""


@dataclass(frozen=True, slots=True)
class _Sight:
    """A record as one catalog and one principal see it."""

    version: int
    places: NDArray[np.int32]
    """The place of each tool that is known; -1 for what the catalog does not have."""
    live: NDArray[np.bool_]
    """Which requests count."""
    count: int


class Weighing:
    """Weighs matches with an index of requests. Not safe to share between threads.

    Args:
        index: The requests.
        ranked: Returns how search by itself ranked tools for requests, by their ids.
    """

    def __init__(
        self, index: RequestIndex, ranked: Callable[[Sequence[int]], Mapping[int, Ranked]]
    ) -> None:
        self.index = index
        self._ranked = ranked
        self._sights: Memo[tuple[str, str | None], _Sight] = Memo(16)
        self._weights: Memo[tuple[str, str | None, int], Weight] = Memo(64)

    def is_ready(self, principal: str | None, catalog: SearchedTools) -> bool:
        """Whether the weight for a catalog is chosen; all else takes a moment."""
        if not self.index.size:
            return True
        key = self._key(principal, catalog, self._sight(principal, catalog))
        return self._weights.get(key) is not None

    def weighed(
        self, principal: str | None, vector: Floats, found: Sequence[Match], catalog: SearchedTools
    ) -> Weighed:
        """Return matches, weighed; those given where the record has nothing to say.

        Args:
            principal: Whose requests count; None is everybody's.
            vector: The vector of what was asked for.
            found: What search found by itself, best first.
            catalog: The tools that were searched.
        """
        sight = self._sight(principal, catalog)
        weight = self._weight(principal, catalog, sight)
        if weight == NOTHING or not vector.any():
            return Weighed(found)
        near = self.index.nearest(vector, sight.live)
        evidence = gathered(self.index, near, sight.places)
        if not evidence:
            return Weighed(found)
        matches = reordered(found, evidence, weight)
        before = {match.position: i for i, match in enumerate(found)}
        lifts: dict[int, Lift] = {}
        for after, (place, _) in enumerate(matches):
            told, was = evidence.get(place), before.get(place, -1)
            if told is not None and told.times and (was < 0 or after < was):
                lifts[place] = Lift(told.times, was, after)
        return Weighed(matches, lifts)

    def weight(self, principal: str | None, catalog: SearchedTools) -> Weight:
        """Return how much the record counts for a catalog."""
        return self._weight(principal, catalog, self._sight(principal, catalog))

    def set_weight(self, principal: str | None, catalog: SearchedTools, weight: Weight) -> None:
        """Let the record count so much for a catalog, whatever it would have been worth."""
        sight = self._sight(principal, catalog)
        self._weights.put(self._key(principal, catalog, sight), weight)

    def _sight(self, principal: str | None, catalog: SearchedTools) -> _Sight:
        index, key = self.index, (catalog.fingerprint, principal)
        sight = self._sights.get(key)
        if sight is None or sight.version != index.version:
            places = index.places((tool.name, tool.digest) for tool in catalog.tools)
            number = None if principal is None else index.principal_of(principal)
            live = index.live(places, number)
            sight = self._sights.put(key, _Sight(index.version, places, live, int(live.sum())))
        return sight

    def _key(
        self, principal: str | None, catalog: SearchedTools, sight: _Sight
    ) -> tuple[str, str | None, int]:
        return catalog.fingerprint, principal, settled(sight.count)

    def _weight(self, principal: str | None, catalog: SearchedTools, sight: _Sight) -> Weight:
        key = self._key(principal, catalog, sight)
        known = self._weights.get(key)
        if known is None:
            trials = list(self._trials(sight, key[-1])) if key[-1] else []
            known = self._weights.put(key, best_weight(trials))
        return known

    def _trials(self, sight: _Sight, count: int) -> Iterator[Trial]:
        """Yield some of the first requests that count, each as if it had not been kept."""
        import numpy as np

        index, places = self.index, sight.places
        rows = np.flatnonzero(sight.live)[:count]
        last = int(rows[-1]) + 1
        live = sight.live[:last].copy()
        live[: max(last - LOOKED_AT, 0)] = False
        picked = self._picked(rows[-LOOKED_AT:].tolist())
        ranked = self._ranked([index.ids[row] for row in picked])
        for row in picked:
            belief = {
                place: share
                for key, share in ranked.get(index.ids[row], ())
                if (place := int(places[index.tools.get(key, -1)])) >= 0
            }
            own = (int(places[tool]) for tool in index.used[row].tolist() if tool >= 0)
            used = frozenset(place for place in own if place >= 0)
            if belief and used:
                vector = index.vectors[row].astype(np.float32)
                near = index.nearest(vector, live, without=row)
                yield belief, used, gathered(index, near, places)

    def _picked(self, rows: Sequence[int]) -> list[int]:
        """Return the newest rows, not too many of one principal and one tool."""
        picked: list[int] = []
        counts: dict[tuple[int, int], int] = {}
        for row in reversed(rows):
            pair = (int(self.index.principal[row]), int(self.index.used[row, 0]))
            counts[pair] = counts.get(pair, 0) + 1
            if counts[pair] <= TRIALS_PER_TOOL:
                picked.append(row)
            if len(picked) == TRIALS:
                break
        return picked


def embedded(text: str) -> Floats:
    """Return the vector of a request."""
    from toolfold.search._dense import table

    return table().query(text)


def packed(vector: Floats) -> bytes:
    """Return a vector as it is kept."""
    import numpy as np

    return vector.astype(np.float16).tobytes()
