"""A record as one process knows it: what it read last, as numbers."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import TYPE_CHECKING

from toolfold.memory._evidence import SAME
from toolfold.memory._index import RequestIndex
from toolfold.memory._kept import KeptMemory, ToolKey
from toolfold.memory._pairs import Pairs
from toolfold.memory._weighing import embedded, packed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RecordView", "renew_vectors"]

PER_TOOL = 200
"""How many requests of one principal are kept for one tool; more are added to the nearest."""


class RecordView:
    """What is known of a record.

    Args:
        lock: Held while what is known changes; never while anything is read.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._reading = threading.Lock()
        self._changes = (-1, -1, -1)
        self._writes: Hashable = None
        self.index: RequestIndex | None = None
        self.pairs = Pairs()

    def begin(self) -> None:
        """Know nothing, where nothing was read yet."""
        with self._lock:
            self.index = self.index or RequestIndex(_dimensions())

    def refresh(self, store: KeptMemory) -> None:
        """Take in what was written since the last time, by whomever."""
        with self._reading:
            if self._writes is None:
                renew_vectors(store)
            writes = store.writes()
            if writes == self._writes:
                return
            generation, seq, pairs = store.changes()
            is_new = self.index is None or generation != self._changes[0]
            after = 0 if is_new else self._changes[1]
            kept = list(store.requests(after=after)) if is_new or seq != after else []
            beside = Pairs(store.pairs()) if is_new or pairs != self._changes[2] else None
            with self._lock:
                index = self.index
                if index is None or is_new:
                    index = RequestIndex(_dimensions())
                for request in kept:
                    index.put(request)
                self.index = index
                self.pairs = self.pairs if beside is None else beside
                self._changes, self._writes = (generation, seq, pairs), writes

    def same(self, principal: str, vector: NDArray[np.float32], key: ToolKey) -> int | None:
        """Return the id of the request to which a new one is added, if any.

        That is one that says the same and led to the same tool; or the nearest of those that led
        there, where there are as many as are kept.

        Args:
            principal: Whose the new one is.
            vector: The new one's vector.
            key: The tool that it led to.
        """
        with self._lock:
            index = self.index
            number = None if index is None else index.tools.get(key)
            if index is None or number is None:
                return None
            live = (index.used[: index.size] == number).any(axis=1)
            live &= index.principal[: index.size] == index.principal_of(principal)
            near = index.nearest(vector, live, at_most=1)
            if not near or (near[0].similarity < SAME and int(live.sum()) < PER_TOOL):
                return None
            return index.ids[near[0].row]

    def forget(self) -> None:
        """Know nothing."""
        with self._reading, self._lock:
            self.index, self._writes = None, None


def renew_vectors(store: KeptMemory) -> None:
    """Have vectors that another table made be made anew."""
    from toolfold.search._dense import table

    store.renew_vectors(table().version, lambda text: packed(embedded(text)))


def _dimensions() -> int:
    from toolfold.search._dense import table

    return table().dimensions
